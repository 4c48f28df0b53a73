"""What ``train``, ``watch`` and ``experiment`` say: the way out, digits, and what was meant."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent_gym.apps.cli import train_work
from agent_gym.apps.cli.evaluate_model import view_of
from agent_gym.apps.cli.experiment_view import summary_view, told_if_stopped
from agent_gym.apps.cli.train_options import TrainRuns, steps_note
from agent_gym.apps.cli.train_view import trained_view
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.run_records import FRESH, read_result
from agent_gym.training.rl.trainer import Trainer
from tests.apps.cli_samples import Call, make_call

TINY = TrainerConfig.model_validate(
    {
        "algo": "a2c",
        "env": "CartPole-v1",
        "n_envs": 2,
        "steps": 40,
        "agent": {"net_arch": [8], "n_steps": 10},
        "evaluation": {"every": 20, "episodes": 2, "final_episodes": 3},
        "trackers": {"tensorboard": False},
    }
)


@pytest.fixture
def call(tmp_path, monkeypatch, capsys) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return make_call("train", monkeypatch, capsys)


@pytest.fixture
def two(tmp_path) -> Path:
    """Return a folder of two finished seeds."""
    for seed in (0, 1):
        Trainer(TINY, seed, tmp_path / "two" / f"seed_{seed}").train()
    return tmp_path / "two"


def shown(view: Any) -> str:
    screen = io.StringIO()
    Console(width=300, file=screen).print(view)
    return " ".join(screen.getvalue().split())


def concluded(folder: Path, **runs: Any) -> dict[str, Any]:
    asked = TrainRuns(report=False, **runs)
    results = [read_result(folder / f"seed_{seed}") for seed in asked.seed_list()]
    return train_work.conclude(TINY, folder, asked, [each for each in results if each is not None])


def failed(**more: Any) -> dict[str, Any]:
    return {"seed": 3, "status": "error", "final_mean": None, "error": more}


def test_the_reason_of_a_failed_seed_comes_with_the_way_out():
    error = {
        "what": "training diverged",
        "where": "step 20",
        "found": "nan",
        "expected": None,
        "remedy": "Lower agent.learning_rate",
    }
    said = {"title": "t", "seeds": [failed(**error)], "iqm": None, "files": {}, "notes": []}
    text = shown(trained_view(said))
    assert "Seed 3 failed: training diverged (at step 20; found nan)" in text
    assert "Lower agent.learning_rate" in text


def test_a_failed_run_of_an_experiment_is_told_with_the_way_out():
    arm = {
        "name": "a",
        "n": 0,
        "failed": 1,
        "missing": 0,
        "iqm": None,
        "mean": None,
        "worst": None,
        "best": None,
        "steps_to_threshold": None,
        "cpu_s": None,
        "against_first": None,
        "runs": [{"seed": 0, "status": "error", "error": {"what": "no", "remedy": "Do better"}}],
    }
    assert "Do better" in shown(summary_view("t", {"arms": [arm], "notes": []}))


def test_returns_of_a_market_have_digits():
    row = {
        "seed": 0,
        "status": "done",
        "final_mean": -0.0031,
        "final_low": -0.0042,
        "final_high": -0.0012,
        "share_above_200": None,
        "best_step": 10,
        "steps": 10,
        "cpu_s": None,
        "error": None,
    }
    figures = {"iqm": -0.0031, "low": -0.0042, "high": -0.0012, "n": 1}
    said = {"title": "t", "seeds": [row], "files": {}, "notes": []} | figures
    text = shown(trained_view(said))
    assert text.count("-0.0031 [-0.0042, -0.0012]") == 2
    assert "-0.0 " not in text
    played = {
        "algo": "ppo",
        "env": "market",
        "step": 9,
        "episodes": 2,
        "mean": -0.0031,
        "low": None,
        "high": None,
        "deviation": 0.0005,
        "threshold": 0.0,
        "share": 0.5,
        "share_low": 0.1,
        "share_high": 0.9,
        "mean_length": 9.0,
        "worst": [{"seed": 1, "reward": -0.004}],
        "best": [{"seed": 2, "reward": 271.4}],
        "csv": "x",
    }
    text = shown(view_of(played))
    for word in ("-0.0031", "0.0005", "1 (-0.004)", "2 (271)"):
        assert word in text


def test_figures_are_of_all_seeds_of_the_folder(two):
    told = concluded(two, seed=0)
    assert told["n"] == 2
    assert [each["seed"] for each in told["seeds"]] == [0, 1]
    metrics = json.loads((two / "metrics.json").read_text())
    assert metrics["arms"][0]["seeds"] == 2
    assert [each["seed"] for each in metrics["seeds"]] == [0, 1]
    summary = json.loads((two / "summary.json").read_text())
    assert [run["seed"] for run in summary["arms"][0]["runs"]] == [0, 1]
    assert told["status"] == "complete"


def test_seeds_of_other_settings_or_without_an_end_do_not_count(two, capsys):
    path = two / "seed_1" / "config.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {"n_envs": 5}))
    assert concluded(two, seed=0)["n"] == 1
    path.write_text(json.dumps(said))
    (two / "seed_1" / "result.json").unlink()
    told = concluded(two, seed=0)
    assert (told["n"], told["status"]) == (1, "complete")
    path.write_text("{")
    assert concluded(two, seed=0)["n"] == 1
    assert "seed 1 is not counted" in capsys.readouterr().err


def test_a_damaged_model_hides_no_figure(two):
    for seed in (0, 1):
        file = two / f"seed_{seed}" / "best" / "model.zip"
        file.write_bytes(file.read_bytes() + b"!")
    told = concluded(two, seeds=2)
    assert told["n"] == 2
    assert told["report_error"]["what"] == "model.zip of a model is damaged"
    assert FRESH in told["report_error"]["remedy"]
    assert "IQM over 2 seeds" in shown(trained_view(told))


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
def test_whoever_stops_it_is_told_how_it_goes_on(tmp_path, monkeypatch, capsys, stop):
    def stopped(*_: Any) -> None:
        raise stop

    monkeypatch.setattr(train_work, "run_seeds", stopped)
    (tmp_path / "seed_0" / "checkpoints" / "step_000000000020").mkdir(parents=True)
    with pytest.raises(type(stop)):
        train_work.train_seeds(TINY, tmp_path, TrainRuns(seed=0))
    err = capsys.readouterr().err
    assert "Stopped. Kept in" in err
    assert "goes on from there" in err
    with pytest.raises(type(stop)), told_if_stopped():
        raise stop
    assert "the same command goes on" in capsys.readouterr().err


def test_seeds_and_workers_are_not_mixed_up(tmp_path):
    assert "seeds 0, 1 (2 at a time), into" in train_work.start_line(TINY, (0, 1), 2, tmp_path)
    assert "steps, seed 7, into" in train_work.start_line(TINY, (7,), 1, tmp_path)
    one = TINY.model_copy(update={"n_envs": 1, "steps": 45})
    assert "(an iteration of 1 environment)" in str(steps_note(one))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--algo", "ppo", "--set", "agent"), "--set agent.gamma=0.99"),
        (("--algo", "ppo", "--set", "early_stopping.patienc=5"), "Did you mean 'patience'"),
        (("--algo", "ppo", "--set", "early_stopping={}"), "name a target or a patience"),
        (("--algo", "ppo", "--set", "trackers.wandb=offline"), "pip install wandb"),
        (("--algo", "ppo", "--set", "threads=1000000"), "threads"),
        (("--algo", "ppo", "--set", "n_envs=1000000"), "n_envs"),
        (("--algo", "ppo", "--set", "agent.net_arch=[0]"), "net_arch"),
        (
            ("--algo", "sac", "--env", "Pendulum-v1", "--set", "agent.ent_coef=foo"),
            "a number, auto, or auto_START",
        ),
        (("--config", "twice.yaml"), "a key is written twice"),
    ],
)
def test_what_cannot_work_exits_with_2_and_leaves_nothing(call, tmp_path, monkeypatch, words, hint):
    monkeypatch.setattr("agent_gym.training.rl.setup.find_spec", lambda _name: None)
    (tmp_path / "twice.yaml").write_text("algo: ppo\nalgo: a2c\n")
    code, _, err = call(*words)
    assert code == 2, err
    assert hint in " ".join(err.split())
    assert "period=21" not in err
    assert not (tmp_path / "home").exists()


def test_the_help_lists_what_can_be_trained(call):
    code, out, _ = call("--help")
    assert code == 0
    words = out.replace("│", " ").split()
    assert any("lander-ppo" in word for word in words)
    assert not any("gamma_experiments" in word for word in words)


def test_a_seed_and_a_choice_of_episodes_exclude_each_other(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    watch = make_call("watch", monkeypatch, capsys)
    code, _, err = watch("any", "--seed", 17, "--which", "best")
    assert code == 2
    assert "--seed 17 --which best" in " ".join(err.split())
