"""The breaker in worlds without risk parts, and the search for a market that hurts."""

import json
import math
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from agent_gym.apps.cli.umc_stress import fit_words, search_words, stress_table
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref
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
from agent_gym.evaluation.umc_walk.brake import Braked, fall_of
from agent_gym.evaluation.umc_walk.stress import Held, StressConfig, stress
from agent_gym.markets.source import open_market
from tests.evaluation.umc_walk_samples import FLAT_COST, known_bars, small_run

LOSS = 0.01
TRADER = Role("trader")
BTC = Path("/work/shared/data/BTCUSDT_spot_1h_2018-2024.parquet")


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


def test_the_breaker_holds_its_limit_plus_the_bar_that_passed_it():
    equity, tripped = played(0.15, bars=400)
    fall = fall_of(equity, 0.15)
    assert fall.held_strictly(0.15)
    free = fall_of(played(None)[0], 0.15)
    assert free.deepest > 0.4, "without it the same market takes far more"
    assert not free.held(0.15)
    assert not played(None)[1]
    assert tripped or np.ptp(equity[-50:]) < 0.01


def test_a_fall_is_taken_apart_where_the_limit_was_passed():
    still = fall_of(np.array([1.0, 0.9, 1.1]), 0.15)
    assert (still.deepest, still.passing, still.held(0.15)) == (pytest.approx(0.1), 0.0, True)
    # Passed by 10 %, then 2 % lost on the way out: more than one bar, and yet all that must be.
    out = fall_of(np.array([100.0, 85.5, 76.0, 74.0, 74.0]), 0.15)
    assert (out.passing, out.leaving) == (pytest.approx(0.095), pytest.approx(0.02))
    assert out.held(0.15)
    assert not out.held_strictly(0.15)
    # Still in the market a bar later: not held, whatever the worst bar was.
    late = fall_of(np.array([100.0, 60.0, 80.0, 84.0, 75.0, 70.0]), 0.15)
    assert late.after > 0.0
    assert not late.held(0.15)


def test_who_is_held_by_the_worst_bar_alone_is_not_held():
    """A large bar long before the limit says nothing about the bar that passed it."""
    equity = np.array([100.0, 86.0, 84.0, 80.0, 76.0, 74.0])
    fall = fall_of(equity, 0.15)
    assert fall.deepest <= 0.15 + fall.worst_bar
    assert not Held.of("late", -0.3, equity, 0.15).held


def shown(*episodes):
    found = SimpleNamespace(
        episodes=episodes,
        scenarios=(),
        all_episodes=episodes,
        held=all(each.held for each in episodes),
        config=small(),
    )
    screen = Console(width=80, file=StringIO())
    screen.print(stress_table(found))
    return " ".join(screen.file.getvalue().split())


def test_both_rules_are_shown_and_who_held_nothing_tried_nothing():
    still = Held.of("calm", 0.0, np.ones(5), 0.15)
    out = Held.of("shock", -0.3, np.array([100.0, 85.5, 76.0, 74.0, 74.0]), 0.15)
    assert (still.tried, still.tripped) == (False, False)
    assert (out.tried, out.tripped, out.held, out.held_strictly) == (True, True, True, False)
    text = shown(still, out)
    assert "calm 0.00 0.00 0.00 0.00 0.00 not tried not tried" in text
    assert "shock -30.00 26.00 14.50 9.50 2.00 NO yes" in text
    assert "held by the full rule" in text
    assert "in 0 of 1 episode with a position; the limit was passed in 1" in text
    assert "NOT TRIED" in shown(still)


def test_actions_that_cannot_be_scaled_are_refused():
    with pytest.raises(AgentError, match="can be scaled"):
        played(0.15, actions=ActionSpec(n=3, levels=(-1.0, 0.0, 1.0)))


def small(**more):
    said = {
        "fit_budget": 12,
        "budget": 6,
        "seeds": 1,
        "stress_bars": 50,
        "echo_size": 8,
        "largest_distance": 100.0,
        "scenarios": False,
        "realism_bars": 200,
    }
    return StressConfig(**said | more)


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    write_run(folder, small_run())
    return folder / "agents" / "fold-02"


def test_a_stress_begins_with_a_fitted_crowd_and_searches_around_it(agent):
    found = stress(agent, known_bars(), FLAT_COST, small())
    told = found.as_dict()
    json.dumps(told)
    assert found.found.tried == 6
    fitted = found.fitted.market.model_copy(update={"bars": 50})
    assert found.found.baseline.market == fitted
    assert told["red_team"]["worst"]["distance"] <= 100.0
    markets = [each["market"] for each in told["episodes"]]
    assert markets[0] == "fitted crowd"
    assert set(markets[1:]) <= {"worst crowd"}
    assert all(each["held"] for each in told["episodes"]) == found.held
    assert "6 crowds tried around it, 6 of them within the bound" in " ".join(search_words(found))


def test_without_a_budget_the_fitted_crowd_is_the_answer(agent):
    done = []
    config = small(budget=0)
    found = stress(agent, known_bars(), FLAT_COST, config, done=lambda *row: done.append(row))
    assert found.realistic
    assert found.found.worst is found.found.baseline
    assert [each.market for each in found.episodes] == ["fitted crowd"]
    assert "Nothing was searched" in " ".join(search_words(found))
    assert done == [(1, 1)]


def test_where_even_the_fitted_crowd_is_unreal_every_moment_is_told(agent):
    found = stress(agent, known_bars(), FLAT_COST, small(largest_distance=1e-3))
    assert not found.realistic
    assert found.found.tried == 0
    words = " ".join(fit_words(found))
    assert "NO CROWD LOOKS REAL" in words
    assert all(name in words for name in found.fitted.misses)
    assert search_words(found) == []
    assert [each.market for each in found.episodes] == ["fitted crowd"]


@pytest.mark.skipif(not BTC.is_file(), reason="real bars are not here")
def test_a_crowd_is_accepted_on_real_bars(agent):
    bars = open_market(
        Ref(use="file", params={"path": str(BTC), "repair": {"gaps": "keep"}}), Seeds(0)
    )
    real = bars.rows(len(bars) - 8_000, len(bars))
    config = small(fit_budget=48, realism_bars=1_000, echo_size=24, largest_distance=2.0)
    found = stress(agent, real, FLAT_COST, config)
    assert found.realistic
    assert found.found.baseline.distance < 0.7 * found.fitted.start_distance
    assert 0.5 < found.found.target.real_share(2.0) <= 1.0
