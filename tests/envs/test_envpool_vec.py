"""The same games as Gymnasium's, by the returns and lengths of many episodes."""

import numpy as np
import pytest
from gymnasium.envs.box2d.lunar_lander import heuristic
from scipy.stats import ks_2samp
from stable_baselines3.common.vec_env import VecNormalize

from agent_gym.core import ConfigError, Seeds
from agent_gym.envs import training_env
from agent_gym.envs.exact import exact_env
from agent_gym.envs.training_env import EnvRecipe, make_single_env, make_vec_env, resolve_recipe

LANES, EACH = 16, 6
ALPHA = 1e-3


def envpool_recipe(env, **params):
    pytest.importorskip("envpool", reason="the optional backend envpool is not installed")
    return resolve_recipe(env, params, None, "envpool", actions="any", algo="ppo")


class Pilot:
    """Fixed policies that reach many parts of a game."""

    def __init__(self, recipe):
        self.env, self.id = make_single_env(recipe).unwrapped, recipe.env

    def act(self, row):
        if self.id.startswith("LunarLander"):
            return heuristic(self.env, row)
        if self.id == "CartPole-v1":
            return int(row[2] + 0.3 * row[3] + 0.05 * row[0] > 0.01)
        return np.array([np.clip(-6.0 * row[1] - row[2], -2.0, 2.0)], np.float32)


def episodes(recipe, seed, each=EACH):
    """Return what the first episodes of every lane earned, and their lengths, long ones too."""
    env, pilot = make_vec_env(recipe, LANES, Seeds(seed)), Pilot(recipe)
    obs, found = env.reset(), [[] for _ in range(LANES)]
    while min(map(len, found)) < each:
        obs, _, dones, infos = env.step(np.array([pilot.act(row) for row in obs]))
        for k in np.flatnonzero(dones):
            found[k].append((infos[k]["episode"]["r"], infos[k]["episode"]["l"]))
    env.close()
    kept = np.array([lane[:each] for lane in found]).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]


GAMES = ["LunarLander-v3", "LunarLanderContinuous-v3", "CartPole-v1", "Pendulum-v1"]


@pytest.mark.parametrize("env", GAMES)
def test_returns_and_lengths_come_from_the_same_game(env):
    fast = episodes(envpool_recipe(env), 1)
    plain = episodes(EnvRecipe(env), 2)
    assert ks_2samp(fast[0], plain[0]).pvalue > ALPHA
    assert ks_2samp(fast[1], plain[1]).pvalue > ALPHA


def test_another_game_would_be_found_out():
    one = episodes(EnvRecipe("Pendulum-v1"), 1, each=3)
    other = episodes(EnvRecipe("Pendulum-v1", {"g": 7.0}), 2, each=3)
    assert ks_2samp(one[0], other[0]).pvalue < ALPHA


@pytest.mark.parametrize("env", GAMES)
def test_it_speaks_as_learners_expect(env):
    recipe = envpool_recipe(env, max_episode_steps=40)
    made, same = (make_vec_env(recipe, 4, Seeds(3)) for _ in range(2))
    single = make_single_env(recipe)
    assert made.observation_space == single.observation_space
    assert made.action_space == single.action_space
    first = made.reset()
    assert (first == same.reset()).all()
    assert len({row.tobytes() for row in first}) == 4
    pilot, obs, cut, totals = Pilot(recipe), first, 0, np.zeros(4)
    for _ in range(130):
        actions = np.array([pilot.act(row) for row in obs])
        obs, rewards, dones, infos = made.step(actions)
        assert (obs == same.step(actions)[0]).all()
        totals += rewards
        for k in np.flatnonzero(dones):
            assert infos[k]["episode"]["r"] == pytest.approx(totals[k], rel=1e-4)
            assert infos[k]["TimeLimit.truncated"] == (infos[k]["episode"]["l"] == 40)
            assert (infos[k]["terminal_observation"] != obs[k]).any()
            cut, totals[k] = cut + infos[k]["TimeLimit.truncated"], 0.0
        assert all(infos[k] == {} for k in np.flatnonzero(~dones))
    assert cut


def test_exact_resume_is_refused_in_words():
    env = make_vec_env(envpool_recipe("CartPole-v1"), 2, Seeds(0))
    with pytest.raises(ConfigError, match=r"EnvPoolVecEnv.*backend: gymnasium"):
        exact_env(VecNormalize(env))


def test_what_was_not_compared_or_cannot_be_set_is_refused():
    with pytest.raises(ConfigError, match="gravity"):
        envpool_recipe("LunarLander-v3", gravity=-9.0)
    with pytest.raises(ConfigError, match="Acrobot-v1"):
        envpool_recipe("Acrobot-v1")


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError("No module named 'envpool'")

    monkeypatch.setattr(training_env, "import_module", missing)
    for make in (
        lambda: resolve_recipe(GAMES[0], {}, None, "envpool", actions="any", algo="ppo"),
        lambda: make_vec_env(EnvRecipe(GAMES[0], backend="envpool"), 2, Seeds(0)),
    ):
        with pytest.raises(ConfigError, match=r"pip install agent-gym\[fast\]"):
            make()


def test_the_market_has_no_such_backend():
    with pytest.raises(ConfigError, match="market"):
        resolve_recipe("market", {}, None, "envpool", actions="any", algo="ppo")
