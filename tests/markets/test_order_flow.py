from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import compute_features
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.order_flow import (
    BookLevels,
    Quotes,
    Tape,
    attach_book_columns,
    bars_from_trades,
    order_book_imbalance,
    order_flow_imbalance,
    quoted_spread,
    trade_imbalance,
)


def make_quotes(rows: list[tuple[int, float, float, float, float]]) -> Quotes:
    table = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 4)
    return Quotes(np.array([row[0] for row in rows], dtype=np.int64), *table.T)


def make_tape(rows: list[tuple[int, float, float, int]]) -> Tape:
    return Tape(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.arange(len(rows), dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.int64),
    )


def make_bars(opens: list[int], period_ns: int = 10) -> Bars:
    ones = np.ones(len(opens))
    ts = np.array(opens, dtype=np.int64)
    return Bars(Instrument(), period_ns, ts, ones, ones, ones, ones, ones)


def test_order_flow_by_hand() -> None:
    quotes = make_quotes(
        [
            (0, 100.0, 5.0, 101.0, 7.0),
            (1, 100.0, 8.0, 101.0, 7.0),  # bid grows by 3: +3
            (2, 100.0, 8.0, 101.0, 4.0),  # ask shrinks by 3: +3
            (3, 100.5, 2.0, 101.0, 4.0),  # bid rises, new size 2: +2
            (4, 99.0, 6.0, 101.0, 4.0),  # bid falls, old size 2 is gone: -2
            (5, 99.0, 6.0, 100.0, 9.0),  # ask falls, new size 9 presses: -9
            (6, 99.0, 6.0, 102.0, 1.0),  # ask rises, old size 9 is gone: +9
            (7, 99.5, 1.0, 102.5, 3.0),  # both rise: +1 and +1
        ]
    )
    expected = [np.nan, 3.0, 3.0, 2.0, -2.0, -9.0, 9.0, 2.0]
    np.testing.assert_array_equal(order_flow_imbalance(quotes), expected)
    np.testing.assert_array_equal(quoted_spread(quotes)[:4], [1.0, 1.0, 1.0, 0.5])


def test_order_flow_is_not_trade_imbalance() -> None:
    """The trap: quotes move without a trade, and a trade may leave the best quote as it was."""
    quiet_tape = make_tape([(1, 100.0, 1.0, 1)])
    quotes = make_quotes([(-1, 100.0, 5.0, 101.0, 5.0), (5, 100.0, 1.0, 101.0, 5.0)])
    bars = make_bars([0])
    assert trade_imbalance(quiet_tape, bars)[0] == 1.0
    assert attach_book_columns(bars, quotes, heard_until_ns=10).extra["ofi"][0] == -4.0


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), num=st.integers(2, 40))
def test_order_flow_turns_round_with_the_market(seed: int, num: int) -> None:
    """Mirrored prices and swapped sides turn every buy pressure into a sell pressure."""
    rng = Seeds(seed).child("quotes").rng()
    ts = np.arange(num, dtype=np.int64)
    bid = 100.0 + rng.integers(-2, 3, num)
    ask = bid + rng.integers(1, 3, num)
    sizes = rng.integers(0, 10, (2, num)).astype(np.float64)
    quotes = Quotes(ts, bid, sizes[0], ask, sizes[1])
    mirror = Quotes(ts, 500.0 - ask, sizes[1], 500.0 - bid, sizes[0])
    np.testing.assert_array_equal(order_flow_imbalance(mirror), -order_flow_imbalance(quotes))


def test_book_imbalance_by_hand() -> None:
    bids = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 99.0], [0.0] * 6, [2.0] + [0.0] * 5])
    asks = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [0.0] * 6, [0.0] * 6])
    np.testing.assert_allclose(order_book_imbalance(bids, asks), [0.5, np.nan, 1.0])
    np.testing.assert_allclose(order_book_imbalance(bids, asks, 1), [0.0, np.nan, 1.0])
    with pytest.raises(ConfigError, match="so many levels"):
        order_book_imbalance(bids, asks, 7)


def test_columns_are_taken_at_the_close_and_summed_over_the_bar() -> None:
    quotes = make_quotes(
        [
            (5, 100.0, 1.0, 101.0, 1.0),
            (12, 100.0, 3.0, 101.0, 1.0),  # +2, bar 10
            (19, 100.0, 3.0, 103.0, 1.0),  # +1, bar 10: its last spread is 3
            (20, 100.0, 9.0, 101.0, 2.0),  # opens bar 20: +6 - 2
            (40, 100.0, 9.0, 101.0, 2.0),  # bar 30 heard nothing
            (45, 100.0, 9.0, 101.0, 2.0),  # bar 40 is not over yet
        ]
    )
    bars = attach_book_columns(make_bars([0, 10, 20, 30, 40]), quotes)
    nan = np.nan
    np.testing.assert_array_equal(bars.extra["spread"], [1.0, 3.0, 1.0, nan, nan])
    np.testing.assert_array_equal(bars.extra["ofi"], [nan, 3.0, 4.0, nan, nan])
    assert "obi" not in bars.extra  # no depth was given, and nothing stands in for it
    late = attach_book_columns(make_bars([40]), quotes, heard_until_ns=50)
    assert late.extra["ofi"][0] == 0.0


