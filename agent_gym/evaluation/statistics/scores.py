"""Scores of several runs on several tasks: the middle half, and who beats whom.

Runs are rows and tasks are columns; one row of numbers is one task. Runs are resampled within each
task (stratified), as in Agarwal et al. 2021.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import (
    Interval,
    check_bootstrap,
    percentile_interval,
    table_of,
)

CHUNK = 1_000_000


def iqm(scores: ArrayLike) -> float:
    """Return the interquartile mean: that of the middle half of all scores.

    Example:
        >>> iqm([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1000.0])
        4.5
    """
    table = table_of(scores)
    return float(middle_means(table.reshape(1, -1))[0])


def iqm_interval(
    scores: ArrayLike, seeds: Seeds, *, reps: int = 2000, level: float = 0.95
) -> Interval:
    """Return a percentile interval of the interquartile mean over runs x tasks."""
    table = table_of(scores, rows=2)
    check_bootstrap(reps, level)
    rng, (runs, tasks) = seeds.child("iqm bootstrap").rng(), table.shape
    size = max(1, CHUNK // table.size)
    drawn = []
    for done in range(0, reps, size):
        picks = rng.integers(runs, size=(min(size, reps - done), runs, tasks))
        drawn.append(middle_means(table[picks, np.arange(tasks)].reshape(len(picks), -1)))
    return percentile_interval(iqm(table), np.concatenate(drawn), level)


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """Return the chance that a run of x beats one of y on a task, ties half, averaged over tasks.

    Example:
        >>> probability_of_improvement([1.0, 2.0, 3.0], [2.0, 0.0, 0.0])
        0.8333333333333334
    """
    return float(np.mean(_wins(x, y)))


def probability_of_improvement_interval(
    x: ArrayLike, y: ArrayLike, seeds: Seeds, *, reps: int = 2000, level: float = 0.95
) -> Interval:
    """Return a percentile interval of the chance that a run of x beats one of y.

    Runs of x and of y are resampled apart: they are not pairs.
    """
    wins = _wins(x, y)
    check_bootstrap(reps, level)
    rng, (tasks, n, m) = seeds.child("improvement bootstrap").rng(), wins.shape
    size = max(1, CHUNK // wins.size)
    drawn = []
    for done in range(0, reps, size):
        count = min(size, reps - done)
        ours, theirs = (_counts(rng, count, tasks, runs) for runs in (n, m))
        won = np.einsum("rti,tij,rtj->r", ours, wins, theirs, optimize=True)
        drawn.append(won / (tasks * n * m))
    return percentile_interval(float(wins.mean()), np.concatenate(drawn), level)


def _wins(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return 1 where a run of x beats one of y, 0.5 where they are equal: tasks x runs x runs."""
    ours, theirs = table_of(x).T, table_of(y).T
    if len(ours) != len(theirs):
        raise DataError("both sides have the same tasks", found=(len(ours), len(theirs)))
    gaps: FloatArray = np.sign(ours[:, :, None] - theirs[:, None, :])
    return 0.5 * (gaps + 1.0)


def _counts(rng: np.random.Generator, reps: int, tasks: int, runs: int) -> FloatArray:
    """Return how often each run is drawn."""
    picks: NDArray[np.int64] = rng.integers(runs, size=(reps * tasks, runs))
    cells = picks + runs * np.arange(reps * tasks)[:, None]
    counts = np.bincount(cells.ravel(), minlength=reps * tasks * runs)
    return counts.reshape(reps, tasks, runs).astype(np.float64)


def middle_means(rows: FloatArray) -> FloatArray:
    """Return the mean of the middle half of each row."""
    cut = rows.shape[1] // 4
    ordered = np.sort(rows, axis=1)
    means: FloatArray = ordered[:, cut : rows.shape[1] - cut].mean(axis=1)
    return means
