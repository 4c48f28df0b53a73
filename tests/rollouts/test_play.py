import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace
from rollout_samples import FAULTS, OTHER, TRADER, Dice, Faulty, Walk, WalkConfig, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.errors import AgentError
from agent_gym.core.types import Decision
from agent_gym.rollouts.contracts import trajectory_hash
from agent_gym.rollouts.play import EpisodeResult, play, run_episode
from agent_gym.rollouts.sinks import MemorySink

BOTH = WalkConfig(roles=("trader", "other"))


def team_of(agent, roles=(TRADER,)):
    return Independent(dict.fromkeys(roles, agent))


def test_one_role_from_start_to_end():
    agent, sink = Dice(), MemorySink()
    result = play(Walk(WalkConfig(n=20)), team_of(agent), "e1", seeds(), (sink,))
    steps = sink.steps
    assert (result.episode, result.steps, result.status, result.error) == ("e1", 20, "ok", None)
    assert [step.t for step in steps] == list(range(20))
    assert agent.told == 20
    assert result.total_reward == {TRADER: sum(step.after.reward for step in steps)}
    assert result.total_reward[TRADER] != 0.0
    assert {(step.episode, step.role, step.agent) for step in steps} == {("e1", "trader", "dice")}
    assert [step.after.truncated for step in steps] == [False] * 19 + [True]
    for now, then in pairwise(steps):
        assert then.before is now.after.observation


def test_a_role_that_leaves_is_not_asked_again():
    agents, sink = {TRADER: Dice(), OTHER: Dice()}, MemorySink()
    result = play(Walk(BOTH), Independent(agents), "e", seeds(), (sink,))
    rows = [(step.t, step.role) for step in sink.steps]
    assert rows == [(t, r) for t in range(20) for r in (TRADER, OTHER) if r == TRADER or t < 10]
    assert result.steps == 20
    assert agents[OTHER].told == 10
    for role in (TRADER, OTHER):
        rewards = [step.after.reward for step in sink.steps if step.role == role]
        assert result.total_reward[role] == pytest.approx(math.fsum(rewards), abs=1e-15)


def test_one_role_is_played_as_many_are(monkeypatch):
    one, many = MemorySink(), MemorySink()
    first = play(Walk(WalkConfig()), team_of(Dice()), "e", seeds(3), (one,))
    loops = sys.modules["agent_gym.rollouts.play"]
    monkeypatch.setattr(loops, "_solo", loops._many)
    second = play(Walk(WalkConfig()), team_of(Dice()), "e", seeds(3), (many,))
    assert trajectory_hash(one.steps) == trajectory_hash(many.steps)
    assert first == second


@pytest.mark.parametrize("config", [WalkConfig(), BOTH])
def test_same_seed_same_bits_and_another_seed_another_episode(config):
    def hash_of(root, episode="e"):
        sink, agents = MemorySink(), {role: Dice() for role in Walk(config).roles}
        play(Walk(config), Independent(agents), episode, seeds(root), (sink,))
        return trajectory_hash([replace(step, episode="same") for step in sink.steps])

    assert hash_of(1) == hash_of(1)
    assert hash_of(1) != hash_of(2)
    assert hash_of(1, "e") != hash_of(1, "f")


def test_an_agent_that_draws_more_does_not_change_the_world():
    class Thirsty(Dice):
        def reset(self, start):
            super().reset(start)
            self.rng.random(100)

    worlds = []
    for agent in (Dice(), Thirsty()):
        sink = MemorySink()
        play(Walk(WalkConfig()), team_of(agent), "e", seeds(), (sink,))
        worlds.append(np.array([step.after.observation.features for step in sink.steps]))
    assert worlds[0].tobytes() == worlds[1].tobytes()


@pytest.mark.parametrize("config", [WalkConfig(), BOTH])
def test_a_failing_agent_is_a_row_with_what_it_played(config):
    sink, roles = MemorySink(), Walk(config).roles
    team = Independent({role: Faulty(FAULTS["error"]) for role in roles})
    result = run_episode(Walk(config), team, "e", seeds(), (sink,))
    assert (result.status, result.steps) == ("error", 5)
    assert len(sink.steps) == 5 * len(roles)
    assert result.error["error"] == "ValueError"
    assert result.error["what"] == "a plain mistake"
    assert result.error["raised_at"].startswith("rollout_samples.py:")
    assert result.total_reward[TRADER] == sum(
        step.after.reward for step in sink.steps if step.role == TRADER
    )
    with pytest.raises(ValueError, match="plain mistake"):
        play(Walk(config), team, "e", seeds())


def test_a_step_is_kept_even_if_the_agent_chokes_on_it():
    class Choking(Dice):
        def observe(self, step):
            raise AgentError("too much", found=step.t)

    sink = MemorySink()
    result = run_episode(Walk(WalkConfig()), team_of(Choking()), "e", seeds(), (sink,))
    assert (result.status, result.steps, len(sink.steps)) == ("error", 1, 1)
    assert result.error["error"] == "AgentError"
    assert result.error["found"] == "0"


@pytest.mark.parametrize("where", ["reset", "start", "step"])
def test_a_failing_world_is_a_row(where, monkeypatch):
    def fail(*_):
        raise RuntimeError(where)

    world = Walk(WalkConfig())
    monkeypatch.setattr(world, where, fail)
    result = run_episode(world, team_of(Dice()), "e", seeds())
    assert (result.status, result.steps, result.error["what"]) == ("error", 0, where)


def test_ctrl_c_is_a_row():
    def interrupt():
        raise KeyboardInterrupt

    result = run_episode(Walk(WalkConfig()), team_of(Faulty(interrupt)), "e", seeds())
    assert (result.status, result.steps, result.error) == ("interrupted", 5, None)


@pytest.mark.parametrize("config", [WalkConfig(nan_at=4), BOTH.model_copy(update={"nan_at": 4})])
def test_a_reward_that_is_no_number_is_an_error_and_fits_into_json(config):
    team = Independent({role: Dice() for role in Walk(config).roles})
    result = run_episode(Walk(config), team, "e", seeds())
    assert result.status == "error"
    assert result.error["error"] == "VenueError"
    assert result.as_dict()["total_reward"]["trader"] is None


def test_a_decision_for_nobody_is_an_error():
    class Stray:
        @property
        def names(self):
            return {TRADER: "stray"}

        def reset(self, starts): ...
        def observe(self, steps): ...
        def act(self, obs):
            return {OTHER: Decision(1)}

    for config in (WalkConfig(), WalkConfig(roles=("trader", "x"))):
        assert run_episode(Walk(config), Stray(), "e", seeds()).status == "error"


def test_a_world_without_a_first_observation_is_an_empty_episode(monkeypatch):
    world = Walk(WalkConfig())
    monkeypatch.setattr(world, "reset", lambda seeds: {})
    assert play(world, team_of(Dice()), "e", seeds()) == EpisodeResult("e", 0, {TRADER: 0.0})
