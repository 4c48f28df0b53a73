from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import ConfigError, DataError, Seeds, VenueError
from agent_gym.exchange import AccountRules, Costs, Tape, run_series, run_sweep
from tests.samples import bars_of, flat_bars, random_bars, without_funding

BPS = 1e-4


def flips(n, low=0.0, high=1.0):
    return np.where(np.arange(n) % 2 == 0, high, low)


def identity_gap(result, bars, rules, avg_cost):
    """Return how far cash + P&L accounts are from equity at the end."""
    totals = result.totals
    unrealised = result.position[-1] * (bars.close[-1] - avg_cost)
    parts = rules.cash + totals["realised"] - totals["fees"] - totals["funding"]
    return parts + totals["insurance"] + unrealised - totals["equity"]


def average_cost(fills):
    pos = avg = 0.0
    for fill in fills:
        qty, price = fill["qty"], fill["price"]
        if pos * qty >= 0:
            avg = (avg * abs(pos) + price * abs(qty)) / (abs(pos) + abs(qty))
        elif abs(qty) > abs(pos) * (1 + 1e-12):
            avg = price
        pos += qty
        if abs(pos) < 1e-12 * abs(qty):
            pos = 0.0
    return avg


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["spot", "perpetual"]),
    price=st.sampled_from([1e-12, 1.0, 1e12]),
    leverage=st.sampled_from([1.0, 5.0]),
    latency=st.integers(0, 2),
)
def test_money_is_conserved_for_any_targets(seed, kind, price, leverage, latency):
    bars = random_bars(80, seed, kind=kind, start_price=price, sigma=0.05, funding=5e-4)
    rules = AccountRules(max_leverage=leverage)
    costs = Costs(latency_bars=latency, participation=1.0)
    targets = Seeds(seed).child("targets").rng().uniform(-leverage, leverage, 80)
    result = run_series(bars, targets, costs, rules)
    scale = rules.cash + np.abs(result.fills["qty"] * result.fills["price"]).sum()
    assert abs(identity_gap(result, bars, rules, average_cost(result.fills))) < 1e-9 * scale
    worth = result.cash + result.position * bars.close
    assert np.allclose(worth, result.equity, rtol=0, atol=1e-9 * scale)
    paid = rules.cash - (result.fills["qty"] * result.fills["price"]).sum()
    paid -= result.fills["fee"].sum() + result.totals["funding"] - result.totals["insurance"]
    assert paid == pytest.approx(result.cash[-1], abs=1e-9 * scale)
    for column in (result.equity, result.position, result.cash):
        assert np.isfinite(column).all()


@given(
    trips=st.integers(1, 20),
    fee=st.floats(0, 100),
    half=st.floats(0, 20),
    slip=st.floats(0, 20),
    price=st.sampled_from([1e-12, 3.0, 1e12]),
)
def test_round_trips_at_a_constant_price_lose_exactly_the_costs(trips, fee, half, slip, price):
    bars = flat_bars(2 * trips + 1, price=price, volume=1e30 / price)
    costs = Costs.fees_only(fee).model_copy(update={"half_spread_bps": half, "slippage_bps": slip})
    units = 1.0 / price
    result = run_series(bars, units * flips(2 * trips + 1), costs, sizing="units")
    move = (half + slip) * BPS
    per_trip = (1 + move) - (1 - move) + fee * BPS * ((1 + move) + (1 - move))
    assert len(result.fills) == 2 * trips
    lost = 10_000.0 - result.equity[-1]
    assert lost == pytest.approx(trips * per_trip, rel=1e-9, abs=1e-9)
    assert result.totals["slippage"] == pytest.approx(trips * 2 * move, rel=1e-9, abs=1e-12)


@given(seed=st.integers(0, 10**6), latency=st.integers(0, 4))
def test_no_fill_on_the_deciding_bar(seed, latency):
    bars = random_bars(60, seed)
    rng = Seeds(seed).child("when").rng()
    decided = int(rng.integers(0, 50))
    targets = np.zeros(60)
    targets[decided:] = 1.0
    result = run_series(bars, targets, Costs(latency_bars=latency, participation=None))
    first = decided + 1 + latency
    assert result.fills["bar"].tolist() == [first]
    assert (result.position[:first] == 0).all()
    assert result.position[first] > 0


