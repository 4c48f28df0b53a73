import json
from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env

from agent_gym.core import ConfigError, Seeds
from agent_gym.envs import MarketEnv
from agent_gym.envs.exact import ExactEnv
from agent_gym.envs.gym_vec import GymVecEnv
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.envs.training_env import (
    EVALUATION_SHIFT,
    EnvRecipe,
    describe_env,
    evaluation_recipe,
    make_single_env,
    make_vec_env,
    resolve_recipe,
)
from agent_gym.exchange.kernel.layout import PRIVATE_FEATURES
from agent_gym.markets.writers import write_series
from tests.samples import random_bars

KINDS = {"ppo": "any", "a2c": "any", "sac": "continuous", "td3": "continuous", "dqn": "discrete"}
LANDER, SMOOTH = "LunarLander-v3", "LunarLanderContinuous-v3"
DRAWN = {"market": {"use": "synthetic/btc-1h", "params": {"n_bars": 800}}, "episode_bars": 64}


def resolve(env, algo="ppo", params=None, continuous=None, backend="gymnasium"):
    return resolve_recipe(env, params or {}, continuous, backend, actions=KINDS[algo], algo=algo)


@pytest.mark.parametrize("algo", ["sac", "td3"])
def test_an_algorithm_for_numbers_is_refused_on_choices_with_the_fix_in_words(algo):
    with pytest.raises(ConfigError) as refused:
        resolve(LANDER, algo)
    text = str(refused.value)
    assert algo in text
    assert "LunarLanderContinuous-v3" in text
    assert "continuous: auto" in text


def test_an_algorithm_for_choices_is_refused_on_numbers_with_the_fix_in_words():
    with pytest.raises(ConfigError, match=r"dqn.*Use LunarLander-v3, or write continuous: auto"):
        resolve(SMOOTH, "dqn")
    with pytest.raises(ConfigError, match=r"dqn.*Use ppo, a2c, sac"):
        resolve("Pendulum-v1", "dqn")


@pytest.mark.parametrize(
    ("env", "algo", "continuous", "expected"),
    [
        (LANDER, "sac", "auto", SMOOTH),
        (LANDER, "ppo", "auto", LANDER),
        (LANDER, "dqn", "auto", LANDER),
        (SMOOTH, "dqn", "auto", LANDER),
        (SMOOTH, "td3", "auto", SMOOTH),
        (SMOOTH, "ppo", "auto", SMOOTH),
        (LANDER, "ppo", True, SMOOTH),
        (SMOOTH, "ppo", False, LANDER),
        (SMOOTH, "sac", None, SMOOTH),
        ("MountainCar-v0", "sac", "auto", "MountainCarContinuous-v0"),
    ],
)
def test_the_variant_that_is_meant_is_made(env, algo, continuous, expected):
    recipe = resolve(env, algo, continuous=continuous)
    assert recipe.env == expected
    kind = gym.spaces.Box if recipe.continuous else gym.spaces.Discrete
    assert isinstance(make_single_env(recipe).action_space, kind)
    assert isinstance(make_vec_env(recipe, 2, Seeds(0)).action_space, kind)


def test_a_variant_keeps_what_was_set():
    recipe = resolve(LANDER, "sac", {"gravity": -9.0, "enable_wind": True}, "auto")
    assert recipe == EnvRecipe(SMOOTH, {"gravity": -9.0, "enable_wind": True}, True)
    assert make_vec_env(recipe, 1, Seeds(0)).get_attr("gravity") == [-9.0]
    by_flag = resolve(LANDER, "sac", {"continuous": True})
    assert by_flag == EnvRecipe(LANDER, {"continuous": True}, True)


def test_a_game_without_a_variant_says_which_algorithms_play_it():
    for continuous in ("auto", None):
        with pytest.raises(ConfigError, match="ppo, a2c, dqn"):
            resolve("CartPole-v1", "sac", continuous=continuous)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("LunarLandr-v3", "LunarLander-v3"),
        ("LunarLander-v2", "LunarLander-v3"),
        ("lunarlander-v3", "LunarLander-v3"),
        ("markt", "market"),
        ("agent_gym/Market-v1", "env: market"),
        ("no_such_package:Game-v0", "no_such_package"),
    ],
)
def test_an_unknown_environment_is_named_with_the_nearest(wrong, right):
    with pytest.raises(ConfigError) as refused:
        resolve(wrong)
    assert right in str(refused.value)


