"""Performance profiles: the share of runs (or of their episodes) that score above each mark.

A mean hides whether all runs are fair or a few are splendid and the rest have failed; the profile
shows the whole law at once, and one profile that lies above another everywhere is better by any
mark (Agarwal et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import check_bootstrap, row_of, table_of

CHUNK = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A curve that falls from 1 to 0, and the band of it.

    Attributes:
        marks: The scores asked about.
        share: Share that is above each mark.
        low: Lower end of the band, for each mark by itself; None with a single run.
        high: Upper end.
        level: Probability of the band.
    """

    marks: FloatArray
    share: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    level: float

    def as_dict(self) -> dict[str, list[float] | float | None]:
        """Return the fields by name, as plain values."""
        return {
            "marks": self.marks.tolist(),
            "share": self.share.tolist(),
            "low": None if self.low is None else self.low.tolist(),
            "high": None if self.high is None else self.high.tolist(),
            "level": self.level,
        }


def performance_profile(
    scores: ArrayLike,
    marks: ArrayLike,
    seeds: Seeds,
    *,
    reps: int = 2000,
    level: float = 0.95,
) -> Profile:
    """Return the share above each mark with a stratified bootstrap band.

    Args:
        scores: Runs x tasks; one row of numbers is one task. Or runs x tasks x episodes: the share
            is then that of episodes, and a run is resampled with all its episodes, as they share
            one policy and are no independent evidence.
        marks: The scores asked about.
        seeds: Where the resamples come from.
        reps: Resamples; runs are drawn within each task.
        level: Probability of the band.

    Example:
        >>> found = performance_profile([1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 4.0], Seeds(1))
        >>> found.share.tolist()
        [1.0, 0.5, 0.0]
    """
    check_bootstrap(reps, level)
    shares = _shares(np.asarray(scores, dtype=np.float64), row_of(marks))
    runs, tasks, width = shares.shape
    middle = shares.mean(axis=(0, 1))
    if runs < 2:
        return Profile(row_of(marks), middle, None, None, level)
    rng = seeds.child("profile bootstrap").rng()
    size = max(1, CHUNK // shares.size)
    drawn = np.empty((reps, width))
    for done in range(0, reps, size):
        picks = rng.integers(runs, size=(min(size, reps - done), runs, tasks))
        drawn[done : done + len(picks)] = shares[picks, np.arange(tasks)].mean(axis=(1, 2))
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return Profile(row_of(marks), middle, low, high, level)


def _shares(scores: FloatArray, marks: FloatArray) -> FloatArray:
    """Return runs x tasks x marks: the share of each run's episodes that is above each mark."""
    if scores.ndim <= 2:
        scores = table_of(scores)[:, :, None]
    if scores.ndim != 3 or 0 in scores.shape:
        raise DataError(
            "this takes runs x tasks, or runs x tasks x episodes", found=tuple(scores.shape)
        )
    table_of(scores.reshape(len(scores), -1))
    # Sorted once, a mark is a search: no array of all scores times all marks.
    ordered = np.sort(scores, axis=2).reshape(-1, scores.shape[2])
    above = [row.size - np.searchsorted(row, marks, side="right") for row in ordered]
    shares: FloatArray = np.array(above, dtype=np.float64) / scores.shape[2]
    return shares.reshape(scores.shape[0], scores.shape[1], marks.size)