@given(seed=st.integers(0, 10**6), cut=st.integers(5, 55))
def test_the_future_changes_nothing_before_it(seed, cut):
    bars = random_bars(60, seed)
    targets = Seeds(seed).child("targets").rng().uniform(-1, 1, 60)
    whole = run_series(bars, targets)
    prefix = run_series(bars.rows(0, cut), targets[:cut])
    assert prefix.equity.tobytes() == whole.equity[:cut].tobytes()


def test_costs_move_the_price_against_the_taker():
    bars = flat_bars(4)
    costs = Costs.fees_only(10).model_copy(update={"half_spread_bps": 5.0, "slippage_bps": 2.0})
    bought, sold = run_series(bars, np.array([1.0, 0, 0, 0]), costs, sizing="units").fills
    assert bought["price"] == pytest.approx(100 * (1 + 7 * BPS))
    assert sold["price"] == pytest.approx(100 * (1 - 7 * BPS))
    assert bought["fee"] == pytest.approx(bought["price"] * 10 * BPS)


def test_impact_grows_with_the_root_of_size():
    bars = random_bars(50, 3, volume=1000.0)
    costs = Costs.free().model_copy(update={"impact": 1.0})
    moves = []
    for units in (1.0, 4.0):
        targets = np.zeros(50)
        targets[30:] = units
        fill = run_series(bars, targets, costs, AccountRules(cash=1e6), sizing="units").fills[0]
        moves.append(fill["price"] / bars.open[31] - 1.0)
    assert moves[1] == pytest.approx(2 * moves[0], rel=1e-9)
    assert moves[0] > 0


def test_participation_cap_fills_over_several_bars_and_reaches_the_target():
    bars = flat_bars(12, volume=100.0)
    costs = Costs.free().model_copy(update={"participation": 0.1})
    result = run_series(bars, np.full(12, 35.0), costs, sizing="units")
    assert result.fills["qty"].tolist() == [10.0, 10.0, 10.0, 5.0]
    assert result.position[-1] == 35.0


def test_nothing_fills_in_a_bar_without_volume():
    bars = random_bars(10, 0)
    volume = bars.volume.copy()
    volume[1:5] = 0.0
    dry = bars_of(bars.open, bars.high, bars.low, bars.close)
    dry = type(dry)(
        dry.instrument,
        dry.period_ns,
        dry.ts,
        *(getattr(dry, c) for c in ("open", "high", "low", "close")),
        volume,
    )
    result = run_series(dry, np.ones(10), Costs.free())
    assert result.fills["bar"].tolist() == [5]


def test_spot_neither_sells_short_nor_borrows():
    bars = random_bars(40, 5, kind="spot")
    short = run_series(bars, np.full(40, -1.0))
    assert len(short.fills) == 0
    greedy = run_series(bars, np.full(40, 3.0))
    assert (greedy.cash >= -1e-9).all()
    assert greedy.position[-1] > 0


def test_an_unaffordable_target_does_not_trade_dust_for_ever():
    bars = random_bars(200, 6, kind="perpetual")
    result = run_series(bars, np.full(200, 1.0), Costs(participation=None))
    assert len(result.fills) == 1


def test_leverage_and_liquidation_with_insurance():
    price = np.array([100.0, 100.0, 100.0, 40.0, 40.0])
    bars = bars_of(price, price, price, price, kind="perpetual")
    rules = AccountRules(cash=100.0, max_leverage=5.0)
    result = run_series(bars, np.full(5, 5.0), Costs.free(), rules, sizing="units")
    assert result.fills["forced"].tolist() == [False, True]
    assert result.fills["price"][1] == 40.0  # the gap, not the trigger
    assert result.equity[-1] == 0.0
    assert result.totals["insurance"] == pytest.approx(200.0)  # it pays losses, not fees
    assert result.totals["fees"] == 0.0
    assert len(result.fills) == 2  # the old target does not come back by itself


def test_liquidation_at_the_trigger_when_the_bar_passes_it():
    opened = np.array([100.0, 100.0, 99.0])
    low = np.array([100.0, 100.0, 70.0])
    bars = bars_of(opened, opened, low, opened, kind="perpetual")
    rules = AccountRules(cash=100.0, max_leverage=5.0, maintenance_margin=0.01)
    result = run_series(bars, np.full(3, 5.0), Costs.free(), rules, sizing="units")
    trigger = 400.0 / (5.0 * (1 - 0.01))
    assert result.fills["price"][-1] == pytest.approx(trigger)
    fee = 5 * trigger * 50 * BPS
    assert result.equity[-1] == pytest.approx(100 + 5 * (trigger - 100) - fee)


