"""The search: it finds the best, goes on after a kill as if there was none, and prunes right."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.rollouts.batch import Batch
from agent_gym.training.rl import jobs
from agent_gym.training.rl.config import read_trainer_config
from agent_gym.training.rl.jobs import Bars
from agent_gym.training.rl.search import SettingsSearch, chosen, distributions
from tests.training.experiment_samples import (
    FAILS,
    PAUSE,
    InlineExecutor,
    StandInJob,
    experiment,
    starts,
)

ROOT = Path(__file__).resolve().parents[2]
SPACE = {"agent.gamma": {"low": 0.6, "high": 0.99}, "agent.net_arch": [[8], [8, 8]]}
SEARCH = {"space": SPACE, "trials": 8, "seeds": 2, "startup_trials": 3, "warmup_evaluations": 1}
KILLED = """
import sys
from pathlib import Path
from tests.training.experiment_samples import InlineExecutor, StandInJob, experiment
from tests.training.test_rl_search import SEARCH
from agent_gym.training.rl import jobs
from agent_gym.training.rl.search import SettingsSearch
if __name__ == "__main__":
    jobs.make_executor = InlineExecutor
    SettingsSearch(experiment(search=SEARCH), Path(sys.argv[1]), StandInJob).run(trials=3)
"""


@pytest.fixture
def inline(monkeypatch):
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)


def made(folder, job=StandInJob, **changes):
    return SettingsSearch(experiment(search=SEARCH | changes), folder, job)


def told(document):
    """Return what was found, without places."""
    rows = [{**row, "folder": Path(row["folder"]).name} for row in document["trials"]]
    return [{key: row[key] for key in sorted(row)} for row in rows]


@pytest.mark.usefixtures("inline")
def test_it_finds_the_better_end_and_writes_it_as_a_training(tmp_path):
    said = []
    found = made(tmp_path).run(say=said.append)
    assert len(found["trials"]) == 8
    best = found["best"]
    assert best["score"] == max(row["score"] or 0.0 for row in found["trials"])
    assert best["score"] == pytest.approx(300.0 * best["settings"]["agent.gamma"] + 10_000.5)
    assert found["seeds"] == [10_000, 10_001]
    config = read_trainer_config(tmp_path / "best.yaml")
    assert config.agent.gamma == best["settings"]["agent.gamma"]
    assert list(config.agent.net_arch) == best["settings"]["agent.net_arch"]
    assert config.steps == 1000
    assert json.loads((tmp_path / "trials.json").read_text(encoding="utf-8")) == found
    assert any(line.startswith("trial 8 of 8") for line in said)
    assert len({row["settings"]["agent.gamma"] for row in found["trials"]}) == 8


@pytest.mark.usefixtures("inline")
def test_the_score_is_that_of_all_seeds(tmp_path):
    row = made(tmp_path, seeds=[5, 1, 3]).run(trials=1)["trials"][0]
    gamma = row["settings"]["agent.gamma"]
    assert row["scores"] == pytest.approx([300 * gamma + seed for seed in (5, 1, 3)])
    assert row["score"] == pytest.approx(300 * gamma + 3)
    assert set(starts(tmp_path)) == {f"trial_0000/seed_{seed}" for seed in (5, 1, 3)}


@pytest.mark.usefixtures("inline")
def test_in_pieces_it_goes_the_same_way(tmp_path):
    whole = made(tmp_path / "whole").run()
    for trials in (1, 2, 5, 8):
        pieces = made(tmp_path / "pieces").run(trials=trials)
    assert told(pieces) == told(whole)
    assert made(tmp_path / "pieces").run() == pieces  # nothing is left to do
    assert set(starts(tmp_path / "pieces").values()) == {1}


@pytest.mark.usefixtures("inline")
def test_workers_change_no_figure(tmp_path):
    one = made(tmp_path / "one", seeds=3).run(workers=1)
    three = made(tmp_path / "three", seeds=3).run(workers=3)
    assert told(one) == told(three)


@pytest.mark.usefixtures("inline")
def test_the_seed_decides_the_draws(tmp_path):
    one, other = (made(tmp_path / str(k), seed=k).run(trials=2) for k in (1, 2))
    assert told(one) != told(other)


@pytest.mark.usefixtures("inline")
def test_stopped_within_a_trial_nothing_is_lost(tmp_path, monkeypatch):
    whole = made(tmp_path / "whole").run()

    class Stopped(InlineExecutor):
        left = 5

        def run(self, jobs, progress):
            Stopped.left -= 1
            if Stopped.left < 0:
                return Batch([job.lost("interrupted", None) for job in jobs], "partial")
            return super().run(jobs, progress)

    monkeypatch.setattr(jobs, "make_executor", Stopped)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "stopped").run()
    done = starts(tmp_path / "stopped")
    assert len(done) == 5  # two trials, and the first seed of the third
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)
    said = []
    found = made(tmp_path / "stopped").run(say=said.append)
    assert told(found) == told(whole)
    assert any("under way" in line for line in said)
    assert {starts(tmp_path / "stopped")[name] for name in done} == {1}


def test_killed_it_goes_on(tmp_path, monkeypatch):
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    folder, clock = tmp_path / "search", SystemClock()
    environment = os.environ | {PAUSE: "1.0", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, str(script), str(folder)], env=environment)
    for _ in range(3000):
        if (folder / "trial_0000" / "seed_10001" / "starts.txt").exists():
            break
        assert process.poll() is None
        clock.sleep_s(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "trials.json").exists()
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)
    found = made(folder).run(trials=3)
    assert told(found) == told(made(tmp_path / "whole").run(trials=3))
    counted = starts(folder)
    assert (counted["trial_0000/seed_10000"], counted["trial_0000/seed_10001"]) == (1, 2)
    states = [trial.state.name for trial in _study(folder).trials]
    assert states == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]


def _study(folder):
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.jsonl"))
    storage = optuna.storages.JournalStorage(backend)
    return optuna.load_study(study_name="trial", storage=storage)


@pytest.mark.usefixtures("inline")
def test_a_kill_between_queueing_and_failing_does_not_double_a_trial(tmp_path):
    made(tmp_path).run(trials=1)
    study = _study(tmp_path)
    trial = study.ask(distributions(made(tmp_path).search))
    study.enqueue_trial(trial.params, user_attrs={"again": trial.number})
    made(tmp_path).run(trials=3)
    gammas = [each.params["agent.gamma"] for each in _study(tmp_path).trials]
    assert gammas.count(trial.params["agent.gamma"]) == 2  # the failed one, and its repetition
    assert len(gammas) == 4


@pytest.mark.usefixtures("inline")
def test_what_does_not_go_together_or_fails_is_a_trial_and_not_the_end(tmp_path):
    space = {"agent.batch_size": [100, 64], "agent.gamma": [0.9, FAILS]}
    found = made(tmp_path, space=space, startup_trials=12, seeds=1).run(trials=12)
    failed = [row for row in found["trials"] if row["state"] == "failed"]
    assert {row["error"]["error"] for row in failed} == {"ConfigError", "AgentError"}
    assert all(
        row["settings"]["agent.batch_size"] == 64 or row["settings"]["agent.gamma"] == FAILS
        for row in failed
    )
    assert len(found["trials"]) == 12
    assert found["best"]["settings"] == {"agent.batch_size": 100, "agent.gamma": 0.9}


@pytest.mark.usefixtures("inline")
def test_the_poor_are_cut_short_and_kept(tmp_path):
    seeds = list(range(2))  # small seeds: settings decide, not the seed
    pruned = made(tmp_path / "on", seeds=seeds, trials=14).run()
    whole = made(tmp_path / "off", seeds=seeds, trials=14, prune=False).run()
    assert {row["state"] for row in whole["trials"]} == {"complete"}
    cut = [row for row in pruned["trials"] if row["state"] == "cut short"]
    assert cut
    assert all(row["number"] >= 3 for row in cut)
    for row in cut:
        assert row["score"] is None
        assert row["cut"]["look"] is None or row["cut"]["look"] >= 2
        result = json.loads((Path(row["folder"]) / "seed_0" / "result.json").read_text())
        assert result["steps"] < 1000 or len(row["scores"]) < 2 or row["cut"]["look"]
    assert pruned["best"]["score"] == max(row["score"] or 0.0 for row in pruned["trials"])


@pytest.mark.parametrize("draw", range(20))
def test_the_rule_is_that_of_the_median_pruner(draw):
    rng = Seeds(draw).child("looks").rng()
    before, ours = rng.normal(size=(5, 6)), rng.normal(-0.3, 1.0, size=6)
    study = optuna.create_study(
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
    )
    for values in before:
        trial = study.ask()
        for step, value in enumerate(values):
            trial.report(value, step)
        study.tell(trial, values[-1])
    trial, expected = study.ask(), None
    for step, value in enumerate(ours):
        trial.report(value, step)
        if trial.should_prune():
            expected = step
            break
    bars = [None if k < 2 else sorted(before[:, k])[2] for k in range(6)]
    assert Bars(bars).cut_at(ours) == expected


@pytest.mark.usefixtures("inline")
def test_another_question_in_the_same_folder_is_refused(tmp_path):
    made(tmp_path).run(trials=1)
    with pytest.raises(ConfigError, match="another question") as caught:
        made(tmp_path, space=SPACE | {"agent.ent_coef": [0.0, 0.1]}).run()
    assert "agent.ent_coef" in caught.value.found
    assert len(made(tmp_path).run(trials=2)["trials"]) == 2


@pytest.mark.parametrize(
    ("space", "match"),
    [
        ({"agent.gama": [0.9, 0.99]}, "gama"),
        ({"agnet.gamma": [0.9, 0.99]}, "agnet"),
        ({"steps.more": [1, 2]}, "more"),
    ],
)
def test_a_wrong_key_is_refused_at_once(tmp_path, space, match):
    with pytest.raises(ConfigError, match=match) as caught:
        made(tmp_path, space=space)
    assert "Known" in caught.value.remedy


def test_keys_that_may_be_anything_are_let_through(tmp_path):
    made(tmp_path, space={"env_params.x": [1, 2], "early_stopping.target": [1, 2]})


def test_without_a_space_there_is_nothing_to_search(tmp_path):
    with pytest.raises(ConfigError, match="nothing to search"):
        SettingsSearch(experiment(), tmp_path)


def test_choices_may_be_anything():
    space = {"a": [[64, 64], None, "relu", 1.5, True], "b": {"low": 1, "high": 9, "integer": True}}
    made = distributions(experiment(search={"space": space}).search)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    seen = [chosen(study.ask(made).params) for _ in range(60)]
    for value in space["a"]:
        assert any(each["a"] == value and type(each["a"]) is type(value) for each in seen)
    assert all(isinstance(each["b"], int) for each in seen)


@pytest.mark.usefixtures("inline")
def test_a_line_that_was_cut_off_and_a_lock_that_was_left_do_no_harm(tmp_path):
    whole = made(tmp_path / "whole", seeds=1).run(trials=3)
    made(tmp_path / "torn", seeds=1).run(trials=2)
    path = tmp_path / "torn" / "study.jsonl"
    lines = path.read_bytes()
    assert all(json.loads(line) for line in lines.splitlines())  # plain JSON, nothing pickled
    path.write_bytes(lines + b'{"op_code":4,"worker')
    path.with_name("study.jsonl.lock").symlink_to(path)
    assert told(made(tmp_path / "torn", seeds=1).run(trials=3)) == told(whole)
    assert path.read_bytes().startswith(lines)
