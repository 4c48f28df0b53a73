from __future__ import annotations

import math
from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.round_trips import LOT, TRIP, RoundTrips, round_trips

Fill = tuple[float, float, float]


def match(fills: list[Fill]) -> RoundTrips:
    rows = range(len(fills))
    columns = [[fill[k] for fill in fills] for k in range(3)]
    return round_trips(list(rows), [10**18 + 7 * i for i in rows], *columns)


sizes = st.integers(-400, 400).filter(bool).map(lambda n: n / 8)
fills_strategy = st.lists(
    st.tuples(sizes, st.floats(0.01, 1e5), st.floats(-5.0, 50.0)), max_size=40
)
wild_fills = st.lists(
    st.tuples(
        st.floats(1e-4, 1e4).flatmap(lambda q: st.sampled_from([q, -q])),
        st.floats(0.01, 1e5),
        st.floats(0.0, 50.0),
    ),
    max_size=40,
)


def average_cost(fills: list[Fill], mark: float) -> float:
    """Total profit of the same fills, kept at average cost."""
    position = cost = realised = 0.0
    for qty, price, _ in fills:
        if position * qty >= 0.0:
            cost = (cost * abs(position) + price * abs(qty)) / (abs(position) + abs(qty))
        else:
            closed = min(abs(qty), abs(position))
            realised += math.copysign(closed, position) * (price - cost)
            if abs(qty) > abs(position):
                cost = price
        position += qty
    return realised + position * (mark - cost)


@settings(deadline=None)
@given(st.one_of(fills_strategy, wild_fills), st.floats(0.01, 1e5))
def test_fifo_and_average_cost_agree_on_the_total(fills: list[Fill], mark: float) -> None:
    trips = match(fills)
    total = trips.closed["gross_pnl"].sum() + trips.open_pnl(mark)
    turnover = sum(abs(qty) * (price + mark) for qty, price, _ in fills)
    assert total == pytest.approx(average_cost(fills, mark), abs=1e-9 * turnover + 1e-12)
    cash = sum(-qty * price for qty, price, _ in fills) + mark * sum(fill[0] for fill in fills)
    assert total == pytest.approx(cash, abs=1e-9 * turnover + 1e-12)


@settings(deadline=None)
@given(st.one_of(fills_strategy, wild_fills))
def test_fees_and_quantities_are_conserved(fills: list[Fill]) -> None:
    trips = match(fills)
    paid = sum(fee for *_, fee in fills)
    kept = trips.closed["fees"].sum() + trips.open_lots["fees"].sum()
    assert kept == pytest.approx(paid, abs=1e-9)
    lots = trips.open_lots
    position = sum(fill[0] for fill in fills)
    moved = sum(abs(fill[0]) for fill in fills)
    assert np.sum(lots["side"] * lots["qty"]) == pytest.approx(position, abs=1e-9 * moved)
    # Each unit traded is one end of a trip or still open.
    ends = 2 * trips.closed["qty"].sum() + lots["qty"].sum()
    assert ends == pytest.approx(moved, rel=1e-9)
    assert (trips.closed["net_pnl"] == trips.closed["gross_pnl"] - trips.closed["fees"]).all()
    assert (trips.closed["qty"] > 0.0).all()
    assert (lots["qty"] > 0.0).all()
    assert len(set(lots["side"].tolist())) <= 1


def exact(fills: list[Fill]) -> tuple[list[tuple[int, int, Fraction]], list[tuple[int, Fraction]]]:
    """The same matching in exact fractions: (entry, exit, signed quantity), open lots."""
    queue: deque[list[Any]] = deque()
    trips = []
    for i, (qty, _, _) in enumerate(fills):
        rest = Fraction(qty)
        while rest and queue and (queue[0][1] > 0) != (rest > 0):
            size = min(abs(queue[0][1]), abs(rest))
            signed = size if queue[0][1] > 0 else -size
            trips.append((queue[0][0], i, signed))
            queue[0][1] -= signed
            rest += signed
            if not queue[0][1]:
                queue.popleft()
        if rest:
            queue.append([i, rest])
    return trips, [(i, qty) for i, qty in queue]


@settings(deadline=None)
@given(fills_strategy)
def test_the_matching_is_first_in_first_out(fills: list[Fill]) -> None:
    found = match(fills)
    trips, lots = exact(fills)
    assert found.closed["entry_bar"].tolist() == [entry for entry, _, _ in trips]
    assert found.closed["exit_bar"].tolist() == [leave for _, leave, _ in trips]
    assert (found.closed["side"] * found.closed["qty"]).tolist() == [float(q) for *_, q in trips]
    assert found.open_lots["bar"].tolist() == [i for i, _ in lots]
    assert (found.open_lots["side"] * found.open_lots["qty"]).tolist() == [
        float(q) for _, q in lots
    ]