def test_funding_moves_money_from_longs_to_nobody_and_back():
    bars = random_bars(40, 7, funding=1e-3)
    long = run_series(bars, np.ones(40), Costs.free())
    short = run_series(bars, -np.ones(40), Costs.free())
    assert long.totals["funding"] > 0 > short.totals["funding"]
    held = long.position[:-1]
    due = (held * bars.open[1:] * bars.extra["funding"][1:]).sum()
    assert long.totals["funding"] == pytest.approx(due)


def test_flash_crash_and_recovery_hold_the_invariants():
    price = np.full(30, 100.0)
    low = price.copy()
    low[15] = 1e-9
    bars = bars_of(price, price, low, price, kind="perpetual")
    result = run_series(bars, np.full(30, 3.0), Costs(), AccountRules(max_leverage=3.0))
    assert result.fills["forced"].tolist() == [False, True]
    assert (result.equity >= 0).all()
    assert np.isfinite(result.equity).all()


def test_lots_and_smallest_notional():
    bars = flat_bars(6)
    grid = bars.instrument.model_copy(update={"lot": 0.5, "min_notional": 120.0})
    bars = type(bars)(
        grid,
        bars.period_ns,
        bars.ts,
        *(getattr(bars, c) for c in ("open", "high", "low", "close", "volume")),
    )
    result = run_series(bars, np.array([0.0337, 0.01, 0.005, 0.0, 0.0, 0.0]), Costs.free())
    # Half a unit is too small a trade, but a whole position may be closed however small it is.
    assert result.fills["qty"].tolist() == [3.0, -2.0, -1.0]
    assert result.fills["bar"].tolist() == [1, 2, 4]
    assert result.position[-1] == 0.0


def test_a_sweep_keeps_the_totals_of_single_runs():
    bars = random_bars(100, 8)
    wishes = [np.sin(np.arange(100) / k) for k in (3.0, 7.0, 11.0)]
    rows = run_sweep(bars, wishes)
    for row, wish in zip(rows, wishes, strict=True):
        single = run_series(bars, wish)
        assert row["equity"] == single.equity[-1]
        peak = np.maximum.accumulate(single.equity)
        assert row["max_drawdown"] == pytest.approx((1 - single.equity / peak).max())


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.ones(9), "differ in length"),
        (np.full(10, np.nan), "not a finite number"),
        (np.full(10, np.inf), "not a finite number"),
    ],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(VenueError, match=message):
        run_series(random_bars(10), targets)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize("column", ["open", "high", "low", "close"])
def test_a_bar_that_cannot_be_traded_is_named(value, column):
    bars = random_bars(10)
    columns = {c: getattr(bars, c).copy() for c in ("open", "high", "low", "close", "volume")}
    columns[column][6] = value
    broken = type(bars)(bars.instrument, bars.period_ns, bars.ts, **columns)
    with pytest.raises(DataError, match="row 7"):
        Tape.of(broken, Costs())


def test_missing_funding_is_refused_or_said_to_be_zero():
    bars = random_bars(10, funding=1e-3)
    rates = bars.extra["funding"].copy()
    rates[3] = np.nan
    prices = {c: getattr(bars, c) for c in ("open", "high", "low", "close", "volume")}
    holes = type(bars)(bars.instrument, bars.period_ns, bars.ts, **prices, extra={"funding": rates})
    with pytest.raises(DataError, match="row 4"):
        run_series(holes, np.ones(10))
    assert len(run_series(holes, np.ones(10), Costs(missing_funding="zero")).fills) == 1


def test_a_perpetual_without_a_funding_column_is_refused_or_said_to_be_zero():
    with_rates = random_bars(40, funding=1e-3)
    bars = without_funding(with_rates)
    with pytest.raises(DataError) as refused:
        Tape.of(bars, Costs())
    said = refused.value.as_dict()
    assert said["found"] == "no funding column"
    assert all(said[part] for part in ("what", "where", "found", "expected", "remedy"))
    assert "BTC/USDT, row 1, 2024-01-01" in said["where"]
    assert "missing_funding=zero" in said["remedy"]
    free = run_series(bars, np.ones(40), Costs(missing_funding="zero"))
    known = random_bars(40, funding=0.0)
    assert free.totals["funding"] == 0.0
    assert free.equity.tobytes() == run_series(known, np.ones(40)).equity.tobytes()
    paying = run_series(with_rates, np.ones(40), Costs(missing_funding="zero"))
    assert paying.totals["funding"] > 0.0


