"""Round trips from fills, first in first out: what was opened, what closed it, what it earned.

A closing fill is matched with the oldest lots; each match is one trip. A fill that crosses zero
closes all lots and opens one on the other side. Fees go with the quantity: the last piece of a lot
or fill takes what is left of its fee, so none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

# Sums of quantities are not exact; what is left below this share of the largest position since the
# account was flat is taken for rounding, not for a position.
DUST = 1e-12

TRIP = np.dtype(
    [
        ("entry_bar", np.int64),
        ("exit_bar", np.int64),
        ("entry_ts", np.int64),
        ("exit_ts", np.int64),
        ("side", np.int64),
        ("qty", np.float64),
        ("entry_price", np.float64),
        ("exit_price", np.float64),
        ("gross_pnl", np.float64),
        ("fees", np.float64),
        ("net_pnl", np.float64),
    ]
)
LOT = np.dtype(
    [
        ("bar", np.int64),
        ("ts", np.int64),
        ("side", np.int64),
        ("qty", np.float64),
        ("price", np.float64),
        ("fees", np.float64),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class RoundTrips:
    """Closed trips (dtype TRIP) and the lots still open (dtype LOT), both in time order."""

    closed: NDArray[Any]
    open_lots: NDArray[Any]

    @property
    def hit_rate(self) -> float | None:
        """Return the share of closed trips that earned money after fees; None without a trip."""
        if self.closed.size == 0:
            return None
        return float(np.mean(self.closed["net_pnl"] > 0.0))

    @property
    def profit_factor(self) -> float | None:
        """Return money won over money lost, after fees; None if no closed trip lost any."""
        net = self.closed["net_pnl"]
        lost = -float(net[net < 0.0].sum())
        return float(net[net > 0.0].sum()) / lost if lost > 0.0 else None

    def open_pnl(self, mark: float) -> float:
        """Return the gross profit of the open lots at a price."""
        lots = self.open_lots
        return float(np.sum(lots["side"] * lots["qty"] * (mark - lots["price"])))


def round_trips(
    bar: ArrayLike, ts: ArrayLike, qty: ArrayLike, price: ArrayLike, fee: ArrayLike
) -> RoundTrips:
    """Match fills, first in first out.

    Args:
        bar: Bar of each fill.
        ts: Time of each fill in UTC nanoseconds, never going back.
        qty: Signed quantity: bought above 0, sold below.
        price: Price of each fill.
        fee: Fee of each fill; a rebate is negative.

    Example:
        >>> trips = round_trips([0, 1], [0, 9], [2.0, -1.0], [10.0, 13.0], [0.2, 0.1])
        >>> trips.closed["net_pnl"].round(9).tolist(), trips.open_lots["qty"].tolist()
        ([2.8], [1.0])
    """
    bars, times = (np.array(column, dtype=np.int64) for column in (bar, ts))
    sizes, prices, fees = (np.array(column, dtype=np.float64) for column in (qty, price, fee))
    _check((bars, times), (sizes, prices, fees))
    pairs, amounts, lots, left = _match(sizes, fees, DUST)
    return RoundTrips(
        _closed(pairs, amounts, bars, times, prices), _open(lots, left, bars, times, prices)
    )


def _check(whole: tuple[NDArray[np.int64], ...], real: tuple[FloatArray, ...]) -> None:
    shapes = {column.shape for column in (*whole, *real)}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise DataError("columns of fills differ in length", found=sorted(shapes))
    sizes, prices, fees = real
    faults = {
        "a fill has a finite quantity other than 0": ~np.isfinite(sizes) | (sizes == 0.0),
        "a fill has a finite price of at least 0": ~np.isfinite(prices) | (prices < 0.0),
        "a fill has a finite fee": ~np.isfinite(fees),
        "the bars of fills do not go back": np.diff(whole[0], prepend=whole[0][:1]) < 0,
        "the times of fills do not go back": np.diff(whole[1], prepend=whole[1][:1]) < 0,
    }
    for what, wrong in faults.items():
        if wrong.any():
            row = int(np.argmax(wrong))
            found = tuple(column[row].item() for column in (*whole, *real))
            raise DataError(what, where=f"fill {row}", found=found)


def _closed(
    pairs: NDArray[np.int64],
    amounts: FloatArray,
    bars: NDArray[np.int64],
    times: NDArray[np.int64],
    prices: FloatArray,
) -> NDArray[Any]:
    entry, leave = pairs[:, 0], pairs[:, 1]
    trips = np.empty(len(pairs), dtype=TRIP)
    trips["entry_bar"], trips["exit_bar"] = bars[entry], bars[leave]
    trips["entry_ts"], trips["exit_ts"] = times[entry], times[leave]
    trips["entry_price"], trips["exit_price"] = prices[entry], prices[leave]
    trips["side"] = np.where(amounts[:, 0] > 0.0, 1, -1)
    trips["qty"] = np.abs(amounts[:, 0])
    trips["gross_pnl"] = amounts[:, 0] * (prices[leave] - prices[entry])
    trips["fees"] = amounts[:, 1]
    trips["net_pnl"] = trips["gross_pnl"] - trips["fees"]
    return trips


def _open(
    lots: NDArray[np.int64],
    left: FloatArray,
    bars: NDArray[np.int64],
    times: NDArray[np.int64],
    prices: FloatArray,
) -> NDArray[Any]:
    table = np.empty(len(lots), dtype=LOT)
    table["bar"], table["ts"], table["price"] = bars[lots], times[lots], prices[lots]
    table["side"] = np.where(left[:, 0] > 0.0, 1, -1)
    table["qty"] = np.abs(left[:, 0])
    table["fees"] = left[:, 1]
    return table


@door(
    "Tuple((int64[:, ::1], float64[:, ::1], int64[::1], float64[:, ::1]))"
    "(float64[::1], float64[::1], float64)"
)
def _match(
    sizes: FloatArray, fees: FloatArray, dust: float
) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.int64], FloatArray]:
    """Return (entry, exit) fills and (signed quantity, fees) of trips, and the same of open lots.

    Each match uses up a lot or a fill, so there are at most two trips a fill.
    """
    pairs = np.empty((2 * sizes.size, 2), np.int64)
    amounts = np.empty((2 * sizes.size, 2))
    lots = np.empty(sizes.size, np.int64)
    left = np.empty((sizes.size, 2))
    trips = first = last = 0
    held = peak = 0.0
    for i in range(sizes.size):
        rest, rest_fee = abs(sizes[i]), fees[i]
        side = 1.0 if sizes[i] > 0.0 else -1.0
        while rest > 0.0 and first < last and left[first, 0] * side < 0.0:
            lot, lot_fee = abs(left[first, 0]), left[first, 1]
            size = min(lot, rest)
            lot_after = lot - size if lot - size > dust * peak else 0.0
            rest_after = rest - size if rest - size > dust * peak else 0.0
            lot_paid = lot_fee * (size / lot) if lot_after > 0.0 else lot_fee
            rest_paid = rest_fee * (size / rest) if rest_after > 0.0 else rest_fee
            pairs[trips, 0], pairs[trips, 1] = lots[first], i
            amounts[trips, 0], amounts[trips, 1] = -side * size, lot_paid + rest_paid
            left[first, 0], left[first, 1] = -side * lot_after, lot_fee - lot_paid
            rest, rest_fee = rest_after, rest_fee - rest_paid
            held -= size
            trips += 1
            if lot_after == 0.0:
                first += 1
        if first == last:
            held = peak = 0.0
        if rest > 0.0:
            lots[last], left[last, 0], left[last, 1] = i, side * rest, rest_fee
            last += 1
            held += rest
            peak = max(peak, held)
    kept = slice(first, last)
    return pairs[:trips].copy(), amounts[:trips].copy(), lots[kept].copy(), left[kept].copy()
