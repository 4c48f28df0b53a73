"""What the trader sees: the bar, its features, its account and what its last order cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive.config import ReflexiveConfig
from agent_gym.exchange.kernel.layout import PRIVATE_FEATURES
from agent_gym.markets.bars import PRICE_COLUMNS, SIGNAL_PREFIX
from agent_gym.markets.features import FEATURES, BarRow, FeatureStream
from agent_gym.markets.features.table import KNOWN_SUFFIX

SIGNAL = SIGNAL_PREFIX + "drift"
FILL_COLUMNS = ("fill_slippage_bp", "fill_participation", "fill_known", "equity_per_volume")


class OwnFill(NamedTuple):
    """What the trader's order in the last bar did; all 0 without one.

    ``slippage_bp`` is the price paid against the close before it, as a cost: a buyer who paid more
    and a seller who got less both read a positive number. It holds the venue's spread and slippage,
    the impact of the order and that of everyone else in the flow.
    """

    slippage_bp: float = 0.0
    participation: float = 0.0
    known: float = 0.0


NO_FILL = OwnFill()


class Sight:
    """Lays out observations; features are made by the same stream as those of any market."""

    def __init__(self, config: ReflexiveConfig) -> None:
        own = (SIGNAL,) if config.signal is not None else ()
        measured = (*FEATURES, *own)
        self._width = len(measured)
        self._period_ns = config.period_ns
        everything = (*measured, *(name + KNOWN_SUFFIX for name in measured))
        self._places = _chosen(config.features, everything)
        shown = everything if config.features is None else config.features
        self.names = (*PRICE_COLUMNS, *shown, *PRIVATE_FEATURES, *FILL_COLUMNS)
        self._learned: FloatArray = np.zeros(2 * self._width)
        self._shown = len(shown)
        self.begin()

    def begin(self) -> None:
        """Forget all bars."""
        self._stream = FeatureStream(self._period_ns)

    def watch(self, bar: BarRow, signal: float | None) -> None:
        """Take the next bar."""
        values, mask = self._stream.update(bar)
        learned, width, own = self._learned, self._width, len(FEATURES)
        learned[:own] = np.where(mask, values, 0.0)
        learned[width : width + own] = mask
        if signal is not None:
            learned[own], learned[-1] = signal, 1.0

    def show(self, prices: FloatArray, account: FloatArray, fill: tuple[float, ...]) -> FloatArray:
        """Return a new observation."""
        seen: FloatArray = np.empty(len(self.names))
        first, last = len(PRICE_COLUMNS), len(PRICE_COLUMNS) + self._shown
        seen[:first] = prices
        seen[first:last] = self._learned if self._places is None else self._learned[self._places]
        seen[last : last + len(account)] = account
        seen[last + len(account) :] = fill
        return seen


def _chosen(wanted: tuple[str, ...] | None, everything: tuple[str, ...]) -> NDArray[np.intp] | None:
    if wanted is None:
        return None
    for name in wanted:
        if name not in everything:
            raise unknown("feature", name, everything)
        if wanted.count(name) > 1:
            raise ConfigError(
                "a feature is asked for more than once",
                where="features",
                found=name,
                remedy="Name each feature once; every column of an observation has its own name",
            )
    return np.array([everything.index(name) for name in wanted], dtype=np.intp)
