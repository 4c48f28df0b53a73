"""States of a market: told from the past alone, lasting, and every bar's money in one of them."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.regimes import STATES, WINDOW, by_state, market_states
from agent_gym.markets.source import open_market


@pytest.fixture(scope="module")
def bars():
    return open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 1_500}), Seeds(1))


def walk(bars, moves):
    """The same bars with other closes."""
    close = 100.0 * np.exp(np.cumsum(moves))
    return replace(bars, **dict.fromkeys(("open", "high", "low", "close"), close))


def named(states, at):
    return STATES[states.state[at - states.first]]


def test_a_state_does_not_know_what_comes_after_it(bars):
    whole = market_states(bars, bars.ts)
    part = market_states(bars.rows(0, 1_000), bars.ts[:1_000])
    assert whole.first == WINDOW
    calm = (whole.state[: part.state.size] != 3) & (part.state != 3)
    assert calm.mean() > 0.5
    # Only what counts as turbulent depends on the median over the whole series.
    assert np.array_equal(whole.state[: part.state.size][calm], part.state[calm])


def test_rises_falls_and_storms_are_told_apart(bars):
    rng = Seeds(0).child("moves").rng()
    moves = 0.001 * rng.normal(size=len(bars))
    moves[300:500] += 0.002
    moves[700:900] -= 0.002
    moves[1_100:1_300] *= 8.0
    states = market_states(walk(bars, moves), bars.ts)
    assert named(states, 480) == "rising"
    assert named(states, 880) == "falling"
    assert named(states, 1_250) == "turbulent"
    spans = states.spans()
    assert [span.start_ns for span in spans[1:]] == [span.end_ns for span in spans[:-1]]
    assert len(spans) < 60  # it does not flicker


def test_the_returns_of_all_states_make_the_return_of_the_whole(bars):
    states = market_states(bars, bars.ts)
    equity = {
        "own": np.linspace(100.0, 150.0, len(bars)),
        "ruined": np.linspace(50, -50, len(bars)),
    }
    found = by_state(states, bars.close, equity)
    assert sum(each.share for each in found) == pytest.approx(1.0)
    for curve, told in (
        (bars.close, [each.market for each in found]),
        (equity["own"], [each.arms["own"] for each in found]),
    ):
        whole = curve[-1] / curve[WINDOW]
        assert np.prod([1.0 + each for each in told]) == pytest.approx(whole)
    assert found[0].arms["ruined"] is None


def test_a_short_market_has_no_states(bars):
    assert market_states(bars.rows(0, 200), bars.ts[:200]) is None
    assert market_states(bars, bars.ts[:500]) is None
