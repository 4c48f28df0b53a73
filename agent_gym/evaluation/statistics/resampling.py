"""The stationary bootstrap (Politis and Romano 1994): blocks of random length, wrapped at the end.

A path is a list of blocks. The mean over a path needs no path at all: the sum of a block is a
difference of two running sums, which costs one step a block instead of one a value. Both ways draw
the same numbers in the same order, so from one seed they see the same paths.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.kernels import door, inlined
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import row_of


def block_length(values: ArrayLike) -> float:
    """Return the mean block length that suits a series, at least 1.

    Politis and White 2004 with the correction of Patton, Politis and White 2009: autocovariances up
    to the lag where they stop to matter, under a flat-top window.

    Example:
        >>> block_length([1.0, -1.0] * 50) > 5.0, block_length([2.0] * 50)
        (True, 1.0)
    """
    row = row_of(values, least=2)
    n = row.size
    gaps = row - row.mean()
    if float(np.abs(gaps).max()) <= 1e-12 * float(np.abs(row).max()):
        return 1.0
    covariances, correlations = _autocovariances(gaps)
    # The first lag after which as many correlations as `quiet` are small.
    quiet = max(5, int(math.log10(n)))
    small = np.abs(correlations) < 2.0 * math.sqrt(math.log10(n) / n)
    last = covariances.size - 1
    runs = np.convolve(small, np.ones(quiet), mode="valid")[: max(last - quiet + 1, 0)] == quiet
    lags = min(2 * max(int(np.argmax(runs)), 1), last) if runs.any() else last
    steps = np.arange(1, lags + 1)
    window = np.minimum(1.0, 2.0 * (1.0 - steps / lags))
    tops = window * covariances[1 : lags + 1]
    spectrum = covariances[0] + 2.0 * tops.sum()
    slope = 2.0 * (steps * tops).sum()
    longest = math.ceil(min(3.0 * math.sqrt(n), n / 3.0))
    if spectrum == 0.0:
        return float(longest)
    wanted = float((slope**2 / spectrum**2) ** (1.0 / 3.0) * n ** (1.0 / 3.0))
    return min(max(wanted, 1.0), float(longest))


def _autocovariances(gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    n = gaps.size
    last = min(math.ceil(math.sqrt(n)) + max(5, int(math.log10(n))), n - 2)
    # Padded by the lags that are wanted, so that the ends do not meet.
    size = 1 << (n + last).bit_length()
    products = np.fft.irfft(np.abs(np.fft.rfft(gaps, size)) ** 2, size)[: last + 1]
    squares, lags = np.cumsum(gaps**2), np.arange(last + 1)
    scales = np.sqrt((squares[-1] - squares[lags]) * squares[n - lags - 2])
    correlations = np.divide(products, scales, out=np.zeros(last + 1), where=scales > 0.0)
    return products / n, correlations


def path_rng(seeds: Seeds) -> np.random.Generator:
    """Return the generator that all paths of one bootstrap are drawn from."""
    return seeds.child("stationary bootstrap").rng()


def checked_block(block: float, n: int) -> float:
    """Return a mean block length, or raise if it is not one."""
    if not 1.0 <= block <= n:
        raise DataError("a block holds at least one value", found=block, expected=f"1 to {n}")
    return float(block)


def path_means(table: FloatArray, block: float, reps: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean of every column over every path, one row a path."""
    centre = table.mean(axis=0)
    rounds = np.concatenate([table, table]) - centre
    sums = np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(rounds, axis=0)])
    means: FloatArray = _path_sums(sums, block, reps, rng) / len(table) + centre
    return means


@inlined
def _log_stay(block: float) -> float:
    return math.log1p(-1.0 / block) if block > 1.0 else 0.0


@inlined
def _length(draw: float, log_stay: float, room: int) -> int:
    # Geometric by inversion; the last block of a path is cut where the path ends.
    drawn = math.log(1.0 - draw) / log_stay
    return room if drawn >= room else min(room, 1 + int(drawn))


@door("void(npy_rng, float64, int64[::1])")
def fill_path(rng: np.random.Generator, block: float, path: NDArray[np.int64]) -> None:
    """Write the indices of the next path."""
    n = path.size
    log_stay = _log_stay(block)
    done = 0
    while done < n:
        at = min(int(rng.random() * n), n - 1)
        length = 1 if log_stay == 0.0 else _length(rng.random(), log_stay, n - done)
        for _ in range(length):
            path[done] = at
            done += 1
            at += 1
            if at == n:
                at = 0


@door("float64[:, ::1](float64[:, ::1], float64, int64, npy_rng)")
def _path_sums(sums: FloatArray, block: float, reps: int, rng: np.random.Generator) -> FloatArray:
    n, columns = (sums.shape[0] - 1) // 2, sums.shape[1]
    totals = np.zeros((reps, columns))
    log_stay = _log_stay(block)
    for rep in range(reps):
        done = 0
        while done < n:
            at = min(int(rng.random() * n), n - 1)
            length = 1 if log_stay == 0.0 else _length(rng.random(), log_stay, n - done)
            for k in range(columns):
                totals[rep, k] += sums[at + length, k] - sums[at, k]
            done += length
    return totals
