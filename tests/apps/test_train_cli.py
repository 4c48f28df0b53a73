from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from rich.console import Console

from agent_gym.apps.cli import train_proofs, train_view, train_work
from agent_gym.apps.cli.train_options import TrainJob, TrainRuns, asked_config, steps_note
from agent_gym.apps.cli.train_view import Watched, progress_line, shown_progress, trained_view
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.training.rl.calibration import Calibration, Layout
from agent_gym.training.rl.config import TrainerConfig, read_trainer_config
from agent_gym.training.rl.reproducibility import ReproducibilityReport
from agent_gym.training.rl.schema import training_schema
from tests.apps.cli_samples import Call, make_call

TINY = {
    "algo": "a2c",
    "env": "CartPole-v1",
    "n_envs": 2,
    "steps": 60,
    "agent": {"net_arch": [8], "n_steps": 10},
    "evaluation": {"every": 30, "episodes": 2, "final_episodes": 3},
    "checkpoints": {"every": 20},
    "trackers": {"tensorboard": False},
}


@pytest.fixture
def call(tmp_path, monkeypatch, capsys) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return make_call("train", monkeypatch, capsys)


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def refuse(*_: Any, **__: Any) -> None:
    raise StoreError("no room")


def test_two_seeds_are_trained_judged_and_reported_and_not_trained_again(
    call, tiny, tmp_path, monkeypatch
):
    code, out, err = call("--config", tiny, "--seeds", 2, "--json")
    assert code == 0, err
    told = json.loads(out)
    folder = tmp_path / "home" / "experiments" / "tiny"
    assert told["folder"] == str(folder)
    assert [each["seed"] for each in told["seeds"]] == [0, 1]
    assert all(each["final_mean"] > 0 for each in told["seeds"])
    assert told["iqm"] is not None
    assert told["low"] <= told["iqm"] <= told["high"]
    best = max(told["seeds"], key=lambda each: each["best_mean"])
    assert told["model"] == str(folder / f"seed_{best['seed']}" / "best")
    assert (folder / "model.zip").read_bytes() == (Path(told["model"]) / "model.zip").read_bytes()
    assert json.loads((folder / "metrics.json").read_text())["seeds"] == told["seeds"]
    assert "<html" in (folder / "report.html").read_text()
    assert (folder / "curve.png").is_file()
    assert (tmp_path / "home" / "videos" / "tiny.mp4").stat().st_size > 1_000
    before = (folder / "seed_0" / "result.json").read_bytes()
    code, out, err = call("--config", tiny, "--seeds", 2, "--no-report")
    assert code == 0
    assert "2 of 2 runs were done before" in err
    assert "IQM over 2 seeds" in out
    assert (folder / "seed_0" / "result.json").read_bytes() == before
    with monkeypatch.context() as broken:
        broken.setattr(train_work, "write_report", refuse)
        code, out, _ = call("--config", tiny, "--seeds", 2, "--json")
    assert code == 4
    assert json.loads(out)["report_error"]["what"] == "no room"
    assert json.loads(out)["iqm"] == told["iqm"]
    code, _, err = call("--config", tiny, "--seeds", 2, "--set", "agent.gamma=0.5")
    assert code == 2
    assert "agent.gamma: 0.99 there, 0.5 here" in err
    code, _, err = call(
        *("--config", tiny, "--seed", 0, "--set", "agent.gamma=0.5", "--fresh", "--no-report")
    )
    assert code == 0
    assert json.loads((folder / "seed_0" / "config.json").read_text())["agent"]["gamma"] == 0.5
    assert (folder / "seed_1" / "result.json").is_file()


def test_a_seed_that_fails_is_told_and_exits_with_4(call, tiny, tmp_path, monkeypatch):
    folder = tmp_path / "home" / "experiments" / "tiny" / "seed_0"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").mkdir()  # where a file must go
    code, out, _ = call("--config", tiny, "--seeds", 1)
    assert code == 4
    assert "error" in out


