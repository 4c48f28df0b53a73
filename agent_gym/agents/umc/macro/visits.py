"""From beliefs to visits: confirmed states, the order in which they come, and where walks close."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

IntArray = NDArray[np.int64]
BASE = 8  # a cycle is written as a number whose digits are its states, each plus one


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Confirmed states in the order in which they were visited, never one twice in a row.

    Attributes:
        states: Which state, one a visit.
        bars: For how many bars it was confirmed.
    """

    states: IntArray
    bars: IntArray

    def __len__(self) -> int:
        return int(self.states.size)


def visits_in(beliefs: FloatArray, probability: float, bars: int) -> Visits:
    """Return the visits that beliefs tell of."""
    confirmed = np.empty(len(beliefs), dtype=np.int64)
    confirm(np.ascontiguousarray(beliefs), probability, bars, confirmed)
    known = confirmed[confirmed >= 0]
    first = np.flatnonzero(np.diff(known, prepend=-1))
    return Visits(known[first], np.diff(first, append=known.size).astype(np.int64))


def closed_walks(visits: Visits) -> Counter[tuple[int, ...]]:
    """Count the walks that come back to where they began without meeting any state twice before.

    A cycle is written from its smallest state on, whichever of its states a walk began with.

    Example:
        >>> closed_walks(Visits(np.array([1, 2, 0, 1, 2]), np.ones(5, np.int64)))
        Counter({(0, 1, 2): 2})
    """
    codes = walk_codes(visits.states)
    return Counter({cycle_of(int(code)): n for code, n in Counter(codes.tolist()).items()})


def walk_codes(states: IntArray) -> IntArray:
    """Return the cycles in which walks close, as numbers, one a closed walk."""
    codes = np.zeros(states.size, dtype=np.int64)
    close_walks(states, codes)
    return codes[codes > 0]


def cycle_of(code: int) -> tuple[int, ...]:
    """Return the states of a cycle that is written as a number.

    Example:
        >>> cycle_of(0o123)
        (0, 1, 2)
    """
    digits: list[int] = []
    while code:
        code, digit = divmod(code, BASE)
        digits.append(digit - 1)
    return tuple(reversed(digits))


@door("void(float64[:, ::1], float64, int64, int64[::1])")
def confirm(beliefs: FloatArray, probability: float, bars: int, confirmed: IntArray) -> None:
    """Write the state that was believed in for so many bars in a row, up to this one, or -1."""
    state, run = -1, 0
    for t in range(beliefs.shape[0]):
        best = 0
        for k in range(1, beliefs.shape[1]):
            if beliefs[t, k] > beliefs[t, best]:
                best = k
        if beliefs[t, best] <= probability:
            state, run = -1, 0
        elif best == state:
            run += 1
        else:
            state, run = best, 1
        confirmed[t] = state if run >= bars else -1


@door("void(int64[::1], int64[::1])")
def close_walks(states: IntArray, codes: IntArray) -> None:
    """Write for each visit the cycle in which the walk from it closes, or 0."""
    for i in range(states.size):
        met, length = 0, 0
        for j in range(i, states.size):
            if j > i and states[j] == states[i]:
                length = j - i
                break
            if met & (1 << states[j]):
                break
            met |= 1 << states[j]
        if length == 0:
            continue
        low = i
        for j in range(i, i + length):
            if states[j] < states[low]:
                low = j
        code = 0
        for step in range(length):
            code = code * BASE + states[i + (low - i + step) % length] + 1
        codes[i] = code