def test_depth_gives_the_book_column() -> None:
    ts = np.array([1, 8, 11], dtype=np.int64)
    prices = np.tile(np.arange(5.0), (3, 1))
    bids = np.array([[1.0] * 5, [3.0] * 5, [9.0] * 5])
    book = BookLevels(ts, 100.0 - prices, bids, 101.0 + prices, np.ones((3, 5)))
    quotes = make_quotes([(-1, 100.0, 1.0, 101.0, 1.0), (11, 100.0, 1.0, 101.0, 1.0)])
    bars = attach_book_columns(make_bars([0, 10]), quotes, book)
    np.testing.assert_array_equal(bars.extra["obi"], [0.5, np.nan])


def test_events_in_a_hole_between_bars_belong_to_none() -> None:
    quotes = make_quotes([(t, 100.0, float(t), 101.0, 1.0) for t in (1, 2, 12, 13, 25, 40)])
    bars = attach_book_columns(make_bars([0, 20]), quotes)
    assert np.isnan(bars.extra["ofi"][0])  # its first change has no quote before the open
    assert bars.extra["ofi"][1] == 12.0  # from 13 to 25; the changes at 12 and 13 are not in a bar


def test_future_quotes_change_no_earlier_bar() -> None:
    rows = [(t, 100.0, float(t % 7), 101.0, 2.0) for t in range(-1, 60)]
    whole = attach_book_columns(make_bars([0, 10, 20, 30, 40]), make_quotes(rows))
    cut = attach_book_columns(make_bars([0, 10, 20]), make_quotes(rows[:32]))
    for name in ("spread", "ofi"):
        np.testing.assert_array_equal(cut.extra[name], whole.extra[name][:3])


def test_empty_feeds_leave_the_columns_unknown() -> None:
    bars = attach_book_columns(make_bars([0, 10]), make_quotes([]))
    assert np.isnan(bars.extra["spread"]).all()
    assert np.isnan(bars.extra["ofi"]).all()
    quotes = make_quotes([(5, 100.0, 1.0, 101.0, 1.0)])
    assert len(attach_book_columns(make_bars([]), quotes)) == 0


def test_bars_from_trades_by_hand() -> None:
    tape = make_tape(
        [
            (7, 50.0, 1.0, 1),  # before the first whole bar
            (10, 51.0, 2.0, 1),
            (15, 55.0, 1.0, -1),
            (19, 49.0, 1.0, 1),
            (30, 60.0, 4.0, -1),  # bar 20 has no trade
            (41, 61.0, 1.0, 1),  # bar 40 is not over
        ]
    )
    bars = bars_from_trades(tape, 10, Instrument(symbol="BTC/USDT"))
    assert bars.ts.tolist() == [10, 20, 30]
    assert bars.open.tolist() == [51.0, 49.0, 60.0]
    assert bars.high.tolist() == [55.0, 49.0, 60.0]
    assert bars.low.tolist() == [49.0, 49.0, 60.0]
    assert bars.close.tolist() == [49.0, 49.0, 60.0]
    assert bars.volume.tolist() == [4.0, 0.0, 4.0]
    assert bars.extra["trades"].tolist() == [3.0, 0.0, 1.0]
    assert bars.extra["taker_buy"].tolist() == [3.0, 0.0, 0.0]
    np.testing.assert_array_equal(trade_imbalance(tape, bars), [0.5, np.nan, -1.0])


def test_a_tape_shorter_than_a_bar_makes_none() -> None:
    assert len(bars_from_trades(make_tape([(3, 1.0, 1.0, 1)]), 10, Instrument())) == 0
    with pytest.raises(DataError, match="no bars"):
        bars_from_trades(make_tape([]), 10, Instrument())


def test_duplicates_and_nonsense_are_refused() -> None:
    tape = make_tape([(1, 1.0, 1.0, 1), (2, 1.0, 1.0, 1)])
    with pytest.raises(DataError, match="comes twice"):
        replace(tape, trade_id=np.array([4, 4]))
    with pytest.raises(DataError, match="time goes back"):
        replace(tape, ts=np.array([2, 1]))
    with pytest.raises(DataError, match="not a number"):
        replace(tape, size=np.array([1.0, np.nan]))
    with pytest.raises(DataError, match="has no price"):
        replace(tape, price=np.array([1.0, 0.0]))
    with pytest.raises(DataError, match="above the ask"):
        make_quotes([(0, 102.0, 1.0, 101.0, 1.0)])
    with pytest.raises(DataError, match="one side"):
        make_quotes([(0, 0.0, 1.0, 101.0, 1.0)])
    with pytest.raises(DataError, match="differ in length"):
        replace(tape, size=np.ones(3))


def test_attached_columns_reach_the_features() -> None:
    rng = Seeds(1).child("quotes").rng()
    ts = np.arange(0, 2000, dtype=np.int64)
    sizes = rng.integers(1, 10, (2, 2000)).astype(np.float64)
    bid = 100.0 + 0.1 * rng.integers(-3, 4, 2000)
    ask = bid + 0.1 * rng.integers(1, 4, 2000)
    quotes = Quotes(ts, bid, sizes[0], ask, sizes[1])
    bars = attach_book_columns(make_bars(list(range(10, 1990, 10))), quotes)
    table = compute_features(bars)
    for name in ("order_flow", "spread_ratio"):
        column = table.column(name)
        assert np.isfinite(column[167:]).all()
        assert column[167:].var() > 0.0
