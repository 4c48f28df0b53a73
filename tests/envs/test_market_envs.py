import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as check_gymnasium
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_sb3

from agent_gym.core import AgentError, ConfigError, Seeds, VenueError
from agent_gym.core.types import Role
from agent_gym.envs import (
    GymView,
    MarketConfig,
    MarketEnv,
    MarketVectorEnv,
    MarketWorld,
    ParallelView,
)
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.exchange import AccountRules
from agent_gym.exchange.kernel.layout import PRIVATE_FEATURES
from tests.samples import random_bars

BARS = random_bars(900, 1)
CONTINUOUS = {"kind": "continuous"}


@pytest.mark.parametrize("actions", [{"kind": "discrete"}, CONTINUOUS])
def test_registered_environment_passes_both_checkers(actions):
    env = gym.make("agent_gym/Market-v1", bars=BARS, actions=actions, episode_bars=64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*A Box observation space.*infinity.*")
        check_gymnasium(env.unwrapped, skip_render_check=False)
    check_sb3(env.unwrapped)


def test_any_world_passes_as_gymnasium_and_pettingzoo():
    config = MarketConfig(episode_bars=40, roles=("one",))
    check_sb3(GymView(MarketWorld(config, BARS)))
    pair = MarketConfig(episode_bars=40, roles=("one", "two"))
    parallel_api_test(ParallelView(MarketWorld(pair, BARS)), num_cycles=200)


def test_a_world_with_two_roles_is_no_gymnasium_environment():
    with pytest.raises(ConfigError, match="ParallelView"):
        GymView(MarketWorld(MarketConfig(episode_bars=40, roles=("a", "b")), BARS))


def test_vector_form_is_registered():
    env = gym.make_vec("agent_gym/Market-v1", num_envs=5, bars=BARS, episode_bars=32)
    assert isinstance(env.unwrapped, MarketVectorEnv)
    obs, _ = env.reset(seed=3)
    assert obs.shape == (5, 42)
    assert env.observation_space.contains(obs)


def test_single_and_vector_environment_agree():
    config = MarketConfig(episode_bars=50)
    single, vector = MarketEnv(BARS, config), MarketVectorEnv(1, BARS, config)
    first, _ = single.reset(seed=11)
    assert first.tobytes() == vector.reset(seed=11)[0][0].tobytes()
    rng = Seeds(0).rng()
    for _ in range(50):
        action = int(rng.integers(3))
        obs, reward, terminated, truncated, _ = single.step(action)
        many = vector.step(np.array([action]))
        assert obs.tobytes() == many[0][0].tobytes()
        assert (reward, terminated, truncated) == tuple(part[0] for part in many[1:4])
    assert truncated


def test_autoreset_follows_the_next_step_rule():
    env = MarketVectorEnv(4, BARS, episode_bars=10)
    env.reset(seed=0)
    for _ in range(10):
        *_, truncated, _ = env.step(np.full(4, 2))
    assert truncated.all()
    ended = env.lanes.state["t"].copy()
    obs, reward, terminated, truncated, _ = env.step(np.full(4, 2))
    assert (reward == 0).all()
    assert not terminated.any()
    assert not truncated.any()
    assert (env.lanes.state["t"] != ended + 1).any()
    assert (obs[:, -len(PRIVATE_FEATURES) :] == 0).all()


def test_lanes_do_not_depend_on_how_many_there_are():
    few, many = MarketVectorEnv(3, BARS), MarketVectorEnv(64, BARS)
    few.reset(seed=5)
    many.reset(seed=5)
    rng = Seeds(1).rng()
    for _ in range(40):
        actions = rng.integers(0, 3, 64)
        few.step(actions[:3])
        many.step(actions)
    assert few.lanes.state.tobytes() == many.lanes.state[:3].tobytes()


def test_one_and_two_threads_give_the_same_bits():
    serial, threaded = MarketVectorEnv(257, BARS), MarketVectorEnv(257, BARS, threads=2)
    serial.reset(seed=5)
    threaded.reset(seed=5)
    rng = Seeds(1).rng()
    for _ in range(60):
        actions = rng.integers(0, 3, 257)
        assert serial.step(actions)[0].tobytes() == threaded.step(actions)[0].tobytes()
    assert serial.lanes.state.tobytes() == threaded.lanes.state.tobytes()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), start=st.integers(200, 700), length=st.integers(1, 150))
