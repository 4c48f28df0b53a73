"""Was the best of many picked by luck? Probability of overfitting, and how many trials there were.

PBO by combinatorially symmetric cross-validation (Bailey, Borwein, Lopez de Prado and Zhu 2016):
rows are cut into blocks, every half of the blocks picks a winner, and the other half judges it. A
half is a sum of blocks, so all splits together are two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import table_of

MAX_BLOCKS = 20
CHUNK = 1_000_000
ROUNDING = 1e-12
# Half of the variance in common (0.71 squared): such series are one trial told twice.
SAME_TRIAL = 0.5**0.5


@dataclass(frozen=True, slots=True, eq=False)
class Overfitting:
    """What the splits say about picking the best.

    Attributes:
        pbo: Share of splits whose winner was in the worse half of the judging rows.
        logits: One a split, log odds of the winner's rank; at or below 0 it was in the worse half.
        degradation: Slope of the winner's Sharpe ratio in the judging half on that in the picking
            half: 1 keeps all of it, 0 nothing. None if winners were all equally good.
        loss: Share of splits whose winner lost money in the judging half.
    """

    pbo: float
    logits: FloatArray
    degradation: float | None
    loss: float

    @property
    def splits(self) -> int:
        """Return the number of splits."""
        return int(self.logits.size)


def pbo(matrix: ArrayLike, blocks: int = 16) -> Overfitting:
    """Return how likely the best in one half of the time is among the worse in the other.

    Args:
        matrix: Returns, one row a period and one column a strategy.
        blocks: Even number of blocks in time; 16 give 12,870 splits.
    """
    if blocks % 2 or not 2 <= blocks <= MAX_BLOCKS:
        raise DataError("an even number of blocks", found=blocks, expected=f"2 to {MAX_BLOCKS}")
    returns = table_of(matrix, rows=2 * blocks, columns=2)
    picks = _halves(blocks)
    sums = _BlockSums.of(returns, blocks)
    size = max(1, CHUNK // returns.shape[1])
    parts = [_judged(sums, picks[at : at + size]) for at in range(0, len(picks), size)]
    ranks, picked, judged = (np.concatenate(part) for part in zip(*parts, strict=True))
    logits: FloatArray = np.log(ranks / (returns.shape[1] + 1.0 - ranks))
    return Overfitting(
        pbo=float(np.mean(logits <= 0.0)),
        logits=logits,
        degradation=_slope(picked, judged),
        loss=float(np.mean(judged < 0.0)),
    )


def effective_trials(matrix: ArrayLike) -> int:
    """Return how many different strategies the columns are: clusters of correlated returns.

    Clusters are joined by average linkage while the mean correlation between them is at least
    0.71, half of the variance. A strategy and its mirror image stay two, as one of them must win.
    Columns that never move are all the same one.

    Example:
        >>> effective_trials([[1.0, 2.0, -1.0], [3.0, 6.0, -3.0], [2.0, 4.0, -2.0]])
        2
    """
    returns = table_of(matrix, rows=2)
    gaps = returns - returns.mean(axis=0)
    spread = np.sqrt(np.mean(gaps**2, axis=0))
    moving = spread > ROUNDING * np.abs(returns).max(axis=0)
    scaled = gaps[:, moving] / spread[moving]
    still = 1 if moving.sum() < moving.size else 0
    return still + _clusters(scaled.T @ scaled / len(returns))


def _clusters(alike: FloatArray) -> int:
    links, sizes = alike.copy(), np.ones(len(alike))
    np.fill_diagonal(links, -np.inf)
    count = len(alike)
    while count > 1:
        at = int(np.argmax(links))
        i, j = divmod(at, len(links))
        if links[i, j] < SAME_TRIAL:
            break
        joined = (sizes[i] * links[i] + sizes[j] * links[j]) / (sizes[i] + sizes[j])
        links[i], links[:, i] = joined, joined
        links[j], links[:, j] = -np.inf, -np.inf
        links[i, i] = -np.inf
        sizes[i] += sizes[j]
        count -= 1
    return count


def _halves(blocks: int) -> FloatArray:
    """Return one row a split: 1 for the blocks that pick, 0 for those that judge."""
    chosen = np.array(list(combinations(range(blocks), blocks // 2)))
    picks = np.zeros((len(chosen), blocks))
    np.put_along_axis(picks, chosen, 1.0, axis=1)
    return picks


@dataclass(frozen=True, slots=True, eq=False)
class _BlockSums:
    """Counts, sums and squares of each block; columns are centred, or squares would cancel."""

    counts: FloatArray
    sums: FloatArray
    squares: FloatArray
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, returns: FloatArray, blocks: int) -> _BlockSums:
        edges = len(returns) * np.arange(blocks + 1) // blocks
        centre = returns.mean(axis=0)
        gaps = returns - centre
        return cls(
            np.diff(edges).astype(np.float64),
            np.add.reduceat(gaps, edges[:-1], axis=0),
            np.add.reduceat(gaps**2, edges[:-1], axis=0),
            centre,
            ROUNDING * np.abs(returns).max(axis=0),
        )

    def sharpes(self, picks: FloatArray) -> FloatArray:
        """Return the Sharpe ratio of each strategy over the picked blocks, one row a split.

        What did not move has 0 if it earned nothing, else it is certain: plus or minus infinity.
        """
        counts = (picks @ self.counts)[:, None]
        sums = picks @ self.sums
        variance = np.maximum(picks @ self.squares - sums**2 / counts, 0.0) / (counts - 1.0)
        spread, means = np.sqrt(variance), self.centre + sums / counts
        means[np.abs(means) <= self.scale] = 0.0
        # A difference of large sums leaves more rounding in a spread than in a mean.
        still = spread <= 1e4 * self.scale
        ratios = np.divide(means, spread, out=np.zeros_like(means), where=~still)
        ratios[still] = np.where(means[still] == 0.0, 0.0, np.copysign(np.inf, means[still]))
        return ratios


def _judged(sums: _BlockSums, picks: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the winner's rank in the judging half (ties share theirs) and both its ratios."""
    before, after = sums.sharpes(picks), sums.sharpes(1.0 - picks)
    winner = np.argmax(before, axis=1)[:, None]
    picked, judged = (np.take_along_axis(half, winner, axis=1) for half in (before, after))
    below, equal = np.sum(after < judged, axis=1), np.sum(after == judged, axis=1)
    return below + 0.5 * (equal + 1.0), picked[:, 0], judged[:, 0]


def _slope(picked: FloatArray, judged: FloatArray) -> float | None:
    finite = np.isfinite(picked) & np.isfinite(judged)
    if finite.sum() < 2:
        return None
    gaps = picked[finite] - picked[finite].mean()
    spread = float(gaps @ gaps)
    if spread <= ROUNDING * float(picked[finite] @ picked[finite]):
        return None
    return float(gaps @ judged[finite]) / spread
