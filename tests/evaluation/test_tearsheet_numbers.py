from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.metrics import drawdown, risk_returns, sharpe
from agent_gym.evaluation.tearsheet.history import (
    deepest_drawdowns,
    monthly_returns,
    rolling_sharpe,
)
from agent_gym.evaluation.tearsheet.sheet import Regime, Sheet
from agent_gym.evaluation.tearsheet.tables import costs_of, exposure_pct, trips_of, turns
from agent_gym.evaluation.tearsheet.thinning import (
    candle_levels,
    candles,
    fewer_spans,
    regime_spans,
    thin,
)
from agent_gym.exchange.series import FILL
from agent_gym.markets import Bars, Instrument
from tests.evaluation.sheet_samples import WILD, sheet, stretches
from tests.samples import START_NS, random_bars


def walk(n: int, seed: int = 0, sigma: float = 0.02) -> np.ndarray:
    return 100.0 * np.exp(np.cumsum(Seeds(seed).child("walk").rng().normal(0.0, sigma, n)))


def closes(n: int, period_ns: int = HOUR_NS) -> np.ndarray:
    return START_NS + period_ns * np.arange(1, n + 1)


@given(st.integers(1, 3_000), st.integers(10, 300), st.integers(0, 50))
def test_a_thinned_line_keeps_its_extremes_and_both_ends(n, points, seed):
    values = Seeds(seed).child("line").rng().normal(size=n)
    at = thin(values, points)
    assert (at[0], at[-1]) == (0, n - 1)
    assert (np.diff(at) > 0).all()
    assert values[at].max() == values.max()
    assert values[at].min() == values.min()
    assert at.size <= points + 4


def test_one_spike_in_half_a_million_is_kept():
    values = np.zeros(500_000)
    values[123_457], values[400_001] = 1e9, -1e9
    at = thin(values)
    assert {123_457, 400_001} <= set(at.tolist())
    assert at.size < 5_000


@given(st.integers(2, 2_000), st.integers(10, 200), st.integers(0, 20))
def test_candles_lose_no_extreme_and_are_few_enough(n, most, seed):
    bars = random_bars(n, seed)
    made = candles(bars, most)
    assert made.ts.size <= max(most, 1)
    assert made.high.max() == bars.high.max()
    assert made.low.min() == bars.low.min()
    assert made.open[0] == bars.open[0]
    assert made.close[-1] == bars.close[-1]
    assert (np.diff(made.ts) > 0).all()
    assert made.ts[0] == bars.ts[0]
    assert (made.low <= np.minimum(made.open, made.close)).all()
    assert (made.high >= np.maximum(made.open, made.close)).all()


def test_a_candle_is_its_own_bars():
    bars = random_bars(1_000)
    made = candles(bars, 100)
    assert made.period == "12h"
    assert made.size == 12
    inside = slice(12, 24)
    assert made.open[1] == bars.open[12]
    assert made.high[1] == bars.high[inside].max()
    assert made.low[1] == bars.low[inside].min()
    assert made.close[1] == bars.close[23]


def test_candles_keep_gaps_and_odd_periods():
    bars = random_bars(400)
    ts = bars.ts.copy()
    ts[200:] += 1_000 * HOUR_NS
    holed = replace(bars, ts=ts)
    made = candles(holed, 300)
    assert np.diff(made.ts).max() > 900 * HOUR_NS
    odd = Bars(
        Instrument(),
        7 * MINUTE_NS,
        START_NS + 7 * MINUTE_NS * np.arange(400),
        *(getattr(bars, name) for name in ("open", "high", "low", "close", "volume")),
    )
    assert candles(odd, 50).ts.size <= 50


def test_levels_go_from_coarse_to_fine_without_repeats():
    levels = candle_levels(random_bars(5_000))
    sizes = [level.size for level in levels]
    assert sizes == sorted(set(sizes), reverse=True)
    assert levels[-1].size == 1
    assert len(candle_levels(random_bars(100))) == 1


@given(st.integers(2, 400), st.integers(0, 50))
def test_the_deepest_drawdown_is_the_figure(n, seed):
    curve = walk(n, seed)
    found = deepest_drawdowns(closes(n), HOUR_NS, curve, top=1_000)
    depth, length = drawdown(curve)
    if depth == 0.0:
        assert found == []
        return
    assert found[0].depth == depth
    assert found[0].days == length * HOUR_NS / DAY_NS
    depths = [fall.depth for fall in found]
    assert depths == sorted(depths, reverse=True)
    for fall in found:
        assert fall.peak_ns < fall.trough_ns
        assert fall.end_ns is None or fall.end_ns > fall.trough_ns
    assert sum(fall.end_ns is None for fall in found) <= 1


def test_drawdowns_by_hand():
    curve = np.array([100.0, 110.0, 99.0, 110.0, 105.0, 120.0, 60.0])
    found = deepest_drawdowns(closes(7), HOUR_NS, curve)
    assert [round(fall.depth, 4) for fall in found] == [0.5, 0.1, 0.0455]
    assert found[0].end_ns is None
    assert found[1].end_ns == closes(7)[3]
    assert len(deepest_drawdowns(closes(7), HOUR_NS, curve, top=2)) == 2


@given(st.integers(2, 3_000), st.integers(0, 30), st.sampled_from([HOUR_NS, DAY_NS]))
def test_months_compound_to_years_and_years_to_the_whole(n, seed, period_ns):
    curve = walk(n, seed)
    years = monthly_returns(closes(n, period_ns), curve)
    for year in years:
        assert math.prod(1.0 + r for r in year.months.values()) == pytest.approx(1.0 + year.total)
    whole = math.prod(1.0 + year.total for year in years)
    assert whole == pytest.approx(curve[-1] / curve[0])
    assert [year.year for year in years] == sorted({year.year for year in years})