def test_reward_is_the_change_of_log_equity_and_nothing_else(seed, start, length):
    env = MarketEnv(BARS, warmup_bars=start, episode_bars=length, random_start=False)
    env.reset(seed=seed)
    rng, total, truncated = Seeds(seed).rng(), 0.0, False
    while not truncated:
        before = env.account()["eq"]
        _, reward, _, truncated, _ = env.step(int(rng.integers(3)))
        assert reward == pytest.approx(np.log(env.account()["eq"] / before), rel=1e-12, abs=1e-15)
        total += reward
    assert total == pytest.approx(np.log(env.account()["eq"] / 10_000.0), rel=1e-9, abs=1e-12)


def test_linear_reward_is_there_for_those_who_ask():
    env = MarketEnv(BARS, reward="pnl", episode_bars=20)
    env.reset(seed=0)
    before = env.account()["eq"]
    _, reward, *_ = env.step(2)
    assert reward == pytest.approx((env.account()["eq"] - before) / 10_000.0)


def test_observation_shows_position_pnl_and_costs():
    world = MarketWorld(MarketConfig(episode_bars=20, random_start=False), BARS)
    role = Role("trader")
    world.reset(Seeds(0))
    names = world.start(role, Seeds(0)).feature_names
    seen = dict(zip(names, world.step({role: 2})[role].observation.features, strict=True))
    account = world.ledger(role)
    assert seen["close"] == BARS.close[201]
    assert seen["position"] == pytest.approx(account["pos"] * seen["close"] / account["eq"])
    assert seen["position"] > 0.9
    assert seen["costs"] == pytest.approx((account["fees"] + account["slip"]) / 10_000.0)
    assert seen["costs"] > 0
    assert seen["growth"] == pytest.approx(np.log(account["eq"] / 10_000.0))


def test_windows_are_random_but_seeded():
    def starts(seed):
        env = MarketVectorEnv(32, BARS, episode_bars=16)
        env.reset(seed=seed)
        return env.lanes.state["t"].tolist()

    assert starts(1) == starts(1)
    assert starts(1) != starts(2)
    assert len(set(starts(1))) > 16
    assert min(starts(1)) >= 200
    assert max(starts(1)) <= 900 - 1 - 16


def test_ruin_ends_the_episode():
    crash = random_bars(60, 2, sigma=0.9)
    env = MarketEnv(
        crash,
        warmup_bars=0,
        features=(),
        episode_bars=None,
        random_start=False,
        account={"max_leverage": 20.0, "ruin": 0.5},
        actions={"kind": "discrete", "levels": (0.0, 20.0)},
    )
    env.reset(seed=0)
    for _ in range(59):
        _, reward, terminated, truncated, info = env.step(1)
        if terminated:
            break
    assert terminated
    assert not truncated
    assert np.isfinite(reward)
    assert info["eq"] <= 5_000.0


@pytest.mark.parametrize("action", [-1, 3, 10**6])
def test_illegal_discrete_actions_raise(action):
    env = MarketEnv(BARS)
    env.reset(seed=0)
    with pytest.raises(AgentError, match="lane 0"):
        env.step(action)


def test_illegal_batches_raise():
    env = MarketVectorEnv(4, BARS)
    env.reset(seed=0)
    with pytest.raises(AgentError, match="lane 2"):
        env.step(np.array([0, 1, 9, 2]))
    with pytest.raises(AgentError, match="shape"):
        env.step(np.zeros(3, dtype=int))
    free = MarketVectorEnv(2, BARS, actions=CONTINUOUS)
    free.reset(seed=0)
    with pytest.raises(AgentError, match="finite"):
        free.step(np.array([[0.5], [np.nan]]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"episode_bars": 5000}, "does not fit"),
        ({"warmup_bars": 900}, "does not fit"),
        ({"episode_bars": 0}, "episode_bars"),
        ({"episodebars": 5}, "Did you mean 'episode_bars'"),
        ({"actions": {"kind": "continuous", "low": 1, "high": -1}}, "below"),
        ({"reward": "sharpe"}, "reward"),
        ({"features": ("momentum_5",)}, "Did you mean 'momentum_4'"),
    ],
)
def test_bad_settings_are_explained(overrides, message):
    with pytest.raises(ConfigError, match=message):
        MarketEnv(BARS, **overrides)