def test_stopped_by_ctrl_c_it_exits_with_130_keeps_a_checkpoint_and_goes_on(tmp_path):
    path = tmp_path / "long.yaml"
    path.write_text(yaml.safe_dump(TINY | {"steps": 2_000_000, "checkpoints": {"every": 40}}))
    environment = os.environ | {"AGENT_GYM_HOME": str(tmp_path / "home")}
    run = "from agent_gym.apps.cli.main import main; main()"
    words = [sys.executable, "-c", run, "train", "--config", str(path)]
    process = subprocess.Popen(
        [*words, "--seeds", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    kept = tmp_path / "home" / "experiments" / "long" / "seed_0" / "checkpoints"
    for _ in range(1_000):
        if list(kept.glob("step_*")) or process.poll() is not None:
            break
        SystemClock().sleep_s(0.1)
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Kept in" in err
    assert "goes on from there" in err
    assert list(kept.glob("step_*"))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), "what is to be trained"),
        (("--algo", "pppo"), "Did you mean 'ppo'"),
        (("--env", "LunarLandr-v3"), "LunarLander-v3"),
        (("--algo", "sac", "--env", "LunarLander-v3"), "LunarLanderContinuous-v3"),
        (("--config", "no-such"), "no shipped config"),
        (("--config", "gone.yaml"), "no such training file"),
        (("--config", "gamma_experiments"), "agent-gym experiment run gamma_experiments"),
        (("--algo", "ppo", "--steps", "-5"), "--steps"),
        (("--algo", "ppo", "--seeds", "0"), "--seeds"),
        (("--algo", "ppo", "--seed", "-1"), "--seed"),
        (("--algo", "ppo", "--set", "agent.gama=1"), "Did you mean 'gamma'"),
        (("--algo", "ppo", "--set", "n_env=1"), "Did you mean 'n_envs'"),
        (("--algo", "ppo", "--set", "algo=a2c"), "said twice"),
        (("--algo", "ppo", "--set", "agent.gamma"), "--set takes name=value"),
        (("--algo", "ppo", "--set", "agent.batch_size=7"), "do not divide"),
        (("--algo", "ppo", "--name", "../x"), "--name"),
        (("lander-ppo",), "no such command"),
    ],
)
def test_what_cannot_be_meant_exits_with_2_and_writes_nothing(call, tmp_path, words, hint):
    code, out, err = call(*words)
    if not words:
        assert "--config" in out + err  # help
    else:
        assert code == 2
        assert hint in " ".join(err.split())
    assert not (tmp_path / "home").exists()


def test_a_home_that_cannot_be_written_exits_with_2(call, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", "/proc/none")
    code, _, err = call("--algo", "ppo")
    assert code == 2
    assert "cannot be written" in err


def test_a_file_of_nonsense_exits_with_2(call, tmp_path):
    for text in ("- 1\n", "a: [1", "\xff"):
        (tmp_path / "odd.yaml").write_text(text, encoding="latin-1")
        assert call("--config", tmp_path / "odd.yaml")[0] == 2


def test_seeds_workers_and_folders_as_they_are_asked_for():
    assert TrainRuns().seed_list() == (0, 1, 2, 3, 4)
    assert TrainRuns(seed=7).seed_list() == (7,)
    assert TrainRuns(seed=7, seeds=2).seed_list() == (7, 8)
    assert TrainRuns(workers=3).workers_for(2) == 2
    assert TrainRuns(workers=1).workers_for(2) == 1


def test_what_the_command_says_goes_over_the_file(tiny):
    job = TrainJob(config=str(tiny), steps=120)
    made = asked_config(job, ["agent.gamma=0.9", "evaluation.episodes=4"])
    assert (made.steps, made.agent.gamma, made.evaluation.episodes) == (120, 0.9, 4)
    assert made.n_envs == TINY["n_envs"]
    with pytest.raises(ConfigError, match="plain value"):
        asked_config(job, ["steps.more=1"])


def test_steps_that_are_no_multiple_are_told():
    config = TrainerConfig(steps=250_000, agent={"n_steps": 128})
    assert "251,904 will be taken" in str(steps_note(config))
    assert steps_note(config.model_copy(update={"steps": 2_048 * 3})) is None
    sac = TrainerConfig(algo="sac", env="Pendulum-v1", n_envs=4, steps=10)
    assert "12 will be taken" in str(steps_note(sac))


def test_a_line_of_progress_says_how_long_it_takes(tmp_path):
    for seed, steps in ((0, 50), (1, 100)):
        run = tmp_path / f"seed_{seed}"
        run.mkdir()
        (run / "metrics.csv").write_text(f"step,loss\n10,1\n{steps},1\n")
    (tmp_path / "seed_1" / "evaluations.csv").write_text(
        "step,seed,reward,length\n50,1,10.0,3\n50,2,20.0,3\n"
    )
    watched = Watched(tmp_path, (0, 1), 200)
    steps = {seed: watched.steps(seed) for seed in watched.seeds}
    line = progress_line(steps, watched, 50, 10.0)
    assert line == "150 of 400 steps, about 25 s left: seed 0 25%, seed 1 50% (greedy 15.0)"
    assert "left" not in progress_line(steps, watched, 150, 10.0)


@pytest.mark.parametrize(("terminal", "said"), [(True, "all seeds"), (False, "of 400 steps")])
def test_bars_at_a_terminal_and_lines_elsewhere(tmp_path, monkeypatch, terminal, said):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=120)
    monkeypatch.setattr(train_view, "notes", console)
    monkeypatch.setattr(train_view, "LINE_S", 0.01)
    with shown_progress(Watched(tmp_path, (0, 1), 200)):
        SystemClock().sleep_s(0.5)
    assert "seed 1" in screen.getvalue()
    assert said in screen.getvalue()