@pytest.mark.parametrize(
    ("env", "params", "words"),
    [
        (LANDER, {"gravitu": -9.0}, "gravitu.*Did you mean 'gravity'"),
        (LANDER, {"gravity": 3.0}, "between -12 and 0"),
        (LANDER, {"render_mode": "human"}, "watch"),
        ("market", {"episode_barz": 3}, "episode_barz.*Did you mean 'episode_bars'"),
        ("market", {"roles": ["a", "b"]}, "roles"),
        ("market", {"actions": {"kind": "discrete", "levels": [1.0]}}, "levels"),
    ],
)
def test_a_wrong_parameter_is_named(env, params, words):
    with pytest.raises(ConfigError, match=words):
        resolve(env, params=params)


def test_a_limit_of_time_can_be_set():
    env = make_vec_env(resolve("CartPole-v1", params={"max_episode_steps": 5}), 1, Seeds(0))
    env.reset()
    ends = [env.step(np.array([i % 2]))[2][0] for i in range(5)]
    assert ends == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("algo", "actions", "continuous", "expected"),
    [
        ("ppo", None, None, "discrete"),
        ("sac", None, None, "continuous"),
        ("dqn", None, None, "discrete"),
        ("sac", {"kind": "discrete"}, "auto", "continuous"),
        ("dqn", {"kind": "continuous"}, "auto", "discrete"),
        ("ppo", {"kind": "continuous"}, None, "continuous"),
        ("ppo", None, True, "continuous"),
        ("ppo", {"kind": "continuous"}, False, "discrete"),
    ],
)
def test_a_market_is_acted_in_as_the_algorithm_can(algo, actions, continuous, expected):
    params = DRAWN if actions is None else DRAWN | {"actions": actions}
    recipe = resolve("market", algo, params, continuous)
    assert recipe.params["actions"]["kind"] == expected
    assert recipe.continuous == (expected == "continuous")
    env = make_vec_env(recipe, 3, Seeds(0))
    assert isinstance(env, SB3VecEnv)
    kind = gym.spaces.Box if recipe.continuous else gym.spaces.Discrete
    assert isinstance(env.action_space, kind)


def test_a_market_said_to_be_acted_in_otherwise_is_refused():
    with pytest.raises(ConfigError, match=r"sac.*kind: continuous.*continuous: auto"):
        resolve("market", "sac", DRAWN | {"actions": {"kind": "discrete"}})
    with pytest.raises(ConfigError, match="sac"):
        resolve("market", "sac", DRAWN, continuous=False)


def test_the_other_kind_of_targets_spans_the_same_positions():
    levels = {"kind": "discrete", "levels": [0.0, 0.5, 2.0]}
    smooth = resolve("market", "sac", DRAWN | {"actions": levels}, "auto").params["actions"]
    assert smooth == {"kind": "continuous", "low": 0.0, "high": 2.0}
    bounds = {"kind": "continuous", "low": 0.0, "high": 1.0}
    coarse = resolve("market", "dqn", DRAWN | {"actions": bounds}, "auto").params["actions"]
    assert coarse["levels"] == [0.0, 0.5, 1.0]


def test_a_drawn_market_is_evaluated_on_another_draw():
    recipe = resolve("market", params=DRAWN | {"market_seed": 5})
    apart = evaluation_recipe(recipe, {})
    assert apart.params["market_seed"] == 5 + EVALUATION_SHIFT
    assert make_single_env(apart).stage.tape.bars != make_single_env(recipe).stage.tape.bars
    assert evaluation_recipe(recipe, {"market_seed": 8}).params["market_seed"] == 8
    longer = evaluation_recipe(recipe, {"market": {"params": {"n_bars": 900}}})
    assert longer.params["market"] == {"use": "synthetic/btc-1h", "params": {"n_bars": 900}}
    assert recipe.params["market"]["params"]["n_bars"] == 800
    other = {"use": "known/m1", "params": {}}
    assert evaluation_recipe(recipe, {"market": other}).params["market"] == other
    assert "market_seed" not in resolve("market", params=DRAWN).params


