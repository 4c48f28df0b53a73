import copy

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from agent_gym.core import ConfigError, Seeds, StoreError
from agent_gym.envs import gym_vec
from agent_gym.envs.exact import EnvState, ExactEnv, exact_env
from agent_gym.envs.gym_vec import GymVecEnv
from tests.envs.lane_play import draw, play, through_files

IDS = ("LunarLander-v3", "LunarLanderContinuous-v3", "CartPole-v1", "Pendulum-v1")
STEPS = 500


def vec(env_id, n=3, seed=0, **params):
    return GymVecEnv(lambda: gym.make(env_id, **params), n, Seeds(seed))


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("cut", [0, 1, 333])
def test_a_kept_state_goes_on_to_the_bit(env_id, cut):
    env = vec(env_id)
    env.reset()
    actions = draw(env, cut + STEPS)
    play(env, actions[:cut])
    state = through_files(env.get_state())
    other = vec(env_id, seed=99)
    other.set_state(state)
    expected, found = play(env, actions[cut:]), play(other, actions[cut:])
    assert found == expected
    assert any(ends for *_, ends in expected)


@settings(max_examples=8, deadline=None)
@given(cut=st.integers(0, 400), n=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_any_moment_can_be_kept_and_kept_again(cut, n, seed):
    env = vec("CartPole-v1", n, seed)
    env.reset()
    actions = draw(env, cut + 60, seed)
    play(env, actions[:cut])
    other = vec("CartPole-v1", n)
    other.set_state(through_files(env.get_state()))
    first, second = env.get_state(), other.get_state()
    assert first.values == second.values
    assert all((first.arrays[name] == second.arrays[name]).all() for name in first.arrays)
    assert play(env, actions[cut:]) == play(other, actions[cut:])


def test_a_state_is_taken_over_in_the_midst_of_another_episode():
    env, other = vec("LunarLander-v3"), vec("LunarLander-v3", seed=5)
    env.reset(), other.reset()
    actions = draw(env, 400)
    play(env, actions[:150])
    play(other, draw(other, 77, 3))
    other.set_state(env.get_state())
    assert play(env, actions[150:]) == play(other, actions[150:])


def test_a_state_before_the_first_reset_is_a_state():
    env, other = vec("CartPole-v1"), vec("CartPole-v1", seed=7)
    other.set_state(through_files(env.get_state()))
    assert (env.reset() == other.reset()).all()


def test_actions_of_another_precision_are_kept_as_they_were_played():
    env, other = vec("Pendulum-v1"), vec("Pendulum-v1", seed=7)
    env.reset()
    actions = draw(env, 120).astype(np.float64) * 0.7
    play(env, actions[:50]), play(env, actions[50:60].astype(np.float32))
    other.set_state(through_files(env.get_state()))
    assert play(env, actions[60:]) == play(other, actions[60:])
    with pytest.raises(TypeError, match="same_kind"):
        vec("CartPole-v1").step(np.array([0.7, 0.0, 0.0]))


def test_options_of_a_reset_are_kept():
    env, other = vec("CartPole-v1"), vec("CartPole-v1", seed=7)
    env.set_options({"low": -0.01, "high": 0.0})
    assert (env.reset() <= 0.0).all()
    other.set_state(through_files(env.get_state()))
    actions = draw(env, 50)
    assert play(env, actions) == play(other, actions)


def test_a_copy_of_a_lander_is_empty_which_is_why_episodes_are_replayed():
    env = vec("LunarLander-v3", 1)
    env.reset()
    play(env, draw(env, 20))
    assert env.envs[0].lander is not None
    assert copy.deepcopy(env.envs[0]).lander is None


def test_history_is_forgotten_and_resume_stays_exact(monkeypatch):
    monkeypatch.setattr(gym_vec, "FORGET_AT", 100)
    env = vec("CartPole-v1", 4)
    env.reset()
    actions = draw(env, 1200)
    play(env, actions[:1000])
    assert len(env._history) < 300
    other = vec("CartPole-v1", 4)
    other.set_state(env.get_state())
    assert play(env, actions[1000:]) == play(other, actions[1000:])


def test_a_changed_state_is_found_out():
    env = vec("LunarLander-v3", 2)
    env.reset()
    play(env, draw(env, 40))
    kept = env.get_state()
    flipped = kept.arrays["actions_1"].copy()
    flipped[10] = (flipped[10] + 2) % 4
    with pytest.raises(StoreError, match=r"led elsewhere.*lane 1"):
        vec("LunarLander-v3", 2).set_state(
            EnvState(kept.arrays | {"actions_1": flipped}, kept.values)
        )
    with pytest.raises(StoreError, match="2 lanes"):
        vec("LunarLander-v3", 3).set_state(kept)
    with pytest.raises(StoreError, match="led elsewhere"):
        vec("LunarLander-v3", 2, gravity=-9.0).set_state(kept)


class Loose(gym.Env):
    """Draws from a generator that nobody knows of."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)
    hidden = Seeds(1).rng()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([self.hidden.random()], np.float32), {}

    def step(self, action):
        return np.array([self.hidden.random()], np.float32), 1.0, False, False, {}


def test_an_environment_that_cannot_be_replayed_is_found_out():
    env = GymVecEnv(Loose, 2, Seeds(0))
    env.reset()
    play(env, draw(env, 5))
    with pytest.raises(StoreError, match="np_random"):
        GymVecEnv(Loose, 2, Seeds(0)).set_state(env.get_state())


@pytest.mark.parametrize(
    ("env_id", "limit"), [*((i, None) for i in IDS), (IDS[0], 50), (IDS[2], 9)]
)
def test_it_plays_what_the_plain_environment_plays(env_id, limit):
    params = {} if limit is None else {"max_episode_steps": limit}
    env = vec(env_id, 2, **params)
    env.seed(11)
    plain = [gym.make(env_id, **params) for _ in range(2)]
    seen = env.reset()
    assert all((p.reset(seed=11 + k)[0] == seen[k]).all() for k, p in enumerate(plain))
    totals, lengths, cuts = [0.0, 0.0], [0, 0], 0
    for t, actions in enumerate(draw(env, 420)):
        obs, rewards, dones, infos = env.step(actions)
        for k, p in enumerate(plain):
            expected, reward, terminated, truncated, _ = p.step(actions[k])
            totals[k], lengths[k] = totals[k] + reward, lengths[k] + 1
            assert rewards[k] == np.float32(reward)
            assert dones[k] == (terminated or truncated)
            if dones[k]:
                info = infos[k]
                assert (info["terminal_observation"] == expected).all()
                assert info["TimeLimit.truncated"] == (truncated and not terminated)
                steps = (t + 1) * 2
                assert info["episode"] == {"r": totals[k], "l": lengths[k], "t": steps}
                cuts += info["TimeLimit.truncated"]
                totals[k], lengths[k] = 0.0, 0
                expected, _ = p.reset()
            assert (obs[k] == expected).all()
    assert cuts or not (limit or env_id == "Pendulum-v1")


@pytest.mark.parametrize("env_id", IDS)
def test_it_gives_a_learner_what_its_own_vector_environment_gives(env_id):
    ours, theirs = vec(env_id, 2), DummyVecEnv([lambda: gym.make(env_id)] * 2)
    ours.seed(3), theirs.seed(3)
    one, other = ours.reset(), theirs.reset()
    assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    for actions in draw(ours, 250):
        one, other = ours.step(actions), theirs.step(actions)
        for mine, its in zip(one[:3], other[:3], strict=True):
            assert (mine.dtype, mine.tobytes()) == (its.dtype, its.tobytes())
        for k in np.flatnonzero(one[2]):
            mine, its = one[3][k], other[3][k]
            assert mine["terminal_observation"].dtype == its["terminal_observation"].dtype
            assert (mine["terminal_observation"] == its["terminal_observation"]).all()
            assert mine["TimeLimit.truncated"] == its["TimeLimit.truncated"]


def test_what_is_handed_out_is_not_changed_later():
    env = vec("CartPole-v1", 2)
    batches = [env.reset(), *(env.step(actions)[0] for actions in draw(env, 5))]
    then = [batch.tobytes() for batch in batches]
    env.reset_lane(0, 5)
    play(env, draw(env, 5))
    assert [batch.tobytes() for batch in batches] == then
    batches[-1][:] = 9.0  # nor does it matter what a learner does with it
    assert not (env.get_state().arrays["seen"] == 9.0).any()


@pytest.mark.parametrize("env_id", IDS[:2])
def test_an_episode_of_its_own_seed_does_not_depend_on_the_lane(env_id):
    plain = gym.make(env_id)
    first, _ = plain.reset(seed=1234)
    small, large = vec(env_id, 1), vec(env_id, 4, seed=8)
    small.reset(), large.reset()
    actions = draw(large, 60)
    play(large, actions[:30])
    assert (large.reset_lane(2, 1234) == first).all()
    assert (small.reset_lane(0, 1234) == first).all()
    for batch in actions[30:]:
        expected = plain.step(batch[2])[0]
        assert (large.step(batch)[0][2] == expected).all()
        assert (small.step(batch[2:3])[0][0] == expected).all()
    other = vec(env_id, 4)
    other.set_state(through_files(large.get_state()))
    assert play(other, actions) == play(large, actions)


def test_lanes_have_seeds_of_their_own_and_new_episodes_are_new():
    env = vec("CartPole-v1", 4)
    first, second = env.reset(), env.reset()
    assert len({row.tobytes() for row in (*first, *second)}) == 8
    assert (vec("CartPole-v1", 4).reset() == first).all()
    assert (vec("CartPole-v1", 2).reset() == first[:2]).all()
    assert not (vec("CartPole-v1", 4, seed=1).reset() == first).any()


def test_layers_that_do_more_than_watch_are_kept():
    def make():
        return gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda reward: 2 * reward)

    env = GymVecEnv(make, 1, Seeds(0))
    env.reset()
    assert env.step(np.array([0]))[1][0] == 2.0
    assert env.env_is_wrapped(gym.wrappers.TransformReward) == [True]
    assert vec("CartPole-v1", 1).env_is_wrapped(gym.wrappers.TimeLimit) == [False]


def test_attributes_and_methods_reach_the_environments():
    env = vec("LunarLander-v3", 3)
    assert env.get_attr("gravity") == [-10.0] * 3
    env.set_attr("gravity", -9.0, indices=[1])
    assert env.get_attr("gravity") == [-10.0, -9.0, -10.0]
    assert env.render_mode is None
    assert len(env.env_method("close")) == 3
    env.close()


def test_spaces_that_no_policy_here_can_read_are_refused():
    class Odd(Loose):
        observation_space = gym.spaces.Dict({"a": gym.spaces.Box(0.0, 1.0, (1,))})

    class Odder(Loose):
        action_space = gym.spaces.Tuple([gym.spaces.Discrete(2)])

    for kind, name in ((Odd, "Dict"), (Odder, "Tuple")):
        with pytest.raises(ConfigError, match=name):
            GymVecEnv(kind, 1, Seeds(0))
    with pytest.raises(ConfigError, match="at least one"):
        vec("CartPole-v1", 0)


def test_the_exact_environment_is_found_below_wrappers_or_refused_in_words():
    env = vec("CartPole-v1", 1)
    assert isinstance(env, ExactEnv)
    assert exact_env(VecNormalize(env)) is env
    with pytest.raises(ConfigError, match="backend: gymnasium"):
        exact_env(DummyVecEnv([lambda: gym.make("CartPole-v1")]))


def test_a_learner_learns_in_it_and_hears_of_episodes():
    env = VecNormalize(vec("CartPole-v1", 4))
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512)
    assert model.ep_info_buffer
    assert all(info["r"] == info["l"] for info in model.ep_info_buffer)