def test_a_mark_at_midnight_ends_its_month():
    ends = np.array(["2024-01-31T23", "2024-02-01T00", "2024-02-01T01", "2024-03-01T00"])
    ts = ends.astype("datetime64[ns]").astype(np.int64)
    (year,) = monthly_returns(ts, np.array([100.0, 110.0, 121.0, 99.0]))
    assert year.months == {1: pytest.approx(0.1), 2: pytest.approx(-0.1)}


def test_nothing_is_earned_on_nothing():
    ts = closes(3, 31 * DAY_NS)
    years = monthly_returns(ts, np.array([100.0, 0.0, 0.0]))
    assert list(years[0].months.values())[-1] is None
    assert years[0].total == -1.0
    assert rolling_sharpe(closes(3_000), HOUR_NS, np.append(walk(2_999), 0.0)) is None


def test_the_rolling_sharpe_is_the_sharpe_of_its_window():
    curve, ts = walk(24 * 400), closes(24 * 400)
    rolled = rolling_sharpe(ts, HOUR_NS, curve)
    returns, per_year = risk_returns(ts - HOUR_NS, HOUR_NS, curve)
    assert rolled.window == 90
    assert rolled.sharpe[0] == sharpe(returns[:90], per_year)
    assert rolled.sharpe[-1] == sharpe(returns[-90:], per_year)
    # A window ends at the midnight at which its last day does, and knows nothing of later days.
    last = rolled.ts[100]
    cut = ts <= last
    again = rolling_sharpe(ts[cut], HOUR_NS, curve[cut])
    assert again.ts[-1] == last
    assert again.sharpe[-1] == rolled.sharpe[100]


def test_few_days_make_short_windows_and_fewer_none():
    assert rolling_sharpe(closes(24 * 60), HOUR_NS, walk(24 * 60)).window == 20
    assert rolling_sharpe(closes(24 * 20), HOUR_NS, walk(24 * 20)) is None
    daily = rolling_sharpe(closes(5_000, DAY_NS), DAY_NS, walk(5_000))
    assert daily.ts.size == len(daily.sharpe) <= 2_000


def test_costs_add_up_and_agree_with_the_figures():
    shown = sheet(random_bars(600, funding=1e-4), max_leverage=1.0)
    costs = costs_of(shown)
    own = shown.figures[shown.subject]
    parts = {part.name: part for part in costs.parts}
    assert parts["fees"].amount == own["fees"]
    assert parts["funding"].amount == own["funding"] != 0.0
    assert costs.before - parts["all costs"].amount == pytest.approx(costs.after)
    assert costs.after == pytest.approx(own["final_equity"] - shown.curve[0])
    assert parts["all costs"].share_of_gross == own["cost_share"]
    taker = parts["fees"].bps_of_traded
    assert taker == pytest.approx(10.0)


def test_no_costs_are_known_without_their_figures():
    shown = sheet()
    bare = Sheet("t", "a", shown.ts, {"a": shown.curve}, {"a": {"sharpe": 1.0}}, "run")
    assert costs_of(bare) is None
    assert trips_of(bare) == []
    assert exposure_pct(bare) is None


def test_round_trips_are_the_metrics_own():
    shown = sheet(random_bars(600, kind="spot"), WILD)
    trips = trips_of(shown)
    own = shown.figures[shown.subject]
    assert len(trips) == own["round_trips"] > 10
    assert sum(trip.net > 0.0 for trip in trips) / len(trips) == own["hit_rate"]
    first = trips[0]
    assert first.net_pct == pytest.approx(100.0 * first.net / (first.qty * first.entry_price))
    assert first.hours == (first.exit_ns - first.entry_ns) / HOUR_NS


def test_turns_are_fills_that_change_the_side():
    fills = np.zeros(5, FILL)
    fills["qty"] = [0.1, 0.2, -0.3, -1.0, 2.0]  # the third closes but for rounding
    assert turns(fills).tolist() == [0, 2, 3, 4]
    assert turns(fills[:0]).size == 0


def test_regimes_are_stretches_of_one_name():
    ts = np.array([10, 20, 30, 40])
    found = regime_spans(ts, 10, ["a", "b", "b", "a"])
    assert found == [Regime(0, 10, "a"), Regime(10, 30, "b"), Regime(30, 40, "a")]


@given(st.integers(1, 900), st.integers(5, 100))
def test_many_regimes_become_few_that_cover_the_same_time(n, most):
    spans = stretches(n)
    found = fewer_spans(spans, most)
    assert len(found) <= max(most, 1)
    assert (found[0].start_ns, found[-1].end_ns) == (spans[0].start_ns, spans[-1].end_ns)
    assert all(one.end_ns == other.start_ns for one, other in pairwise(found))


@pytest.mark.parametrize(
    "fault",
    [
        {"subject": "nobody"},
        {"ts": closes(3)},
        {"equity": {"a": np.array([1.0, np.nan])}},
        {"equity": {"a": np.array([0.0, 1.0])}},
        {"position": np.zeros(3)},
        {"fills": np.zeros(1, FILL)},
        {"ts": closes(1), "equity": {"a": np.ones(1)}},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_a_sheet_that_does_not_fit_together_is_refused(fault):
    fields = {
        "title": "t",
        "subject": "a",
        "ts": closes(2),
        "equity": {"a": np.ones(2)},
        "figures": {"a": {}},
        "command": "run",
    }
    Sheet(**fields)
    with pytest.raises(ConfigError):
        Sheet(**(fields | fault))
