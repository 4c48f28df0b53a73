"""What protection_health can be told, and what is drawn from it before the first bar."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.desk_market import START_NS, SYMBOLS
from agent_gym.evaluation.scenarios.recorded import RecordedLog, RecordedSource

N_SYMBOLS = 5
SILENCES_A_DAY = 2
ENTRY_SHARE = 0.9  # of the time; the rest is left for what is open


class Shock(Config):
    """A jump of every price at once, at a share of the whole time."""

    t: float = Field(ge=0.0, le=1.0)
    jump_pct: float = Field(gt=-0.95, le=5.0, description="-0.1 is a fall by a tenth")


class ProtectionHealthConfig(Config):
    """How many positions, what befalls them, and what the desk is told to guard them by."""

    positions: int = Field(
        default=50, ge=1, le=10_000, description="orders that open or change one"
    )
    hours: float = Field(
        default=72.0,
        gt=0.0,
        le=744.0,
        description="simulated time; of a log: its last hours, by default all",
    )
    shocks: tuple[Shock, ...] = Field(
        default=(
            Shock(t=0.3, jump_pct=-0.12),
            Shock(t=0.55, jump_pct=0.10),
            Shock(t=0.8, jump_pct=-0.15),
        ),
        description="jumps of all prices; t is the share of the time",
    )
    gap_prob: float = Field(default=0.002, ge=0.0, le=1.0, description="share of bars with a gap")
    stop_loss_pct: float = Field(default=0.02, gt=0.0, lt=1.0, description="told to the desk")
    take_profit_pct: float = Field(default=0.04, gt=0.0, description="told to the desk")
    trailing: bool = Field(default=False, description="told to the desk")
    cancel_fail_prob: float = Field(
        default=0.1, ge=0.0, le=1.0, description="cancels lost on the way"
    )
    lost_prob: float = Field(
        default=0.002, ge=0.0, le=1.0, description="bars in which the venue loses a stop"
    )
    feed_gap_s: float = Field(
        default=1_800.0, ge=0.0, description="length of the silences of the price feed, two a day"
    )
    dd_limit: float = Field(default=0.15, gt=0.0, le=1.0, description="told to the desk")
    var_limit: float = Field(default=0.02, gt=0.0, description="told to the desk")
    position_share: float = Field(
        default=0.12, gt=0.0, le=1.0, description="of equity in a new position"
    )
    long_share: float = Field(default=0.5, ge=0.0, le=1.0, description="of positions")
    volatility: float = Field(default=0.006, gt=0.0, le=0.2, description="of an hour")
    bar_s: float = Field(default=300.0, ge=1.0, le=3_600.0, description="length of a bar")
    source: RecordedSource | None = Field(
        default=None, description="a recorded log whose fills open the positions instead"
    )


class Entry(NamedTuple):
    """A wish to open a position, or to change one that is there.

    ``draw`` decides what happens if the symbol is already held: below a half the position grows by
    half of a new one, else it is halved.
    """

    time_ns: int
    name: str
    symbol: str
    side: float
    draw: float


def draw_entries(positions: int, hours: float, long_share: float, seeds: Seeds) -> list[Entry]:
    """Draw the entries of an episode; the last tenth of the time is left for what is open."""
    rng = seeds.child("signals").rng()
    times = np.sort(rng.random(positions) * ENTRY_SHARE * hours * HOUR_NS).astype(np.int64).tolist()
    draws = rng.random((positions, 3)).tolist()
    return [
        Entry(
            START_NS + times[i],
            f"p{i:04d}",
            SYMBOLS[int(N_SYMBOLS * symbol)],
            1.0 if side < long_share else -1.0,
            draw,
        )
        for i, (symbol, side, draw) in enumerate(draws)
    ]


def recorded_entries(log: RecordedLog) -> list[Entry]:
    """Return the fills of a log as entries, by their time and side; sizes are the scenario's."""
    orders = {order.order_id: order for order in log.orders}
    entries = []
    for i, fill in enumerate(log.fills):
        order = orders.get(fill.order_id)
        quantity = fill.quantity if order is None else order.quantity
        time_ns = START_NS + fill.time_ns - log.start_ns
        if quantity == 0.0:
            continue
        named = (order.symbol if order is not None else None) or SYMBOLS[0]
        symbol = SYMBOLS[sum(map(ord, named)) % N_SYMBOLS]
        entries.append(
            Entry(time_ns, f"p{i:04d}", symbol, 1.0 if quantity > 0.0 else -1.0, (i % 2) / 2.0)
        )
    return entries


def draw_silences(n_bars: int, bar_ns: int, feed_gap_s: float, seeds: Seeds) -> list[bool]:
    """Return for each bar whether the price feed is silent at its close."""
    silent = np.zeros(n_bars, dtype=bool)
    length = round(feed_gap_s * 1e9 / bar_ns)
    if length > 0:
        rng = seeds.child("feed").rng()
        count = max(1, round(SILENCES_A_DAY * n_bars * bar_ns / (24 * HOUR_NS)))
        for start in rng.integers(1, n_bars, count).tolist():
            silent[start : start + length] = True
    return [bool(each) for each in silent]


def draw_losses(n_bars: int, lost_prob: float, seeds: Seeds) -> NDArray[np.bool_]:
    """Return for each bar and symbol whether the venue loses the stop that stands there."""
    drawn: NDArray[np.bool_] = seeds.child("losses").rng().random((n_bars, N_SYMBOLS)) < lost_prob
    return drawn
