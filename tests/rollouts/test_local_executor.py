import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Thread

import pytest
from executor_samples import IMPORTS, WALK, ExecutorContract, episode
from rich.console import Console
from rollout_samples import HashJob, MarkJob, PidJob

from agent_gym.core.clock import SystemClock
from agent_gym.core.registry import Ref
from agent_gym.rollouts.executor import LocalExecutor
from agent_gym.rollouts.hands import Worker
from agent_gym.rollouts.jobs import EpisodeJob, pack, unpack
from agent_gym.rollouts.progress import progress_bar

HERE = Path(__file__).parent


class TestLocal(ExecutorContract):
    def make(self, workers, **options):
        return LocalExecutor(workers, **options)


def test_a_worker_is_used_again_and_leads_its_own_group():
    rows = LocalExecutor(1, imports=IMPORTS).run([PidJob(), PidJob(), PidJob()]).rows
    assert len({row["pid"] for row in rows}) == 1
    assert rows[0]["group"] == rows[0]["pid"] != os.getpid()


def wait_for(condition, seconds=60.0):
    clock = SystemClock()
    end = clock.monotonic_s() + seconds
    while not condition():
        assert clock.monotonic_s() < end, "waited too long"
        clock.sleep_s(0.05)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_a_crashed_job_leaves_behind_is_killed_too(tmp_path):
    mark = tmp_path / "mark"
    rows = LocalExecutor(1, imports=IMPORTS).run([MarkJob(path=str(mark), child=True)]).rows
    assert rows[0]["status"] == "crashed"
    assert rows[0]["error"]["what"] == "exit code 5"
    wait_for(lambda: not is_running(int(mark.read_text())))


def test_a_job_travels_as_plain_values():
    job = episode("e", record=Path("some/where"))
    assert unpack(json.loads(json.dumps(pack(job)))) == job


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 200, "a\0b"])
def test_an_episode_that_names_a_folder_stays_in_it(name):
    with pytest.raises(ValueError, match="cannot name a folder"):
        episode(name, record=Path("r"))
    assert episode(name).episode == name


def test_agents_or_a_team_but_not_both():
    team = Ref(use="independent", params={"agents": {"trader": {"use": "sample/dice"}}})
    played = EpisodeJob(world=WALK, team=team, episode="e", seed=1).run()
    assert played == episode("e", seed=1).run()
    for more in ({}, {"team": team, "agents": {"trader": WALK}}):
        with pytest.raises(ValueError, match="either the agents or the team"):
            EpisodeJob(world=WALK, episode="e", seed=1, **more)


SUITE = textwrap.dedent(
    """
    import sys
    from rollout_samples import MarkJob, PidJob
    from agent_gym.core.files import to_json
    from agent_gym.rollouts.executor import LocalExecutor
    if __name__ == "__main__":
        jobs = [PidJob(), MarkJob(path=sys.argv[1]), PidJob(), MarkJob(path=sys.argv[1] + "2")]
        batch = LocalExecutor(1, imports=("rollout_samples",)).run(jobs)
        print(to_json({"status": batch.status, "rows": [row["status"] for row in batch.rows]}))
    """
)


def begin_suite(tmp_path):
    mark, script = tmp_path / "mark", tmp_path / "suite.py"
    script.write_text(SUITE)
    process = subprocess.Popen(
        [sys.executable, str(script), str(mark)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        text=True,
    )
    wait_for(lambda: mark.exists() and mark.read_text().endswith("\n"))
    return process, int(mark.read_text())


def test_ctrl_c_reaps_the_workers_and_marks_the_rest(tmp_path):
    process, worker = begin_suite(tmp_path)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out) == {
        "status": "partial",
        "rows": ["ok", "interrupted", "cancelled", "cancelled"],
    }
    assert not is_running(worker)


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    process, worker = begin_suite(tmp_path)
    assert is_running(worker)
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not is_running(worker))


def test_workers_import_no_script(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent(
            """
            import rollout_samples
            from agent_gym.rollouts.executor import LocalExecutor
            for fresh in (False, True):
                import helper
                names = ("rollout_samples", "helper")
                jobs = [rollout_samples.LoadedJob(module=name) for name in names]
                rows = LocalExecutor(1, fresh=fresh).run(jobs).rows
                print([row["loaded"] for row in rows], __file__)
            """
        )
    )
    (tmp_path / "helper.py").write_text("")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines() == [f"[True, False] {script}"] * 2


def test_the_bar_counts_failures():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with progress_bar("episodes", console) as progress:
        progress(1, 3, {"status": "ok"})
        progress(2, 3, {"status": "crashed"})
    shown = screen.getvalue()
    assert "2/3" in shown
    assert "1 failed" in shown


def pids(batch):
    return {row["pid"] for row in batch.rows}


def test_processes_are_kept_in_a_with_block_and_end_with_it():
    with LocalExecutor(1, imports=IMPORTS) as executor:
        first, second = (pids(executor.run([PidJob(), PidJob()])) for _ in range(2))
        assert first == second
        (pid,) = first
        assert os.getpgid(pid) == pid
    assert not is_running(pid)
    assert pids(executor.run([PidJob()])) != first  # as ever outside of it


def test_a_kept_process_that_died_or_was_late_is_replaced():
    with LocalExecutor(1, imports=IMPORTS) as executor:
        (pid,) = pids(executor.run([PidJob()]))
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{pid}").exists())  # with all of its threads, and its pipe
        rows = executor.run([PidJob()]).rows
        assert (rows[0]["status"], rows[0]["pid"] != pid) == ("ok", True)
        late = executor.run([episode("e", "hang")], timeout_s=0.5).rows
        assert late[0]["status"] == "timeout"
        assert executor.run([PidJob()]).rows[0]["status"] == "ok"


@pytest.mark.parametrize(("fresh", "seeds"), [(True, 2), (False, 1)])
def test_only_a_fresh_worker_has_a_hash_seed_of_its_own(fresh, seeds, monkeypatch):
    found = set()
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        (row,) = LocalExecutor(1, imports=IMPORTS, fresh=fresh).run([HashJob()]).rows
        found.add(row["hash"])
        assert row["told"] == seed  # the environment is handed over either way
    assert len(found) == seeds


def test_leaving_the_block_cuts_a_run_of_another_thread_short():
    found = []
    with LocalExecutor(1, imports=IMPORTS) as executor:
        executor.run([PidJob()])
        jobs = [episode("e", "hang"), PidJob()]
        thread = Thread(target=lambda: found.append(executor.run(jobs)))
        thread.start()
        wait_for(executor._busy.locked)
    thread.join(30.0)
    (batch,) = found
    assert batch.status == "partial"
    assert batch.rows[-1]["status"] == "cancelled"


def test_leaving_the_block_before_the_first_job_is_given_out_is_no_error(monkeypatch):
    with LocalExecutor(1, imports=IMPORTS) as executor:
        executor.run([PidJob()])
        (worker,) = executor._kept
        bury = Worker.bury

        def left(each):
            executor._kept = None
            bury(each)

        monkeypatch.setattr(Worker, "bury", left)
        batch = executor.run([PidJob()])
    assert batch.status == "partial"
    assert worker.pipe is None  # it was killed
