from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.errors import DataError
from agent_gym.markets.live import Gap, LiveBar, Trades
from agent_gym.markets.live.trackers import BarTracker, BookTracker, TradeTracker, read_bar

MS_NS = 1_000_000
PERIOD_MS = 60_000


def bar_row(index: int, close: float) -> list[float]:
    return [index * PERIOD_MS, 100.0, 1e6, 1.0, close, 1.0]


# Each connection shows ever later bars, each a few times; a new one may begin anywhere after.
connections = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(connections, st.data())
def test_bars_and_gaps_tile_the_time_without_overlap(
    plan: list[list[tuple[int, int]]], data: Any
) -> None:
    tracker = BarTracker(PERIOD_MS * MS_NS)
    events: list[LiveBar | Gap] = []
    finals: dict[int, float] = {}
    index, first, value = 10, None, 100.0
    for connection in plan:
        index = max(0, index - data.draw(st.integers(0, 2)))  # the exchange repeats a little
        shown: list[int] = []
        for step, times in connection:
            index += step
            for _ in range(times):
                value += 1.0
                events.extend(tracker.update([bar_row(index, value)]))
                first = index if first is None else first
                if not shown or index >= shown[-1]:
                    shown.append(index)
                    finals[index] = value
        tracker.reconnected("test")
    bars = [event for event in events if isinstance(event, LiveBar)]
    assert len({bar.ts_ns for bar in bars}) == len(bars)
    cursor = None
    for event in events:
        low = event.ts_ns if isinstance(event, LiveBar) else event.from_ns
        high = low + PERIOD_MS * MS_NS if isinstance(event, LiveBar) else event.until_ns
        assert low is not None
        assert high is not None
        assert cursor is None or low == cursor
        cursor = high
        if isinstance(event, Gap):
            assert event.missing == (high - low) // (PERIOD_MS * MS_NS) >= 1


def test_a_half_seen_bar_is_never_handed_on() -> None:
    tracker = BarTracker(PERIOD_MS * MS_NS)
    assert [bar.close for bar in tracker.update([bar_row(0, 5.0), bar_row(1, 6.0)])] == [5.0]
    tracker.reconnected("drop")
    events = list(tracker.update([bar_row(2, 7.0)]))
    assert [type(event) for event in events] == [Gap]
    assert events[0].reason == "drop"
    # Planted fault: without the word of the drop the stale bar would pass as finished.
    naive = BarTracker(PERIOD_MS * MS_NS)
    list(naive.update([bar_row(0, 5.0), bar_row(1, 6.0)]))
    assert isinstance(next(iter(naive.update([bar_row(2, 7.0)]))), LiveBar)


def test_a_late_repeat_is_counted_and_ignored() -> None:
    tracker = BarTracker(PERIOD_MS * MS_NS)
    list(tracker.update([bar_row(0, 5.0), bar_row(1, 6.0)]))
    assert list(tracker.update([bar_row(0, 9.0)])) == []
    assert tracker.duplicates == 1


@pytest.mark.parametrize(
    "row",
    [
        [0, 1.0, 1.0, 1.0, None, 1.0],
        [0, 1.0, 1.0],
        [None, 1.0, 1.0, 1.0, 1.0, 1.0],
        [0, 1.0, 2.0, 0.5, 3.0, 1.0],
        [0, 1.0, float("inf"), 0.5, 1.0, 1.0],
        [0, 1.0, 2.0, 0.0, 1.0, 1.0],
        [0, 1.0, 2.0, 0.5, 1.0, -1.0],
        [0, float("nan"), 2.0, 0.5, 1.0, 1.0],
        [0, 1.0, 2.0, 0.5, 1.0, float("nan")],
    ],
)
def test_an_impossible_bar_is_refused(row: list[Any]) -> None:
    with pytest.raises(DataError):
        read_bar(row)


def trade(name: Any, ms: int = 0, side: str = "buy") -> dict[str, Any]:
    return {"id": name, "timestamp": ms, "price": 10.0, "amount": 2.0, "side": side}


def ids_of(events: list[Trades | Gap]) -> list[Any]:
    found: list[Any] = []
    for event in events:
        found.extend(["gap"] if isinstance(event, Gap) else event.ids)
    return found


@given(st.lists(st.lists(st.integers(1, 60), max_size=12), max_size=8))
def test_no_trade_is_told_twice_and_none_is_lost(batches: list[list[int]]) -> None:
    tracker = TradeTracker("here")
    told: list[str] = []
    for batch in batches:
        events = list(tracker.update([trade(str(n), n) for n in batch]))
        told += [name for event in events if isinstance(event, Trades) for name in event.ids]
    assert sorted(told) == sorted({str(n) for batch in batches for n in batch})
    assert tracker.duplicates == sum(map(len, batches)) - len(told)


def test_skipped_ids_are_a_gap_where_ids_were_consecutive() -> None:
    tracker = TradeTracker("here")
    told = list(tracker.update([trade(str(n), n) for n in (*range(1, 31), 40, 41)]))
    assert ids_of(told) == [*map(str, range(1, 31)), "gap", "40", "41"]
    gap = next(event for event in told if isinstance(event, Gap))
    assert gap.missing == 9


def test_ids_that_were_never_consecutive_prove_nothing() -> None:
    tracker = TradeTracker("here")
    assert "gap" not in ids_of(list(tracker.update([trade(str(n * n), n) for n in range(1, 40)])))
    tracker.reconnected("drop")
    told = list(tracker.update([trade("9999", 50)]))
    assert ids_of(told) == ["gap", "9999"]
    assert isinstance(told[0], Gap)
    assert told[0].missing is None


def test_ids_that_are_no_numbers_are_kept_apart_too() -> None:
    tracker = TradeTracker("here")
    assert ids_of(list(tracker.update([trade("a"), trade("b", 1)]))) == ["a", "b"]
    tracker.reconnected("drop")
    assert ids_of(list(tracker.update([trade("b", 1), trade("c", 2)]))) == ["gap", "c"]


def test_the_memory_of_ids_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_gym.markets.live.trackers.IDS_REMEMBERED", 10)
    tracker = TradeTracker("here")
    list(tracker.update([trade(str(n), n) for n in range(100)]))
    assert len(tracker._seen) == 10


def book(update_id: int | None, ms: int | None = 1) -> dict[str, Any]:
    sides = {"bids": [[9.0, 1.0], [8.0, 1.0]], "asks": [[10.0, 1.0], [11.0, 1.0]]}
    return {"timestamp": ms, "nonce": update_id, **sides}


def test_a_book_is_told_once_and_a_fresh_start_is_a_gap() -> None:
    tracker = BookTracker(1, "here")
    assert len(list(tracker.update(book(1)))) == 1
    assert list(tracker.update(book(1))) == []
    tracker.reconnected("drop")
    events = list(tracker.update(book(1, 5)))
    assert [type(event).__name__ for event in events] == ["Gap", "OrderBook"]
    assert events[0].until_ns == 5 * MS_NS
    assert np.array_equal(events[1].bid_price, [9.0])
    assert len(list(tracker.update(book(None, None)))) == 1


def test_a_failed_first_connection_is_no_gap() -> None:
    tracker = BookTracker(1, "here")
    tracker.reconnected("drop")
    assert [type(event).__name__ for event in tracker.update(book(1))] == ["OrderBook"]
