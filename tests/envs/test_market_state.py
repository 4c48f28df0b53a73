"""The market as a learner's vector environment: kept, taken over, seeded by episode."""

import json

import numpy as np
import pytest

from agent_gym.core import Seeds, StoreError
from agent_gym.envs import MarketEnv, MarketVectorEnv
from agent_gym.envs.exact import EnvState, ExactEnv
from agent_gym.envs.sb3_view import SB3VecEnv
from tests.envs.lane_play import draw, play, through_files
from tests.samples import random_bars

BARS = random_bars(900, 1, funding=1e-4)
WILD = random_bars(900, 2, sigma=0.08)
KINDS = ({"kind": "discrete"}, {"kind": "continuous"})
LATE = {"latency_bars": 3, "participation": 0.01}
SETTINGS = {"episode_bars": 150, "costs": LATE, "warmup_bars": 50}


def market(n=5, bars=BARS, seed=0, **params):
    env = SB3VecEnv(MarketVectorEnv(n, bars=bars, **(SETTINGS | params)))
    env.seed(seed)
    return env


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reward", ["log_equity", "pnl"])
@pytest.mark.parametrize("cut", [0, 1, 333])
def test_a_kept_state_goes_on_to_the_bit(kind, reward, cut):
    env = market(actions=kind, reward=reward)
    env.reset()
    actions = draw(env, cut + 500)
    play(env, actions[:cut])
    other = market(actions=kind, reward=reward, seed=99)
    other.set_state(through_files(env.get_state()))
    expected, found = play(env, actions[cut:]), play(other, actions[cut:])
    assert found == expected
    assert sum(len(ends) for *_, ends in expected) >= 10
    assert (env.reset() == other.reset()).all()  # the seed and the count of episodes came along


@pytest.mark.parametrize("left_out", ["queue", "lane_want", "lane_episode", "seed", "lane_peak"])
def test_nothing_of_the_state_can_be_left_out(left_out):
    env, other = market(), market(seed=99)
    env.reset(), other.reset()
    actions = draw(env, 533)
    play(env, actions[:333])
    kept, fresh = env.get_state(), other.get_state()
    other.set_state(EnvState(kept.arrays | {left_out: fresh.arrays[left_out]}, kept.values))
    assert play(env, actions[333:]) != play(other, actions[333:])


def test_a_state_of_other_bars_or_lanes_is_refused():
    env = market()
    env.reset()
    kept = env.get_state()
    with pytest.raises(StoreError, match="not one of this market"):
        market(bars=WILD).set_state(kept)
    with pytest.raises(StoreError, match="not one of these lanes"):
        market(4).set_state(kept)
    with pytest.raises(StoreError, match="queue"):
        market(costs={"latency_bars": 1}).set_state(kept)
    assert isinstance(env, ExactEnv)
    assert json.loads(json.dumps(kept.values)) == kept.values


@pytest.mark.parametrize("reward", ["log_equity", "pnl"])
def test_an_episodes_sum_and_length_are_told(reward):
    env = market(4, WILD, reward=reward, account={"ruin": 0.5})
    plain = MarketVectorEnv(4, bars=WILD, **SETTINGS, reward=reward, account={"ruin": 0.5})
    env.reset()
    plain.reset(seed=0)
    totals, lengths, found = np.zeros(4), np.zeros(4, int), []
    for t, actions in enumerate(draw(env, 700)):
        _, paid, dones, infos = env.step(actions)
        _, exact, terminated, truncated, _ = plain.step(actions)
        assert (paid == exact.astype(np.float32)).all()
        assert (dones == (terminated | truncated)).all()
        totals, lengths = totals + exact, lengths + 1
        for k in np.flatnonzero(dones):
            told = {"r": totals[k], "l": lengths[k], "t": 4 * (t + 1)}
            assert infos[k]["episode"] == told
            assert infos[k]["TimeLimit.truncated"] == truncated[k]
            found.append(infos[k]["TimeLimit.truncated"])
            totals[k], lengths[k] = 0.0, 0
            plain.lanes.restart(int(k), int(k) + 1)
        assert all("episode" not in infos[k] for k in np.flatnonzero(~dones))
    assert True in found
    assert False in found


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_of_its_own_seed_does_not_depend_on_the_lane(kind):
    single = MarketEnv(bars=BARS, **SETTINGS, actions=kind)
    first, _ = single.reset(seed=77)
    env, twin, small = market(actions=kind), market(actions=kind), market(1, actions=kind)
    env.reset(), twin.reset(), small.reset()
    actions = draw(env, 200)
    play(env, actions[:20]), play(twin, actions[:20])
    assert (env.reset_lane(3, 77) == first).all()
    assert (small.reset_lane(0, 77) == first).all()
    for batch in actions[20:]:
        obs, _, dones, infos = env.step(batch)
        expected, _, ended, cut, _ = single.step(batch[3])
        assert dones[3] == (ended or cut)
        if dones[3]:
            assert (infos[3]["terminal_observation"] == expected).all()
            assert infos[3]["episode"]["l"] == SETTINGS["episode_bars"]
            break
        assert (obs[3] == expected).all()
        assert (small.step(batch[3:4])[0][0] == expected).all()
    else:
        pytest.fail("the episode did not end")


def test_an_episode_of_its_own_seed_leaves_the_count_of_the_lane_alone():
    env, twin = market(), market()
    env.reset(), twin.reset()
    env.reset_lane(3, 77)
    assert (env.reset() == twin.reset()).all()
    assert market().reset_lane(0, Seeds(1).as_int()).shape == (env.observation_space.shape[0],)
