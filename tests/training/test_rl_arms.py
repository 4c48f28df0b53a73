"""Arms and experiment files: what they become, and what is refused before anything is trained."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import configure
from agent_gym.training.rl.arms import arms_of, overridden
from agent_gym.training.rl.experiment_config import (
    SEARCH_SEEDS_FROM,
    ExperimentConfig,
    Search,
    read_experiment,
    shipped_config,
)
from tests.training.experiment_samples import BASE, experiment

KEYS = st.text("abc", min_size=1, max_size=2)


def refused(match, **changes):
    with pytest.raises(ConfigError, match=match) as caught:
        arms_of(configure(ExperimentConfig, {"name": "x", "base": BASE} | changes, where="here"))
    return caught.value


def test_a_grid_is_every_combination():
    grid = {"agent.gamma": [0.9, 0.99], "agent.net_arch": [[64, 64], [32]]}
    arms = arms_of(experiment(grid=grid))
    assert [arm.name for arm in arms] == [
        "gamma_0.9_net_arch_64-64",
        "gamma_0.9_net_arch_32",
        "gamma_0.99_net_arch_64-64",
        "gamma_0.99_net_arch_32",
    ]
    assert [arm.config.agent.gamma for arm in arms] == [0.9, 0.9, 0.99, 0.99]
    assert arms[1].config.agent.net_arch == (32,)
    assert arms[1].overrides == {"agent.gamma": 0.9, "agent.net_arch": [32]}


def test_keys_that_end_alike_are_told_whole():
    grid = {"evaluation.every": [100, 200], "checkpoints.every": [100]}
    names = [arm.name for arm in arms_of(experiment(grid=grid))]
    assert names[0] == "evaluation.every_100_checkpoints.every_100"


def test_arms_take_the_base_and_the_common_overrides():
    arms = arms_of(
        experiment(
            grid=None,
            overrides={"steps": 500, "early_stopping.target": 90},
            arms={"plain": {}, "a2c": {"algo": "a2c", "agent": {"n_steps": 8}}},
        )
    )
    assert [arm.config.steps for arm in arms] == [500, 500]
    assert arms[0].config.early_stopping.target == 90
    assert (arms[1].config.algo, arms[1].config.agent.n_steps) == ("a2c", 8)
    assert arms[1].config.agent.learning_rate == 7e-4  # the defaults are those of its algorithm


def test_without_arms_there_is_the_base():
    (arm,) = arms_of(experiment(grid=None))
    assert (arm.name, arm.overrides) == ("base", {})


@given(st.dictionaries(KEYS, st.integers()), st.dictionaries(KEYS, st.integers(), min_size=1))
def test_overrides_change_their_keys_and_nothing_else(base, changes):
    before = dict(base)
    deep = {f"x.{key}": value for key, value in changes.items()}
    found = overridden(base, deep)
    assert base == before
    assert found == before | {"x": changes}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"grid": {"agent.gama": [0.9]}}, "gama"),
        ({"grid": {"agent.gamma": [2.0]}}, "gamma"),
        ({"grid": {"agent.gamma": []}}, "at least one value"),
        ({"grid": {"steps.more": [1]}}, "plain value"),
        ({"grid": {"n_envs": [2]}, "arms": {"a": {}}}, "either arms or a grid"),
        ({"arms": {"a": {}, "b": {"n_envs": 2}}}, "same training"),
        ({"arms": {"../a": {}}}, "cannot name a folder"),
        ({"name": "a/b"}, "cannot name a folder"),
        ({"seeds": 0}, "1 to"),
        ({"seeds": [1, 1]}, "different"),
        ({"seeds": [-1, 1]}, "different"),
        ({"base": "lander-poo"}, "lander-poo"),
        ({"arms": {"sac": {"algo": "sac", "agent": {}}}}, "sac"),
        ({"overrides": {"env": "CartPole-v9"}}, "CartPole"),
        ({"seed": 3}, "seed"),
    ],
)
def test_what_is_refused(changes, match):
    refused(match, **changes)


def test_an_error_names_the_arm():
    error = refused("gamma", arms={"good": {}, "bad": {"agent.gamma": 7}})
    assert "arm bad" in error.where
    assert "arm sac" in refused("sac", arms={"sac": {"algo": "sac", "agent": {}}}).where


def test_a_file_brings_its_base_along(tmp_path):
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(BASE), encoding="utf-8")
    path = tmp_path / "try.yaml"
    path.write_text("name: try\nbase: ./base.yaml\ngrid: {agent.gamma: [0.9]}\n", encoding="utf-8")
    config = read_experiment(path)
    (tmp_path / "base.yaml").unlink()
    assert config.base == BASE
    assert arms_of(config)[0].config.env == "CartPole-v1"


def test_a_file_that_is_wrong_is_named(tmp_path):
    path = tmp_path / "try.yaml"
    path.write_text("name: try\narm: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="arm") as caught:
        read_experiment(path)
    assert str(path) in caught.value.where
    assert "'arms'" in caught.value.remedy
    with pytest.raises(ConfigError, match="cannot read"):
        read_experiment(tmp_path / "none.yaml")


def test_the_seeds_of_a_search_are_not_those_of_its_winner():
    search = Search(space={"agent.gamma": [0.9, 0.99]}, seeds=3)
    assert search.seed_list() == tuple(range(SEARCH_SEEDS_FROM, SEARCH_SEEDS_FROM + 3))
    assert not set(search.seed_list()) & set(experiment(seeds=1000).seed_list())


@pytest.mark.parametrize(
    "space",
    [
        {},
        {"a": [1]},
        {"a": [1, 1]},
        {"a": {"low": 2, "high": 1}},
        {"a": {"low": 0, "high": 1, "log": True}},
        {"a": {"low": 0.5, "high": 4, "integer": True}},
    ],
)
def test_a_space_that_is_none(space):
    with pytest.raises(ConfigError):
        configure(Search, {"space": space}, where="search")


def test_shipped_files_are_named_with_the_nearest():
    with pytest.raises(ConfigError) as caught:
        shipped_config("gamma_experiment")
    assert "gamma_experiments" in caught.value.remedy
