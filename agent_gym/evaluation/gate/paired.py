"""Paired tests of many metrics at once: rows are metrics, columns are seeds.

A pair that could not be measured is NaN on both sides and left out. Everything is computed in units
of the row's largest number, so that the unit of a metric changes no answer and nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, stdtr, stdtrit

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.policy import Null

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# Numbers that differ by less than this share of their size are the same number.
ROUNDING = 1e-12
TIES = 1e-9  # a loss of exactly the tolerance is not beyond it, however the sums were rounded


@dataclass(frozen=True, slots=True)
class Table:
    """Both sides of some metrics, one row a metric and one column a seed."""

    base: FloatArray
    cand: FloatArray


@dataclass(frozen=True, slots=True)
class Bounds:
    """What counts as worse, and how much of it is tolerated, for each row.

    Rows of one ``family`` are corrected for each other; all rows of a suite are one family. The
    numbers of the families begin with 0.
    """

    sign: FloatArray
    rel: FloatArray
    abs: FloatArray
    floor: FloatArray
    family: IntArray

    def of(self, rows: IntArray) -> Bounds:
        """Return the bounds of some rows."""
        return Bounds(
            self.sign[rows], self.rel[rows], self.abs[rows], self.floor[rows], self.family[rows]
        )

    def counts(self, chosen: BoolArray) -> IntArray:
        """Return for each row how many rows of its family are chosen."""
        counted: IntArray = np.bincount(self.family[chosen], minlength=self._families())
        return counted[self.family]

    def _families(self) -> int:
        return int(self.family.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True)
class Paired:
    """What the pairs of each row say; losses are positive where the candidate is worse.

    ``same`` marks rows whose two sides are equal on every seed, ``certain`` rows whose loss is the
    same on every seed and not zero: there is no noise, so no test is needed to believe it.
    """

    n: IntArray
    base: FloatArray
    cand: FloatArray
    loss: FloatArray
    sd: FloatArray
    tolerance: FloatArray
    p_worse: FloatArray
    p_better: FloatArray
    effect: FloatArray
    same: BoolArray
    certain: BoolArray

    def worse(self) -> BoolArray:
        """Return which rows lost more than both tolerances allow."""
        return self.loss > self.tolerance * (1.0 + TIES)

    def better(self) -> BoolArray:
        """Return which rows gained more than both tolerances allow a loss to be."""
        return -self.loss > self.tolerance * (1.0 + TIES)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return Student's interval of the mean loss; rows of fewer than two pairs have none."""
        freedom = np.maximum(self.n - 1, 1)
        half = stdtrit(freedom, 0.5 + level / 2.0) * self.sd / np.sqrt(np.maximum(self.n, 1))
        return self.loss - half, self.loss + half


def paired(table: Table, bounds: Bounds, null: Null = "no_loss") -> Paired:
    """Compare both sides of every row.

    A row that takes two values in all (crashed or not) is tested by McNemar's exact test, every
    other one by Student's t of its differences. A row of fewer than two pairs shows nothing: its
    p-values are 1.
    """
    there = np.isfinite(table.base) & np.isfinite(table.cand)
    base, cand = np.where(there, table.base, 0.0), np.where(there, table.cand, 0.0)
    size = np.maximum(np.abs(base), np.abs(cand)).max(axis=1, initial=0.0)
    unit = np.where(size > 0.0, size, 1.0)
    base, cand = base / unit[:, None], cand / unit[:, None]
    n = there.sum(axis=1)
    count = np.maximum(n, 1)
    losses = bounds.sign[:, None] * (base - cand)
    losses[np.abs(losses) <= ROUNDING] = 0.0
    loss = losses.sum(axis=1) / count
    gaps = np.where(there, losses - loss[:, None], 0.0)
    sd = np.sqrt((gaps * gaps).sum(axis=1) / np.maximum(n - 1, 1))
    sd[sd <= ROUNDING] = 0.0
    base_mean, cand_mean = base.sum(axis=1) / count, cand.sum(axis=1) / count
    tolerance = tolerances(base_mean * unit, bounds) / unit
    shift = tolerance if null == "tolerance" else np.zeros_like(loss)
    p_worse, p_better = _student(loss, sd, n, shift), _student(-loss, sd, n, shift)
    # There is no noise to test where every seed says the same.
    binary = _two_valued(base, cand, there) & (sd > 0.0)
    if binary.any():
        lost, won = (losses > 0.0).sum(axis=1), (losses < 0.0).sum(axis=1)
        p_worse = np.where(binary, _mcnemar(lost, won), p_worse)
        p_better = np.where(binary, _mcnemar(won, lost), p_better)
    few = n < 2
    p_worse[few], p_better[few] = 1.0, 1.0
    same = (n > 0) & (losses == 0.0).all(axis=1)
    ties = (there & (losses == 0.0)).sum(axis=1)
    return Paired(
        n=n,
        base=base_mean * unit,
        cand=cand_mean * unit,
        loss=loss * unit,
        sd=sd * unit,
        tolerance=tolerance * unit,
        p_worse=p_worse,
        p_better=p_better,
        effect=((losses > 0.0).sum(axis=1) + 0.5 * ties) / count,
        same=same,
        certain=~same & ~few & (sd == 0.0),
    )


def tolerances(base: FloatArray, bounds: Bounds) -> FloatArray:
    """Return the loss that each row may have, in its unit: the larger of both tolerances.

    The share of the baseline says nothing of a baseline at or below the metric's floor.
    """
    size = np.abs(base)
    return np.maximum(np.where(size > bounds.floor, bounds.rel * size, 0.0), bounds.abs)


def holm(p_values: FloatArray, chosen: BoolArray, family: IntArray) -> FloatArray:
    """Return Holm's p-values of the chosen rows, each family by itself; the others keep 1."""
    adjusted = np.ones_like(p_values)
    rows = np.flatnonzero(chosen)
    if not rows.size:
        return adjusted
    order = rows[np.lexsort((p_values[rows], family[rows]))]
    _, starts, place, sizes = np.unique(
        family[order], return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.arange(order.size) - starts[place]
    steps = np.zeros((starts.size, int(sizes.max())))
    steps[place, rank] = p_values[order] * (sizes[place] - rank)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps, axis=1)[place, rank], 1.0)
    return adjusted


def _student(loss: FloatArray, sd: FloatArray, n: IntArray, shift: FloatArray) -> FloatArray:
    """Return one-sided p-values; without noise a loss is certain, never a t of 0 or NaN."""
    error = sd / np.sqrt(np.maximum(n, 1))
    exact = error == 0.0
    t = (loss - shift) / np.where(exact, 1.0, error)
    beyond = loss - shift > ROUNDING
    return np.where(exact, np.where(beyond, 0.0, 1.0), stdtr(np.maximum(n - 1, 1), -t))


def _two_valued(base: FloatArray, cand: FloatArray, there: BoolArray) -> BoolArray:
    low = np.where(there, np.minimum(base, cand), np.inf).min(axis=1, initial=np.inf)[:, None]
    high = np.where(there, np.maximum(base, cand), -np.inf).max(axis=1, initial=-np.inf)[:, None]
    two = ((base == low) | (base == high)) & ((cand == low) | (cand == high))
    known: BoolArray = (two | ~there).all(axis=1)
    return known


def _mcnemar(lost: IntArray, won: IntArray) -> FloatArray:
    """Return P(at least ``lost`` of the pairs that differ went this way, if a coin decided)."""
    p = np.asarray(betainc(np.maximum(lost, 1.0), won + 1.0, 0.5), dtype=np.float64)
    return np.where(lost > 0, p, 1.0)
