"""What every executor must do; each runs the same tests."""

import json

import pytest
from rollout_samples import PidJob

from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Ref
from agent_gym.rollouts.jobs import EpisodeJob, Job
from agent_gym.rollouts.store import StepStore

IMPORTS = ("rollout_samples",)
WALK = Ref(use="sample/walk")


def episode(name, agent="dice", seed=0, **more):
    agents = {"trader": Ref(use=f"sample/{agent}")}
    return EpisodeJob(world=WALK, agents=agents, episode=name, seed=seed, **more)


class Inner:
    class HiddenJob(Job):
        def run(self):
            return {"status": "ok"}


class ExecutorContract:
    """Subclass it with ``make(workers, **options)``."""

    def make(self, workers, **options):
        raise NotImplementedError

    def test_rows_do_not_depend_on_the_number_of_workers(self, tmp_path):
        rows = []
        for workers in (1, 2):
            jobs = [episode(f"e{i}", seed=i % 3, record=tmp_path / str(workers)) for i in range(7)]
            seen = []
            batch = self.make(workers, imports=IMPORTS).run(
                jobs, lambda done, total, row, seen=seen: seen.append((done, total, row["status"]))
            )
            assert batch.status == "complete"
            assert seen == [(i + 1, 7, "ok") for i in range(7)]
            rows.append(to_json(batch.rows))
        assert rows[0] == rows[1]
        found = json.loads(rows[0])
        assert [row["episode"] for row in found] == [f"e{i}" for i in range(7)]
        assert all(row["status"] == "ok" and row["steps"] == 20 for row in found)
        stores = [
            {
                path.relative_to(tmp_path / w): path.read_bytes()
                for path in (tmp_path / w).rglob("*.*")
            }
            for w in ("1", "2")
        ]
        assert stores[0] == stores[1]
        assert StepStore.open(tmp_path / "1" / "e3").manifest.rows == 20
        assert not list(tmp_path.glob(".agent-gym*"))

    def test_the_same_episode_here_and_there(self):
        job = episode("e", seed=5)
        there = self.make(1, imports=IMPORTS).run([job]).rows
        assert there == [job.run()]

    def test_a_bad_job_costs_itself_alone(self):
        agents = ["dice", "exit", "dice", "killed", "error", "hang", "leave", "dice", "missing"]
        jobs = [episode(f"e{i}", agent) for i, agent in enumerate(agents)]
        batch = self.make(2, timeout_s=6.0, imports=IMPORTS).run(jobs)
        status = [row["status"] for row in batch.rows]
        expected = ["ok", "crashed", "ok", "crashed", "error", "timeout", "crashed", "ok", "error"]
        assert status == expected
        assert batch.status == "complete"
        assert [row["episode"] for row in batch.rows] == [job.episode for job in jobs]
        what = [row["error"] and row["error"]["what"] for row in batch.rows]
        assert what[1] == "exit code 3"
        assert what[3] == "killed by signal 9"
        assert what[4] == "a plain mistake"
        assert what[5] == "no end within 6.0 s"
        assert what[6] == "exit code 4"
        assert "no agent is named 'sample/missing'" in what[8]
        assert batch.rows[4]["steps"] == 5

    def test_a_row_that_is_not_json_is_an_error(self):
        rows = self.make(1, imports=IMPORTS).run([PidJob(not_json=True), PidJob()]).rows
        assert [row["status"] for row in rows] == ["error", "ok"]

    def test_no_jobs_no_rows(self):
        assert self.make(2).run([]).rows == []

    def test_what_a_worker_cannot_import_is_the_users_fault(self):
        with pytest.raises(ConfigError, match="could not import") as caught:
            self.make(2, imports=("no_such_module",)).run([episode("e")])
        assert "no_such_module" in str(caught.value)

    def test_a_job_that_cannot_be_found_is_refused_before_anything_starts(self):
        with pytest.raises(ConfigError, match="cannot find this kind of job"):
            self.make(1).run([Inner.HiddenJob()])
        with pytest.raises(ConfigError, match="at least one worker"):
            self.make(0)

    def test_processes_are_kept_in_a_with_block(self):
        with self.make(1, imports=IMPORTS) as executor:
            first, second = (
                {row["pid"] for row in executor.run([PidJob(), PidJob()]).rows} for _ in range(2)
            )
        assert first == second
        assert len(first) == 1
