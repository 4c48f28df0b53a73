"""Experiments as they run: what is done stays done, whatever ends them; failures are rows."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentGymError, ConfigError, DataError
from agent_gym.rollouts.batch import Batch
from agent_gym.training.rl import jobs
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment import Experiment, read_arms, read_description, run_seeds
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.run_records import read_result
from tests.training.experiment_samples import (
    BASE,
    DIES,
    FAILS,
    PAUSE,
    InlineExecutor,
    StandInJob,
    experiment,
    starts,
)

ROOT = Path(__file__).resolve().parents[2]
KILLED = """
import sys
from pathlib import Path
from tests.training.experiment_samples import StandInJob, experiment
from agent_gym.training.rl.experiment import Experiment
if __name__ == "__main__":
    Experiment(experiment(seeds=3), Path(sys.argv[1]), StandInJob).run(workers=1)
"""


@pytest.fixture
def inline(monkeypatch):
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)


def made(folder, **changes):
    return Experiment(experiment(**changes), folder, StandInJob)


@pytest.mark.usefixtures("inline")
def test_it_runs_every_arm_with_every_seed_once(tmp_path):
    said = []
    summary = made(tmp_path).run(say=said.append)
    assert starts(tmp_path) == dict.fromkeys(
        [f"gamma_{gamma}/seed_{seed}" for gamma in (0.8, 0.9) for seed in (0, 1)], 1
    )
    assert [arm["iqm"]["estimate"] for arm in summary["arms"]] == [270.5, 240.5]
    assert summary["status"] == "complete"
    assert summary == json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))["arms"]
    assert [(row["arm"], row["iqm"]) for row in metrics] == [
        ("gamma_0.9", 270.5),
        ("gamma_0.8", 240.5),
    ]
    assert said[-1].startswith("4/4 gamma_0.8 seed 1: 241.0 after 1,000 steps")
    assert made(tmp_path).steps() == (4000, 4000)
    assert summary["manifest"]["seeds"] == [0, 1]


@pytest.mark.usefixtures("inline")
def test_what_is_done_is_not_done_again(tmp_path):
    first = made(tmp_path).run()
    assert made(tmp_path).run() == first
    assert set(starts(tmp_path).values()) == {1}
    (tmp_path / "gamma_0.8" / "seed_1" / "result.json").unlink()
    assert made(tmp_path).run() == first
    more = made(tmp_path, seeds=3, grid={"agent.gamma": [0.9, 0.8, 0.7]}).run()
    assert [arm["n"] for arm in more["arms"]] == [3, 3, 3]
    counted = starts(tmp_path)
    assert counted.pop("gamma_0.8/seed_1") == 2
    assert set(counted.values()) == {1}
    assert len(counted) == 8


@pytest.mark.usefixtures("inline")
def test_other_settings_under_the_same_name_are_refused(tmp_path):
    made(tmp_path).run()
    before = (tmp_path / "experiment.json").read_bytes()
    changed = made(tmp_path, overrides={"agent.gae_lambda": 0.5})
    with pytest.raises(ConfigError, match="other settings") as caught:
        changed.run()
    assert "agent.gae_lambda: 0.95 there, 0.5 here" in caught.value.found
    assert "another name" in caught.value.remedy
    assert (tmp_path / "experiment.json").read_bytes() == before


@pytest.mark.usefixtures("inline")
def test_a_setting_that_came_later_has_its_default_in_old_runs(tmp_path):
    first = made(tmp_path).run()
    for path in tmp_path.rglob("seed_*/config.json"):
        kept = json.loads(path.read_text())
        assert kept["agent"].pop("target_kl") is None
        del kept["threads"]
        path.write_text(json.dumps(kept))
    assert made(tmp_path).run() == first
    assert set(starts(tmp_path).values()) == {1}


def test_failures_and_crashes_are_rows_and_are_tried_again(tmp_path):
    asked = made(tmp_path, grid={"agent.gamma": [0.9, FAILS, DIES]}, seeds=1)
    said = []
    summary = asked.run(workers=2, say=said.append)
    good, failed, died = summary["arms"]
    assert (good["n"], failed["failed"], died["n"]) == (1, 1, 0)
    assert any("it went wrong" in line for line in said)
    assert any("exit code 3" in line for line in said)
    result = read_result(tmp_path / "gamma_0.55" / "seed_0")
    assert result.status == "error"
    assert "exit code 3" in result.error["what"]
    assert died["failed"] == 1
    assert failed["runs"][0]["error"]["remedy"] == "Do better"
    asked.run()
    assert starts(tmp_path) == {
        "gamma_0.5/seed_0": 2,
        "gamma_0.55/seed_0": 2,
        "gamma_0.9/seed_0": 1,
    }


def test_killed_in_the_middle_it_finishes_only_what_is_missing(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    folder, clock = tmp_path / "experiment", SystemClock()
    environment = os.environ | {PAUSE: "0.7", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, str(script), str(folder)], env=environment)
    for _ in range(1200):
        if len(list(folder.rglob("result.json"))) >= 2 and len(starts(folder)) >= 3:
            break
        assert process.poll() is None
        clock.sleep_s(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {str(path.parent.relative_to(folder)) for path in folder.rglob("result.json")}
    begun = starts(folder)
    assert 2 <= len(finished) < 6
    clock.sleep_s(1.5)  # the worker ends with its parent: nothing goes on in the dark
    assert len(list(folder.rglob("result.json"))) == len(finished)
    summary = Experiment(experiment(seeds=3), folder, StandInJob).run(workers=2)
    assert summary["status"] == "complete"
    assert [arm["n"] for arm in summary["arms"]] == [3, 3]
    after = starts(folder)
    assert len(after) == 6
    for name, count in after.items():
        assert count == begun.get(name, 0) + (name not in finished), name


@pytest.mark.usefixtures("inline")
def test_stopped_it_says_what_is_there(tmp_path, monkeypatch):
    class Stopped(InlineExecutor):
        def run(self, jobs, progress):
            done = super().run(jobs[:3], progress)
            return Batch(
                [*done.rows, *(job.lost("cancelled", None) for job in jobs[3:])], "partial"
            )

    monkeypatch.setattr(jobs, "make_executor", Stopped)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path).run()
    told = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert told["status"] == "partial"
    assert [(arm["n"], arm["missing"]) for arm in told["arms"]] == [(2, 0), (1, 1)]


@pytest.mark.usefixtures("inline")
def test_seeds_of_one_config(tmp_path, monkeypatch):
    monkeypatch.setattr("agent_gym.training.rl.experiment.TrainingJob", StandInJob)
    config = TrainerConfig.model_validate(BASE)
    results = run_seeds(config, [7, 3], tmp_path / "mine")
    assert [(result.seed, result.final_mean) for result in results] == [(7, 304.0), (3, 300.0)]
    assert run_seeds(config, [7, 3], tmp_path / "mine") == results
    assert starts(tmp_path) == {"mine/seed_3": 1, "mine/seed_7": 1}
    (arm,) = read_arms(str(tmp_path / "mine"))
    assert (arm.name, arm.scores()) == ("mine", [300.0, 304.0])


@pytest.mark.usefixtures("inline")
def test_one_at_a_time(tmp_path):
    with at_work(tmp_path), pytest.raises(AgentGymError, match="at work here"):
        made(tmp_path).run()
    made(tmp_path).run()


@pytest.mark.usefixtures("inline")
def test_arms_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    Experiment(experiment(), job=StandInJob).run()
    assert [arm.name for arm in read_arms("trial")] == ["gamma_0.9", "gamma_0.8"]
    assert [arm.name for arm in read_arms("trial/gamma_0.8")] == ["gamma_0.8"]
    with pytest.raises(ConfigError, match="no such experiment") as caught:
        read_arms("trail")
    assert "trial" in caught.value.remedy
    assert read_description(tmp_path / "experiments" / "trial") == experiment()


@pytest.mark.usefixtures("inline")
def test_broken_files_are_named(tmp_path):
    made(tmp_path).run()
    path = tmp_path / "gamma_0.9" / "seed_0" / "result.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read") as caught:
        made(tmp_path).run()
    assert caught.value.where == str(path)
    (tmp_path / "experiment.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="description"):
        read_arms(str(tmp_path))


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AgentGymError, match="cannot write"):
        made(tmp_path / "file").run()


def test_real_runs_end_to_end(tmp_path):
    short = BASE | {"steps": 2000, "n_envs": 4, "agent": {"n_steps": 64, "batch_size": 128}}
    short |= {"evaluation": {"every": 500, "episodes": 2, "final_episodes": 3}}
    short |= {"trackers": {"tensorboard": False}}
    config = experiment(base=short, grid={"agent.gamma": [0.98, 0.0]}, threshold=15.0)
    first = Experiment(config, tmp_path / "one").run(workers=2)
    assert first["status"] == "complete"
    assert [(arm["n"], arm["failed"]) for arm in first["arms"]] == [(2, 0), (2, 0)]
    for arm in first["arms"]:
        assert arm["steps_to_threshold"]["n"] == 2
        assert arm["cpu_s"] > 0.0
        assert len(arm["profile"]["marks"]) == 41
        for run in arm["runs"]:
            assert run["steps"] >= 2000
            assert Path(run["folder"], "best", "policy.safetensors").exists()
    scores = [[run["score"] for run in arm["runs"]] for arm in first["arms"]]
    assert len({tuple(each) for each in scores}) == 2
    # A run whose result is lost is done again, and says the same to the bit.
    path = tmp_path / "one" / "gamma_0.98" / "seed_1" / "result.json"
    before = json.loads(path.read_text(encoding="utf-8"))["state_hash"]
    path.unlink()
    again = Experiment(config, tmp_path / "one").run()
    assert [[run["score"] for run in arm["runs"]] for arm in again["arms"]] == scores
    assert json.loads(path.read_text(encoding="utf-8"))["state_hash"] == before
