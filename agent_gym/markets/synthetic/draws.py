"""Addressed random numbers: a draw is a hash of stream, bar and slot, never of what came before.

A stream is one 64-bit key. Bar ``t`` of a stream has its own base, and slot ``k`` of that base is
one number. So every stream has the same numbers at a bar whatever happened until then, a longer
series begins with the shorter one, and nothing has to be drawn that is not used.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from agent_gym.core.kernels import inlined

# The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / 2.0**53

# Quantiles of the normal law; between two of them a draw is interpolated, beyond them exact.
_CELLS = 4096
_QUANTILES = ndtri(np.clip(np.arange(_CELLS + 1) / _CELLS, 0.5 / _CELLS, 1.0 - 0.5 / _CELLS))
_BITS = np.uint64(52)
_REST = np.uint64((1 << 52) - 1)
_REST_UNIT = 1.0 / 2.0**52


@inlined
def scrambled(key: np.uint64) -> np.uint64:
    """Return the hash of a 64-bit word."""
    word = (key ^ (key >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@inlined
def base_of(stream: np.uint64, bar: int) -> np.uint64:
    """Return the base of a bar in a stream; bar -1 is for the start of a series."""
    return scrambled(stream + np.uint64(bar + 1) * _GAMMA)


@inlined
def uniform(base: np.uint64, slot: int) -> float:
    """Return a number strictly between 0 and 1."""
    word = scrambled(base + np.uint64(slot) * _GAMMA)
    return (float(word >> _S11) + 0.5) * _UNIT


@inlined
def normal(base: np.uint64, slot: int) -> float:
    """Return a standard normal number."""
    word = scrambled(base + np.uint64(slot) * _GAMMA)
    cell = np.int64(word >> _BITS)
    part = (float(word & _REST) + 0.5) * _REST_UNIT
    if 0 < cell < _CELLS - 1:
        inner: float = _QUANTILES[cell] + part * (_QUANTILES[cell + 1] - _QUANTILES[cell])
        return inner
    return _tail(part / _CELLS) if cell == 0 else -_tail((1.0 - part) / _CELLS)


@inlined
def _tail(share: float) -> float:
    # Abramowitz and Stegun 26.2.23 is good to 4.5e-4, more than a tail of 1 in 4096 needs.
    root = np.sqrt(-2.0 * np.log(share))
    above = 2.515517 + root * (0.802853 + root * 0.010328)
    below = 1.0 + root * (1.432788 + root * (0.189269 + root * 0.001308))
    distance: float = above / below - root
    return distance


@inlined
def exponential(base: np.uint64, slot: int) -> float:
    """Return an exponential number of mean 1."""
    drawn: float = -np.log(uniform(base, slot))
    return drawn
