import gymnasium as gym
import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.core import AgentError, ConfigError, Ref, Seeds, VenueError, make
from agent_gym.core.types import Decision, Role, SoloWorld
from agent_gym.envs import GymWorld, GymWorldConfig
from agent_gym.rollouts import MemorySink, check_agent, check_world, play

IDS = ("LunarLander-v3", "LunarLanderContinuous-v3", "CartPole-v1", "Pendulum-v1", "FrozenLake-v1")
PLAYER = Role("player")


def world(env_id, **params):
    return GymWorld(GymWorldConfig(id=env_id, params=params))


class Cycler:
    """Does one legal thing after the other."""

    name = "cycler"

    def reset(self, start):
        self.spec, self.t = start.actions, 0

    def act(self, obs):
        self.t += 1
        if self.spec.n is not None:
            return Decision(self.t % self.spec.n)
        return Decision(self.spec.low + (self.t % 5) / 4 * (self.spec.high - self.spec.low))

    def observe(self, step):
        pass


@pytest.mark.parametrize("env_id", IDS)
def test_a_game_keeps_the_contract_of_worlds(env_id):
    check_world(lambda: world(env_id), max_steps=300)
    assert isinstance(world(env_id), SoloWorld)


@pytest.mark.parametrize("env_id", IDS[:2])
def test_an_agent_is_checked_in_a_game(env_id):
    check_agent(Cycler, lambda: world(env_id))


@pytest.mark.parametrize("env_id", IDS[:4])
def test_it_is_played_as_the_plain_environment_plays(env_id):
    sink, seeds = MemorySink(), Seeds(4)
    play(world(env_id), Independent({PLAYER: Cycler()}), "e", seeds, (sink,))
    plain = gym.make(env_id)
    first, _ = plain.reset(seed=seeds.child("e", "world", "env").as_int())
    assert sink.steps[0].before.features.tolist() == first.tolist()
    for t, step in enumerate(sink.steps):
        action = step.decision.action
        if plain.action_space.shape:
            action = np.full(plain.action_space.shape, action, np.float32)
        seen, reward, terminated, truncated, _ = plain.step(action)
        after = step.after
        assert after.observation.features.tolist() == seen.astype(np.float64).tolist()
        assert (after.reward, after.terminated, after.truncated) == (reward, terminated, truncated)
        assert after.observation.ts == t + 1
    assert terminated or truncated


def test_it_is_made_by_name_and_names_its_columns():
    made = make("world", Ref(use="gym", params={"id": "CartPole-v1"}))
    start = made.start(PLAYER, Seeds(0))
    assert start.feature_names == ("obs_0", "obs_1", "obs_2", "obs_3")
    assert start.period_ns is None
    with pytest.raises(ConfigError, match="LunarLander-v3"):
        make("world", Ref(use="gym", params={"id": "LunarLander-v2"}))
    with pytest.raises(ConfigError, match="gravity"):
        world("LunarLander-v3", gravty=-9.0)


def test_an_episode_can_be_begun_under_the_environments_own_seed():
    seen = world("LunarLander-v3").begin(31)
    assert seen.features.tolist() == gym.make("LunarLander-v3").reset(seed=31)[0].tolist()


def test_several_numbers_are_an_array_and_one_counts_for_all():
    one, other = world("LunarLanderContinuous-v3"), world("LunarLanderContinuous-v3")
    one.begin(1), other.begin(1)
    for _ in range(20):
        a, b = one.advance(0.8), other.advance(np.array([0.8, 0.8]))
        assert a.observation.features.tolist() == b.observation.features.tolist()
    c = one.advance(np.array([0.8, -0.8])).observation.features
    assert c.tolist() != other.advance(0.8).observation.features.tolist()


@pytest.mark.parametrize(
    ("env_id", "action"),
    [
        ("CartPole-v1", 2),
        ("CartPole-v1", -1),
        ("CartPole-v1", 0.5),
        ("CartPole-v1", True),
        ("LunarLanderContinuous-v3", np.zeros(3)),
        ("LunarLanderContinuous-v3", float("nan")),
    ],
)
def test_an_illegal_action_is_refused(env_id, action):
    game = world(env_id)
    game.reset(Seeds(0))
    with pytest.raises(AgentError, match="not legal"):
        game.advance(action)


def test_a_finished_or_unbegun_episode_is_refused():
    game = world("CartPole-v1", max_episode_steps=1)
    with pytest.raises(VenueError, match="reset"):
        game.advance(0)
    game.reset(Seeds(0))
    out = game.step({PLAYER: 0})[PLAYER]
    assert (out.terminated, out.truncated) == (False, True)
    with pytest.raises(VenueError, match="over"):
        game.advance(0)
    game.reset(Seeds(0))
    with pytest.raises(AgentError, match="one role"):
        game.step({Role("trader"): 0})


def test_spaces_that_a_world_cannot_show_are_refused():
    with pytest.raises(ConfigError, match="Tuple"):
        world("Blackjack-v1")
