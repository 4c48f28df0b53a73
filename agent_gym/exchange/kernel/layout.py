"""The shapes that cross the border between Python and the kernels.

Rows are cache lines: a bar is 64 bytes and an account 128, both aligned, because lanes of a batch
sit at random times and every row they touch is a cache miss.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray

CACHE_LINE = 64
HUGE_PAGE = 2 << 20

# Columns of a bar row. FUNDING: rate due at this open. SIGMA: volatility of one bar, known before
# it opens, for market impact. HALF_SPREAD: half the quoted spread as a fraction of the price.
BAR_OPEN, BAR_HIGH, BAR_LOW, BAR_CLOSE, BAR_VOLUME, BAR_FUNDING, BAR_SIGMA, BAR_HALF_SPREAD = range(
    8
)
BAR_WIDTH = 8
NO_CAP = 1e300


class Account(NamedTuple):
    """An account in registers while one bar is applied.

    ``want`` is the position that is still being worked towards, in units; ``fees``, ``slip``,
    ``fund`` and ``ins`` are separate running accounts of costs paid (and of insurance received).
    """

    cash: float
    pos: float
    avg: float
    real: float
    fees: float
    slip: float
    fund: float
    ins: float
    eq: float
    want: float


class Terms(NamedTuple):
    """What trading costs and how far an account may go; rates are fractions, not basis points."""

    slip: float
    impact: float
    maker: float
    taker: float
    cap: float
    initial: float
    maintenance: float
    liquidation: float
    min_notional: float
    lot: float
    per_lot: float  # 1 / lot, or 0 without a grid
    floor: float  # lowest position allowed as a fraction: 0 forbids shorts, -1e300 allows them


TERMS_BYTES = 8 * len(Terms._fields)


class Others(NamedTuple):
    """What an account holds in other instruments: its value and the margin it locks."""

    value: float
    margin: float


class Fill(NamedTuple):
    """What one attempt to trade did: quantity 0 means that nothing happened."""

    qty: float
    price: float
    fee: float


LANE = np.dtype(
    [
        ("cash", "f8"),
        ("pos", "f8"),
        ("avg", "f8"),
        ("real", "f8"),
        ("fees", "f8"),
        ("slip", "f8"),
        ("fund", "f8"),
        ("ins", "f8"),
        ("eq", "f8"),
        ("want", "f8"),
        ("peak", "f8"),
        ("growth", "f8"),
        ("frac", "f8"),
        ("t", "i4"),
        ("end", "i4"),
        ("entered", "i4"),
        ("flags", "u4"),
        ("episode", "u4"),
        ("trades", "u4"),
    ],
    align=True,
)

CONTEXT = np.dtype(
    [
        ("bars", "i8"),
        ("features", "i8"),
        ("lanes", "i8"),
        ("actions", "i8"),
        ("levels", "i8"),
        ("queue", "i8"),
        ("obs", "i8"),
        ("rewards", "i8"),
        ("worth", "i8"),
        ("gains", "i8"),
        ("terminated", "i8"),
        ("truncated", "i8"),
        ("n_bars", "i8"),
        ("n_features", "i8"),
        ("stride", "i8"),
        ("wide", "i8"),
        ("n_levels", "i8"),
        ("latency", "i8"),
        ("linear_reward", "i8"),
        ("first", "i8"),
        ("episode_bars", "i8"),
        ("random_start", "i8"),
        ("seed", "i8"),
        ("lane_offset", "i8"),
        ("lane_step", "i8"),
        ("sizing_units", "i8"),
        ("autoreset", "i8"),
        ("cash", "f8"),
        ("ruin", "f8"),
        ("terms", "f8", (12,)),
    ],
    align=True,
)

LANE_DONE = 1
LANE_LIQUIDATED = 2
PRIVATE_FEATURES = (
    "position",
    "unrealised_pnl",
    "growth",
    "costs",
    "trade_age",
    "drawdown",
)


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return zeroed memory that starts on a cache line, in huge pages where the system has them.

    Lanes at random times touch a page each; with small pages most steps would miss the TLB.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if size < HUGE_PAGE:
        raw = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    else:
        block = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(block, dtype=np.uint8)
    line = CACHE_LINE if size < HUGE_PAGE else HUGE_PAGE
    start = -raw.ctypes.data % line
    memory: NDArray[Any] = raw[start : start + size].view(kind).reshape(shape)
    return memory


def padded_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the matrix in aligned memory, its rows padded to whole (or half) cache lines."""
    width = matrix.shape[1] * matrix.itemsize
    stride = CACHE_LINE
    while stride // 2 >= max(width, matrix.itemsize):
        stride //= 2
    stride *= max(1, -(-width // stride))
    rows = aligned((len(matrix), stride // matrix.itemsize), matrix.dtype)
    rows[:, : matrix.shape[1]] = matrix
    return rows


def bar_rows(columns: dict[int, FloatArray], n_bars: int) -> FloatArray:
    """Return the (T, 8) matrix of bar rows from its columns; a column left out is 0."""
    rows: FloatArray = aligned((n_bars, BAR_WIDTH), np.float64)
    for index, column in columns.items():
        rows[:, index] = column
    return rows