def test_a_table_shows_failed_seeds_with_their_reason():
    row: dict[str, Any] = {
        "seed": 0,
        "status": "error",
        "error": {"what": "disk full"},
        "final_mean": None,
    }
    said = {"title": "t", "seeds": [row], "iqm": None, "files": {}, "notes": []}
    table: Any = trained_view(said)
    assert "disk full" in list(table.renderables[0].columns[2].cells)


@pytest.mark.parametrize(("resumed", "code"), [("aa", 0), ("bb", 4)])
def test_verify_tells_whether_a_killed_run_ends_the_same(call, tiny, monkeypatch, resumed, code):
    asked: dict[str, Any] = {}

    def verified(config: TrainerConfig, **options: Any) -> ReproducibilityReport:
        asked.update(options, config=config)
        return ReproducibilityReport(
            algo=config.algo,
            env=config.env,
            seed=options["seed"],
            steps=options["steps"],
            unbroken="aa",
            repeated="aa",
            resumed=resumed,
            killed_at=(20,),
            differing_files=(),
        )

    monkeypatch.setattr(train_proofs, "verify_reproducibility", verified)
    words = ("verify", "--config", tiny, "--set", "agent.gamma=0.5")
    found, out, err = call(*words, "--kills", 2, "--seed", 5, "--json")
    assert found == code, err
    assert json.loads(out)["exact"] == (code == 0)
    assert (asked["kills"], asked["seed"], asked["config"].agent.gamma) == (2, 5, 0.5)
    found, out, _ = call(*words)
    assert found == code
    assert ("NOT exact" in out) == (code == 4)
    assert call("verify", "--kills", 0, "--config", tiny)[0] == 2
    assert call("verify")[0] == 2


def test_speed_is_measured_and_taken_only_when_asked(call, tiny, tmp_path, monkeypatch):
    code, out, err = call("speed", "--config", tiny, "--seconds", 0.1, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["as_configured"]["threads"] == 1
    assert {each["n_envs"] for each in told["layouts"]} == {1, 2, 4, 8}
    assert told["recommended"]["learns_alike"]
    layout = Layout(threads=2, n_envs=2, batch_size=None, steps_per_s=9.0, learns_alike=True)
    found = Calibration(layouts=(layout,), as_configured=layout, recommended=layout)
    monkeypatch.setattr(train_work, "calibrate", lambda *_, **__: found)
    config = TrainerConfig.model_validate(TINY)
    assert train_work.with_threads(config, tmp_path, (0,)).threads == 2
    (tmp_path / "seed_0").mkdir()
    (tmp_path / "seed_0" / "config.json").write_text(json.dumps({"threads": 3}))
    assert train_work.with_threads(config, tmp_path, (0,)).threads == 3  # a run that has begun


def test_the_schema_takes_what_the_config_takes_and_refuses_what_it_refuses(call):
    code, out, _ = call("schema")
    assert code == 0
    schema = json.loads(out)
    assert schema == training_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid(TINY)
    assert check.is_valid({"agent": {"n_steps": 4}})
    assert check.is_valid({"algo": "sac", "agent": {"tau": 0.1}})
    assert not check.is_valid({"algo": "sac", "agent": {"n_epochs": 4}})
    assert not check.is_valid({"agent": {"tau": 0.1}})
    assert not check.is_valid({"algo": "pppo"})
    assert not check.is_valid({"step": 4})
    assert not check.is_valid({"steps": -4})
    code, out, _ = call("schema", "--experiment")
    assert "grid" in json.loads(out)["properties"]


def test_the_commented_example_names_every_setting():
    path = Path(__file__).resolve().parents[2] / "agent_gym" / "configs" / "training_schema.yaml"
    text = path.read_text()
    assert isinstance(read_trainer_config(path), TrainerConfig)
    said = yaml.safe_load(text)
    assert list(said) == list(TrainerConfig.model_fields)
    for name, field in TrainerConfig.model_fields.items():
        fields = getattr(field.annotation, "model_fields", None)
        if fields and isinstance(said[name], dict) and name != "agent":
            assert list(said[name]) == list(fields), name
    agent = type(TrainerConfig().agent).model_fields
    assert sorted(said["agent"]) == sorted(agent)
