from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.exchange.costs import Costs
from agent_gym.training.desk.config import PaperConfig
from agent_gym.training.desk.paper import PaperDesk, PaperOutcome
from tests.samples import bars_of, random_bars
from tests.training.learning_samples import START, signal_at

HORIZON = 4 * HOUR_NS
HOUR = 3600.0
FREE = PaperConfig(costs=Costs.free(), volatility_bars=4)


def tape(after: list[tuple[float, float, float, float]]):
    """Five wobbling hours whose deviation is 1 % a bar, then the given bars, then calm."""
    closes = [100.0, 101.0, 100.0, 101.0, 100.0]
    past = [(c, c, c, c) for c in closes]
    rows = np.array(past + after + [(100.0, 100.0, 100.0, 100.0)] * 6)
    return bars_of(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], kind="spot")


def settled(bars, side="buy", config=FREE, at=5 * HOUR):
    found = PaperDesk(bars, config).settle(
        signal_at(0.0, "s", side=side), first(bars) + at, HORIZON
    )
    assert isinstance(found, PaperOutcome), found
    return found


def first(bars) -> float:
    return int(bars.ts[0]) / SECOND_NS


CALM = [(100.0, 100.5, 99.5, 100.0)] * 4
REACH = 1.5 * np.std(np.diff(np.log([100.0, 101.0, 100.0, 101.0, 100.0]))) * 2.0


@pytest.mark.parametrize(
    ("side", "bar", "barrier", "leave"),
    [
        ("buy", (100.0, 104.0, 99.5, 100.0), "gain", 100 * (1 + REACH)),
        ("buy", (100.0, 100.5, 96.0, 100.0), "loss", 100 * (1 - REACH)),
        ("sell", (100.0, 104.0, 99.5, 100.0), "loss", 100 * (1 + REACH)),
        ("sell", (100.0, 100.5, 96.0, 100.0), "gain", 100 * (1 - REACH)),
        ("buy", (100.0, 104.0, 96.0, 100.0), "loss", 100 * (1 - REACH)),
        ("sell", (100.0, 104.0, 96.0, 100.0), "loss", 100 * (1 + REACH)),
        ("buy", (90.0, 91.0, 90.0, 91.0), "loss", 90.0),
        ("buy", (110.0, 110.0, 109.0, 110.0), "gain", 110.0),
        ("sell", (110.0, 110.0, 109.0, 110.0), "loss", 110.0),
    ],
)
def test_barriers(side, bar, barrier, leave):
    found = settled(tape([CALM[0], bar, *CALM[:2]]), side)
    sign = 1.0 if side == "buy" else -1.0
    assert found.barrier == barrier
    assert found.payoff == pytest.approx(sign * (leave / 100.0 - 1.0), rel=1e-9)


def test_time_barrier_takes_the_last_close_and_costs_are_paid_twice():
    bars = tape([*CALM[:3], (100.0, 101.0, 99.5, 101.0)])
    free = settled(bars)
    assert (free.barrier, free.payoff) == ("time", pytest.approx(0.01))
    assert free.closed_at == first(bars) + 9 * HOUR
    paid = settled(bars, config=PaperConfig(volatility_bars=4, costs=Costs(impact=0.0)))
    assert free.payoff - paid.payoff == pytest.approx(11.5e-4 * 2.01)
    moved = settled(bars, config=PaperConfig(volatility_bars=4))
    impact = REACH / 3.0 * np.sqrt(0.1 / 1e9)  # amount over the volume of the last closed bar
    assert paid.payoff - moved.payoff == pytest.approx(impact * 2.01, rel=1e-6)


def test_funding_is_paid_by_longs_and_received_by_shorts():
    calm = tape(CALM)
    due = np.zeros(len(calm))
    due[[5, 7, 8, 9]] = 0.5, 0.001, 0.002, 0.5  # at the entry and after the end: not ours
    bars = replace(calm, extra={"funding": due})
    assert settled(bars).payoff == pytest.approx(-0.003)
    assert settled(bars, "sell").payoff == pytest.approx(0.003)


def test_entry_is_the_next_open_not_the_bar_under_way():
    bars = tape([(100.0, 130.0, 100.0, 120.0), (120.0, 120.0, 120.0, 120.0), *CALM[:2]])
    found = settled(bars, at=5 * HOUR + 1.0)
    # Entered at 120, so the 20 % of the hour under way are not earned.
    assert found.payoff < 0.0


@pytest.mark.parametrize(
    ("at_hours", "as_of_hours", "why"),
    [
        (5.0, 8.9, "too_young"),
        (5.5, 9.9, "too_young"),
        (1.0, 20.0, "no_bars"),
        (14.0, 99.0, "too_young"),
    ],
)
def test_why_there_is_none(at_hours, as_of_hours, why):
    bars = tape(CALM)
    begin = first(bars)
    desk = PaperDesk(bars, FREE)
    found = desk.settle(
        signal_at(0.0, "s"), begin + at_hours * HOUR, HORIZON, begin + as_of_hours * HOUR
    )
    assert found == why
    assert desk.settle(signal_at(0.0, "s", base="ETH"), begin, HORIZON) == "no_market"


def test_a_hole_in_the_bars_is_no_outcome():
    bars = random_bars(60)
    keep = np.r_[0:30, 33:60]
    rows = bars_of(bars.open[keep], bars.high[keep], bars.low[keep], bars.close[keep])
    holed = type(rows)(
        rows.instrument,
        rows.period_ns,
        bars.ts[keep],
        rows.open,
        rows.high,
        rows.low,
        rows.close,
        rows.volume,
        rows.extra,
    )
    at = int(bars.ts[29]) / SECOND_NS
    assert PaperDesk(holed, FREE).settle(signal_at(0.0, "s"), at, HORIZON) == "gap_in_bars"


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), hour=st.integers(50, 90), cut=st.integers(1, 40))
def test_later_bars_change_nothing(seed, hour, cut):
    bars = random_bars(140, seed)
    at = START + hour * HOUR
    as_of = at + 4 * HOUR + cut * HOUR
    known = round((as_of - START) / HOUR)
    seen = PaperDesk(bars, FREE).settle(signal_at(0.0, "s"), at, HORIZON, as_of)
    alone = PaperDesk(bars.rows(0, known), FREE).settle(signal_at(0.0, "s"), at, HORIZON, as_of)
    assert seen == alone
    assert isinstance(seen, PaperOutcome)
    assert seen.closed_at <= as_of