def test_an_illegal_batch_moves_nobody():
    env = MarketVectorEnv(4, BARS)
    env.reset(seed=0)
    before = env.lanes.state.tobytes()
    with pytest.raises(AgentError, match="lane 3"):
        env.step(np.array([2, 2, 2, -1]))
    assert env.lanes.state.tobytes() == before
    with pytest.raises(AgentError, match="whole numbers"):
        env.step(np.array([1.9, 0.0, 0.0, 0.0]))


def test_a_step_needs_a_running_episode():
    env = MarketEnv(BARS, episode_bars=3)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(1)
    env.reset(seed=0)
    for _ in range(3):
        env.step(1)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(1)
    world = MarketWorld(MarketConfig(episode_bars=3), BARS)
    world.reset(Seeds(0))
    for _ in range(3):
        world.step({Role("trader"): 1})
    with pytest.raises(VenueError, match="over"):
        world.step({Role("trader"): 1})


def test_continuous_actions_are_clipped_to_their_bounds():
    env = MarketEnv(BARS, actions={"kind": "continuous", "low": -0.5, "high": 0.5})
    env.reset(seed=0)
    env.step(np.array([7.0], dtype=np.float32))
    assert env.account()["frac"] == 0.5


def test_stable_baselines_learns_through_its_view():
    vec = SB3VecEnv(MarketVectorEnv(8, BARS, episode_bars=32, features=()))
    obs = vec.reset()
    assert obs.shape == (8, len(PRIVATE_FEATURES))
    infos = [{}]
    for _ in range(32):
        obs, _, done, infos = vec.step(np.ones(8, dtype=int))
    assert done.all()
    assert infos[0]["TimeLimit.truncated"]
    assert infos[0]["terminal_observation"].shape == obs[0].shape
    assert not vec.step(np.ones(8, dtype=int))[2].any()
    assert vec._infos[0] == {}
    PPO("MlpPolicy", vec, n_steps=16, batch_size=64, n_epochs=1, device="cpu").learn(128)


def test_features_can_be_chosen():
    chosen = MarketEnv(BARS, features=("momentum_24", "return_z"))
    whole = MarketEnv(BARS)
    names = whole.stage.slim_names
    row, _ = chosen.reset(seed=1)
    full, _ = whole.reset(seed=1)
    picked = [names.index("momentum_24"), names.index("return_z")]
    assert row[:2].tolist() == full[picked].tolist()
    assert len(row) == 2 + len(PRIVATE_FEATURES)


def test_fresh_markets_need_a_market_to_draw_from():
    with pytest.raises(ConfigError, match="fresh_market"):
        MarketWorld(MarketConfig(fresh_market=True), BARS)


def test_roles_share_the_bars_but_not_the_account():
    config = MarketConfig(roles=("bull", "bear"), episode_bars=30)
    world = MarketWorld(config, BARS)
    seen = world.reset(Seeds(4))
    bull, bear = world.roles
    assert seen[bull].ts == seen[bear].ts
    out = world.step({bull: 2, bear: 0})
    out = world.step({bull: 2, bear: 0})
    assert out[bull].reward * out[bear].reward < 0
    assert AccountRules().cash == 10_000.0


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.envs.test_market_envs import trajectory_hash
print(trajectory_hash())
"""


def trajectory_hash():
    env = MarketVectorEnv(64, random_bars(700, 3), episode_bars=50)
    digest = hashlib.blake2b(env.reset(seed=9)[0].tobytes())
    rng = Seeds(2).rng()
    for _ in range(120):
        for part in env.step(rng.integers(0, 3, 64))[:4]:
            digest.update(part.tobytes())
    return digest.hexdigest()


def test_same_trajectory_in_other_processes_zones_hash_seeds_and_thread_counts():
    root = str(Path.cwd())
    hashes = {trajectory_hash()}
    for extra in (
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "NUMBA_NUM_THREADS": "1"},
        {"PYTHONHASHSEED": "77", "TZ": "America/New_York", "OMP_NUM_THREADS": "2"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(root=root)],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout.strip())
    assert len(hashes) == 1
