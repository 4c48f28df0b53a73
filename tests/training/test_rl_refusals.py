"""Settings that cannot work are refused with their config, by the name that was written."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent_gym.agents.sb3.config import CONFIGS, SACConfig
from agent_gym.core.errors import ConfigError
from agent_gym.training.rl.arms import check_environment, trainer_config
from agent_gym.training.rl.config import TrainerConfig, as_trainer_config, read_mapping
from agent_gym.training.rl.experiment_config import shipped_names, shipped_trainings
from agent_gym.training.rl.jobs import line
from agent_gym.training.rl.result import error_text, figure_text, interval_text
from agent_gym.training.rl.setup import make_plan
from tests.training.rl_samples import small_config


@pytest.mark.parametrize(
    "said",
    [
        {"threads": 65},
        {"threads": 1_000_000},
        {"n_envs": 4_097, "agent": {"batch_size": 2}},
        {"agent": {"net_arch": [0]}},
        {"agent": {"net_arch": [64, -3]}},
        {"algo": "sac", "agent": {"buffer_size": 10_000_001}},
        {"early_stopping": {}},
        {"early_stopping": {"min_delta": 1.0}},
    ],
)
def test_what_cannot_work_is_refused(said):
    with pytest.raises(ConfigError):
        as_trainer_config(said, where="here")


def test_the_largest_that_are_taken():
    made = TrainerConfig(threads=64, n_envs=4_096, early_stopping={"patience": 1})
    assert (made.threads, made.n_envs) == (64, 4_096)
    assert CONFIGS["sac"](buffer_size=10_000_000, net_arch=(1,)).net_arch == (1,)


@pytest.mark.parametrize("value", [0.0, 0.2, 1, "auto", "auto_0.1", "auto_1", "auto_1e-3"])
def test_entropy_coefficients_that_the_library_takes(value):
    assert SACConfig(ent_coef=value).ent_coef == value


@pytest.mark.parametrize("value", ["foo", "auto_", "auto_x", "auto_0", "auto_-1", "0.1", -0.1])
def test_entropy_coefficients_that_it_does_not_take(value):
    for algo in ("sac", "tqc"):
        with pytest.raises(ValidationError, match="ent_coef"):
            CONFIGS[algo](ent_coef=value)


def test_an_absent_library_is_refused_with_the_plan(tmp_path, monkeypatch):
    monkeypatch.setattr("agent_gym.training.rl.setup.find_spec", lambda _name: None)
    monkeypatch.setattr("agent_gym.agents.sb3.jax_twin.find_spec", lambda _name: None)
    config = small_config("sac", trackers={"wandb": "offline"})
    with pytest.raises(ConfigError, match="wandb is not installed"):
        make_plan(config, 0, tmp_path / "x")
    with pytest.raises(ConfigError, match="JAX learner is not installed"):
        make_plan(small_config("sac", learner="sbx"), 0, tmp_path / "x")
    with pytest.raises(ConfigError, match="not learned in JAX"):
        make_plan(small_config("ppo", learner="sbx"), 0, tmp_path / "x")
    with pytest.raises(ConfigError, match="wandb is not installed"):
        check_environment(config, where="arm a")
    assert make_plan(small_config("sac"), 0, tmp_path / "x").config.learner == "sb3"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("algo: ppo\nsteps: 1\nalgo: a2c\n", "algo", (1, 3)),
        ("steps: 1\nagent:\n  gamma: 0.9\n  n_steps: 5\n  gamma: 0.8\n", "gamma", (3, 5)),
        ('{"steps": 1,\n "steps": 2}\n', "steps", (1, 2)),
        ("steps: 1\nagent: {gamma: 0.9, 'gamma': 0.8}\n", "gamma", (2, 2)),
    ],
)
def test_a_key_that_is_written_twice_is_refused(tmp_path, text, key, lines):
    path = tmp_path / "twice.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="written twice") as told:
        read_mapping(path)
    assert told.value.found == key
    assert told.value.where == f"{path}, line {lines[1]}"
    assert f"line {lines[0]}" in str(told.value.remedy)


def test_keys_that_only_look_alike_are_taken(tmp_path):
    path = tmp_path / "once.yaml"
    path.write_text(
        "outer: {inner: &a {x: 1, y: 1}}\n"
        "more: &b {<<: *a, x: 2}\n"
        "last: {<<: *b, x: 3}\n"
        "agent: {gamma: 1}\nevaluation: {gamma: 2}\n1: a\n'1': b\n"
    )
    found = read_mapping(path)
    assert found["last"] == {"x": 3, "y": 1}
    assert (found[1], found["1"]) == ("a", "b")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("early_stopping.patienc", "patience"),
        ("evaluation.episode", "episodes"),
        ("trackers.wandbb", "wandb"),
        ("agent.gama", "gamma"),
        ("step", "steps"),
    ],
)
def test_a_wrong_key_inside_a_part_is_set_right_there(key, meant):
    with pytest.raises(ConfigError) as told:
        trainer_config({}, {key: 5}, where="here")
    assert f"Did you mean '{meant}'" in str(told.value.remedy)


def test_shipped_trainings_are_those_that_can_be_trained():
    assert set(shipped_names()) - set(shipped_trainings()) == {
        "baseline_training",
        "gamma_experiments",
    }
    assert "lander-ppo" in shipped_trainings()


def test_small_returns_have_digits():
    assert figure_text(-0.0031415) == "-0.00314"
    assert figure_text(259.04) == "259.0"
    assert interval_text(-0.0004, -0.0019, 0.0) == "-0.0004 [-0.0019, 0.0]"
    assert interval_text(12.34, None, None) == "12.3"


def test_the_line_of_a_run_has_digits_or_the_way_out():
    result = {"status": "done", "final_mean": -0.0012, "steps": 9, "cpu_s": None, "error": None}
    row = {"label": "m", "seed": 1, "status": "ok", "result": result}
    assert line(row) == "m seed 1: -0.0012 after 9 steps"
    error = {"what": "it diverged", "where": "step 5", "found": "nan", "remedy": "Go slower"}
    row |= {"status": "error", "result": result | {"status": "error", "error": error}}
    assert line(row) == "m seed 1: error: it diverged (at step 5; found nan). Go slower"
    assert error_text(None, "interrupted") == "interrupted"
