"""The breaker in worlds without risk parts, and the search for a market that hurts."""

import math

import numpy as np
import pytest

from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    ActionSpec,
    Decision,
    EpisodeStart,
    Nanos,
    Observation,
    Outcome,
    Role,
    Step,
)
from agent_gym.evaluation.umc_walk import write_run
from agent_gym.evaluation.umc_walk.brake import Braked, drawdowns
from agent_gym.evaluation.umc_walk.stress import StressConfig, stress
from tests.evaluation.umc_walk_samples import FLAT_COST, known_bars, small_run

LOSS = 0.01
TRADER = Role("trader")


class Stubborn:
    """Wants to be in, whatever happens."""

    name = "stubborn"

    def reset(self, start):
        pass

    def act(self, obs):
        return Decision(1.0)

    def observe(self, step):
        pass


def played(limit, bars=60, actions=None):
    """Return the equity of one who holds while every bar loses a hundredth."""
    agent = Braked(Stubborn(), limit)
    actions = actions or ActionSpec(low=-1.0, high=1.0)
    agent.reset(EpisodeStart(TRADER, ("close",), actions, Seeds(0), Nanos(3_600 * 10**9)))
    for t in range(bars):
        seen = Observation(Nanos(t * 3_600 * 10**9), np.array([100.0]))
        made = agent.act(seen)
        reward = math.log1p(-LOSS * float(made.action))
        agent.observe(
            Step("e", t, TRADER, "stubborn", seen, made, Outcome(seen, reward, False, False))
        )
    return np.array(agent.equity), agent.tripped


def test_the_breaker_holds_its_limit_plus_one_bar():
    equity, tripped = played(0.15, bars=400)
    deepest, worst = drawdowns(equity)
    assert deepest <= 0.15 + worst
    free, _ = played(None)
    assert drawdowns(free)[0] > 0.4, "without it the same market takes far more"
    assert not played(None)[1]
    assert tripped or np.ptp(equity[-50:]) < 0.01


def test_actions_that_cannot_be_scaled_are_refused():
    with pytest.raises(AgentError, match="can be scaled"):
        played(0.15, actions=ActionSpec(n=3, levels=(-1.0, 0.0, 1.0)))


def test_a_stress_says_what_was_found_and_whether_it_held(tmp_path):
    run = small_run()
    write_run(tmp_path, run)
    config = StressConfig(
        budget=6,
        seeds=1,
        stress_bars=50,
        echo_size=8,
        largest_distance=100.0,
        scenarios=False,
        realism_bars=200,
    )
    found = stress(tmp_path / "agents" / "fold-02", known_bars(), FLAT_COST, config)
    told = found.as_dict()
    assert found.found.tried == 6
    assert told["red_team"]["worst"]["distance"] <= 100.0
    assert [each["market"] for each in told["episodes"]] == ["usual crowd", "worst crowd"]
    assert all(each["held"] for each in told["episodes"]) == found.held