def test_every_rate_that_is_not_a_number_counts_as_missing():
    bars = random_bars(10, funding=1e-3)
    for rate in (np.nan, np.inf, -np.inf):
        odd = replace(bars, extra={"funding": np.full(10, rate)})
        with pytest.raises(DataError, match="10 of 10 bars without a rate"):
            Tape.of(odd, Costs())


@pytest.mark.parametrize("kind", ["spot", "prediction"])
def test_only_perpetuals_need_funding(kind):
    bars = without_funding(random_bars(40, kind=kind))
    rates = replace(bars, extra={"funding": np.full(40, 0.01)})
    plain, odd = run_series(bars, np.ones(40)), run_series(rates, np.ones(40))
    assert plain.equity.tobytes() == odd.equity.tobytes()
    assert plain.totals["funding"] == odd.totals["funding"] == 0.0


ABSURD = {
    "taker_bps": 900.0,
    "half_spread_bps": 900.0,
    "slippage_bps": 900.0,
    "impact": 50.0,
    "participation": 1e-7,
    "latency_bars": 7,
}


@pytest.mark.parametrize("field", sorted(ABSURD))
def test_every_cost_acts_on_a_series(field):
    bars = random_bars(60, 9)
    targets = flips(60)
    plain = run_series(bars, targets, Costs())
    other = run_series(bars, targets, Costs(**{field: ABSURD[field]}))
    assert plain.equity[-1] != other.equity[-1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cash", 77.0),
        ("max_leverage", 2.0),
        ("allow_short", False),
        ("maintenance_margin", 0.1),
        ("liquidation_fee_bps", 4000.0),
    ],
)
def test_every_account_rule_acts(field, value):
    bars = random_bars(80, 10, sigma=0.04)
    base = AccountRules(max_leverage=4.0, maintenance_margin=0.2)
    targets = flips(80, -4.0, 4.0)
    plain = run_series(bars, targets, Costs(), base)
    other = run_series(bars, targets, Costs(), base.model_copy(update={field: value}))
    assert plain.equity.tobytes() != other.equity.tobytes()


def test_an_exit_through_a_gap_costs_no_more_than_all_there_is():
    price = np.array([100.0, 100, 100, 40, 40, 40, 100])
    bars = bars_of(price, price, price, price, kind="perpetual")
    rules = AccountRules(cash=100.0, max_leverage=5.0)
    targets = np.array([5.0, 5, 0, 0, 1, 1, 1])
    result = run_series(bars, targets, Costs.free(), rules, sizing="units")
    assert result.fills["forced"].tolist() == [False, True]
    assert result.equity[-1] == 0.0
    assert result.totals["insurance"] == pytest.approx(200.0)


@given(seed=st.integers(0, 10**6), leverage=st.sampled_from([1.0, 3.0, 20.0]))
def test_no_flat_account_owes_money(seed, leverage):
    bars = random_bars(80, seed, sigma=0.2)
    targets = np.repeat(Seeds(seed).child("t").rng().uniform(-leverage, leverage, 20), 4)
    targets[::7] = 0.0
    result = run_series(bars, targets, Costs(), AccountRules(max_leverage=leverage))
    assert (result.equity[result.position == 0.0] >= 0.0).all()


def test_a_tape_is_used_under_the_costs_it_was_laid_out_with():
    tape = Tape.of(random_bars(20), Costs.free())
    with pytest.raises(ConfigError, match="half_spread_bps"):
        run_series(tape, np.ones(20), Costs())


def test_margins_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="max_leverage"):
        AccountRules(max_leverage=5.0, maintenance_margin=0.2)


def test_units_are_cut_to_whole_lots():
    bars = flat_bars(4)
    grid = bars.instrument.model_copy(update={"lot": 1.0})
    prices = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    bars = type(bars)(grid, bars.period_ns, bars.ts, *prices)
    result = run_series(bars, np.full(4, 1.37), Costs.free(), sizing="units")
    assert result.position[-1] == 1.0
