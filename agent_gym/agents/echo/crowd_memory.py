"""The memory that the kernel works in: echoes, the bars they have seen, and what they answer.

All of it has a fixed size, set by the number of echoes and by the window: a longer run needs no
more memory than a short one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.echo import layout
from agent_gym.agents.echo.families import LONGEST_BARS, MOST_PARAMETERS
from agent_gym.core.types import FloatArray


def ring_length(window_bars: int) -> int:
    """Return how many bars are kept: the window and the longest look back, as a power of two."""
    return 1 << (window_bars + int(LONGEST_BARS) + 2).bit_length()


class SeenBars:
    """The last bars, oldest overwritten first."""

    def __init__(self, window_bars: int) -> None:
        self.ring: FloatArray = np.zeros((ring_length(window_bars), layout.SEEN_SLOTS))
        self.mask = len(self.ring) - 1

    def column(self, slot: int, first: int, bars: int) -> FloatArray:
        """Return one number of some bars in the order of time."""
        places = np.arange(first, first + bars) & self.mask
        column: FloatArray = self.ring[places, slot]
        return column


class EchoMemory:
    """Some echoes and the kernel's view of them; they watch bars that others may watch too."""

    def __init__(self, echoes: FloatArray, seen: SeenBars, cost: float, bars: int = 1) -> None:
        n = len(echoes)
        self.n, self.echoes, self.seen = n, echoes, seen
        self.demands: FloatArray = np.zeros(n)
        self.growth: FloatArray = np.zeros((bars, n))
        self.positions: FloatArray = np.zeros((bars, n))
        self._context = np.zeros(layout.CROWD_SLOTS, dtype=np.int64)
        self._sums: FloatArray = self._context.view(np.float64)
        self._sums[layout.COST] = cost
        self._context[layout.ECHO_COUNT] = n
        self._context[layout.SEEN_MASK] = seen.mask
        addresses = {
            layout.ECHOES_AT: echoes,
            layout.SEEN_AT: seen.ring,
            layout.DEMAND_AT: self.demands,
            layout.GROWTH_AT: self.growth,
            layout.POSITION_AT: self.positions,
        }
        for slot, buffer in addresses.items():
            self._context[slot] = buffer.ctypes.data
        self.address: int = self._context.ctypes.data

    @property
    def net(self) -> float:
        """Return the sum of all demands."""
        return float(self._sums[layout.NET])

    @property
    def gross(self) -> float:
        """Return the sum of the demands' sizes."""
        return float(self._sums[layout.GROSS])


def new_echoes(
    families: NDArray[np.int64], parameters: FloatArray, capital: FloatArray
) -> FloatArray:
    """Return echoes that hold nothing; one row of parameters in their own units for each."""
    echoes: FloatArray = np.zeros((len(families), layout.ECHO_SLOTS))
    echoes[:, layout.FAMILY] = families
    echoes[:, layout.FIRST_PARAMETER : layout.FIRST_PARAMETER + MOST_PARAMETERS] = parameters
    echoes[:, layout.CAPITAL] = capital
    echoes[:, layout.SIDE] = 1.0
    return echoes


def set_keys(echoes: FloatArray, keys: NDArray[np.int64]) -> None:
    """Give every echo the key that its dice depend on."""
    echoes.view(np.int64)[:, layout.KEY] = keys