def test_a_recorded_market_needs_another_span(tmp_path):
    path = tmp_path / "bars.csv"
    write_series(path, random_bars(900, 1, kind="spot"))
    market = {"use": "file", "params": {"path": str(path), "end": "2024-01-20"}}
    recipe = resolve("market", params={"market": market, "episode_bars": 64})
    with pytest.raises(ConfigError, match=r"another span.*start"):
        evaluation_recipe(recipe, {})
    with pytest.raises(ConfigError, match="another span"):
        evaluation_recipe(recipe, {"market_seed": 9})
    late = {"market": {"params": {"start": "2024-01-20T01:00", "end": None}}, "warmup_bars": 10}
    apart = evaluation_recipe(recipe, late)
    assert "market_seed" not in apart.params
    one, other = (make_single_env(r).stage.tape.bars.ts for r in (recipe, apart))
    assert one[-1] < other[0]
    with pytest.raises(ConfigError, match=r"overlaps.*2024-01-20"):
        evaluation_recipe(recipe, {"market": {"params": {"start": "2024-01-20", "end": None}}})


def test_a_game_is_evaluated_with_what_differs_and_checked():
    recipe = resolve(LANDER, params={"gravity": -9.0})
    assert evaluation_recipe(recipe, {}) == recipe
    windy = evaluation_recipe(recipe, {"enable_wind": True})
    assert windy.params == {"gravity": -9.0, "enable_wind": True}
    with pytest.raises(ConfigError, match="enable_wind"):
        evaluation_recipe(recipe, {"enable_win": True})
    with pytest.raises(ConfigError, match="another kind of actions"):
        evaluation_recipe(recipe, {"continuous": True})
    with pytest.raises(ConfigError, match="another kind of actions"):
        evaluation_recipe(resolve("market", params=DRAWN), {"actions": {"kind": "continuous"}})


@pytest.mark.parametrize("env", [LANDER, SMOOTH, "CartPole-v1", "Pendulum-v1", "market"])
def test_a_description_is_json_and_true(env):
    recipe = resolve(env, params=DRAWN if env == "market" else None)
    told = describe_env(recipe)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    made = make_vec_env(recipe, 2, Seeds(0))
    assert isinstance(made, ExactEnv)
    assert tuple(told["observation_space"]["shape"]) == made.observation_space.shape
    assert len(told["feature_names"]) == made.reset().shape[1]
    if recipe.continuous:
        assert told["action_space"]["low"] == made.action_space.low.tolist()
    else:
        assert told["action_space"]["n"] == made.action_space.n
    assert EnvRecipe(**json.loads(json.dumps(asdict(recipe)))) == recipe


def test_a_market_is_described_by_its_columns_levels_and_pace():
    told = describe_env(resolve("market", params=DRAWN))
    assert tuple(told["feature_names"][-6:]) == PRIVATE_FEATURES
    assert told["levels"] == [-1.0, 0.0, 1.0]
    assert told["period_ns"] == 3_600 * 10**9
    game = describe_env(resolve("CartPole-v1"))
    assert game["feature_names"] == ["obs_0", "obs_1", "obs_2", "obs_3"]
    assert game["observation_space"]["high"][1] is None
    assert game["levels"] is game["period_ns"] is None


@pytest.mark.parametrize("env", [LANDER, "market"])
def test_equal_seeds_make_equal_environments(env):
    recipe = resolve(env, params=DRAWN if env == "market" else None)
    one, same, other = (make_vec_env(recipe, 3, Seeds(root)) for root in (1, 1, 2))
    first = one.reset()
    assert (first == same.reset()).all()
    assert not (first == other.reset()).all()


@pytest.mark.parametrize("env", [LANDER, SMOOTH, "market"])
def test_single_environments_pass_the_learners_own_checker(env):
    single = make_single_env(resolve(env, params=DRAWN if env == "market" else None))
    check_env(single.unwrapped)
    assert isinstance(single, MarketEnv) == (env == "market")


def test_a_single_environment_draws_pictures_and_a_training_one_does_not():
    recipe = resolve("CartPole-v1")
    single = make_single_env(recipe, render_mode="rgb_array")
    single.reset(seed=0)
    assert single.render().ndim == 3
    made = make_vec_env(recipe, 2, Seeds(0))
    assert isinstance(made, GymVecEnv)
    assert made.get_attr("render_mode") == [None, None]