def test_a_trip_by_hand() -> None:
    trips = match([(2.0, 10.0, 0.4), (3.0, 12.0, 0.3), (-4.0, 15.0, 0.8)])
    assert trips.closed.dtype == TRIP
    assert trips.open_lots.dtype == LOT
    first, second = trips.closed
    assert (first["entry_bar"], first["exit_bar"], first["side"], first["qty"]) == (0, 2, 1, 2.0)
    assert (first["entry_ts"], first["exit_ts"]) == (10**18, 10**18 + 14)
    assert (first["entry_price"], first["exit_price"], first["gross_pnl"]) == (10.0, 15.0, 10.0)
    assert first["fees"] == pytest.approx(0.4 + 0.4)
    assert first["net_pnl"] == pytest.approx(9.2)
    assert (second["entry_bar"], second["qty"], second["gross_pnl"]) == (1, 2.0, 6.0)
    assert second["fees"] == pytest.approx(0.2 + 0.4)
    (lot,) = trips.open_lots
    assert (lot["bar"], lot["side"], lot["qty"], lot["price"]) == (1, 1, 1.0, 12.0)
    assert lot["fees"] == pytest.approx(0.1)
    assert trips.open_pnl(20.0) == pytest.approx(8.0)


def test_a_flip_closes_and_opens_and_splits_its_fee() -> None:
    trips = match([(1.0, 10.0, 0.1), (-3.0, 12.0, 0.3), (2.0, 9.0, 0.2)])
    assert trips.closed["side"].tolist() == [1, -1]
    assert trips.closed["gross_pnl"].tolist() == [2.0, 6.0]
    assert trips.closed["fees"] == pytest.approx([0.1 + 0.1, 0.2 + 0.2])
    assert trips.open_lots.size == 0
    assert trips.hit_rate == 1.0


def test_rounding_leaves_no_ghost_lots() -> None:
    # 0.1 + 0.2 is not 0.3, and a thousand tenths are not a hundred.
    assert match([(0.1, 1.0, 0.0), (0.2, 1.0, 0.0), (-0.3, 2.0, 0.0)]).open_lots.size == 0
    many = match([*[(0.1, 1.0, 0.01)] * 1000, (-100.0, 2.0, 0.5)])
    assert (many.closed.size, many.open_lots.size) == (1000, 0)
    assert many.closed["fees"].sum() == pytest.approx(10.5)
    # A small position of its own is not dust.
    tiny = match([(1e6, 1.0, 0.0), (-1e6, 1.0, 0.0), (1e-9, 1.0, 0.0)])
    assert tiny.open_lots["qty"].tolist() == [1e-9]
    less = match([(1e6, 1.0, 0.0), (-1e6, 1.0, 0.0), (1e-9, 1.0, 0.0), (-5e-10, 1.0, 0.0)])
    assert less.open_lots["qty"].tolist() == [5e-10]


def test_hit_rate_counts_closed_trips_not_fills() -> None:
    # One win and one loss in four fills, and an open position that counts for nothing.
    fills = [
        (1.0, 10.0, 0.0),
        (-1.0, 11.0, 0.0),
        (1.0, 10.0, 0.0),
        (-1.0, 8.0, 0.0),
        (5.0, 1.0, 0.0),
    ]
    trips = match(fills)
    assert trips.hit_rate == 0.5
    assert trips.profit_factor == pytest.approx(0.5)
    # The fee of the entry belongs to the trip: a gain that it eats is no hit.
    assert match([(1.0, 10.0, 2.0), (-1.0, 11.0, 0.0)]).hit_rate == 0.0


def test_no_trip_has_no_figures() -> None:
    for fills in ([], [(1.0, 10.0, 0.1)], [(1.0, 10.0, 0.1), (2.0, 11.0, 0.1)]):
        trips = match(fills)
        assert trips.closed.size == 0
        assert trips.hit_rate is None
        assert trips.profit_factor is None
    assert match([(1.0, 10.0, 0.0), (-1.0, 11.0, 0.0)]).profit_factor is None
    assert match([(1.0, 10.0, 0.0), (-1.0, 9.0, 0.0)]).profit_factor == 0.0


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        (0, 0, "bars"),
        (1, 0, "times"),
        (2, math.nan, "quantity"),
        (2, 0.0, "quantity"),
        (2, math.inf, "quantity"),
        (3, math.nan, "price"),
        (3, -1.0, "price"),
        (4, math.nan, "fee"),
    ],
)
def test_a_wrong_fill_is_named(column: int, value: float, what: str) -> None:
    columns: list[Any] = [[1, 2, 3], [10, 20, 30], [1.0, 1.0, -1.0], [5.0] * 3, [0.1] * 3]
    columns[column][1] = value
    with pytest.raises(DataError, match=what) as caught:
        round_trips(*columns)
    assert caught.value.where == "fill 1"


def test_columns_must_fit() -> None:
    with pytest.raises(DataError, match="length"):
        round_trips([0], [0, 1], [1.0], [1.0], [0.0])
    with pytest.raises(DataError, match="length"):
        round_trips([[0]], [[0]], [[1.0]], [[1.0]], [[0.0]])


def test_read_only_columns_are_taken_and_left_alone() -> None:
    rng = Seeds(3).child("fills").rng()
    columns: list[Any] = [np.arange(500), np.arange(500), rng.normal(size=500)]
    columns += [rng.uniform(1, 2, 500), rng.uniform(0, 1, 500)]
    copies = [column.copy() for column in columns]
    for column in columns:
        column.setflags(write=False)
    trips = round_trips(*columns)
    assert trips.closed.size > 300
    assert all((column == copy).all() for column, copy in zip(columns, copies, strict=True))
