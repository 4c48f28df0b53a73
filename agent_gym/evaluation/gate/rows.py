"""One metric's pairs: a value a seed from both sides, or the reason why there are none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.exactness import by_seed
from agent_gym.evaluation.gate.paired import Bounds, Table
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples
from agent_gym.evaluation.scenarios.metric import Metric

MAX_ERROR_CHARS = 200
LARGEST = 1e300  # beyond it sums and squares are no numbers any more
WORST_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """The pairs of one metric; a pair that neither side could measure is NaN on both."""

    metric: Metric
    seeds: tuple[int, ...]
    base: FloatArray
    cand: FloatArray

    @property
    def left_out(self) -> int:
        """Return how many seeds could not be measured."""
        return int(np.isnan(self.base).sum())

    def worst_seeds(self) -> tuple[int, ...]:
        """Return the seeds of the largest losses, the largest first."""
        losses = np.nan_to_num(self.metric.sign * (self.base - self.cand), nan=-np.inf)
        order = np.argsort(-losses, kind="stable")[:WORST_SEEDS]
        return tuple(self.seeds[index] for index in order if losses[index] > 0.0)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a metric has no pairs, and the seed to look at, if it is one seed's fault.

    ``measured`` is on how many seeds both sides say the same, where they agree on every seed and
    there are only too few of them that could be measured.
    """

    why: str
    seeds: tuple[int, ...] = ()
    measured: int | None = None


def read_row(
    old: ScenarioSamples, new: ScenarioSamples, metric: Metric, seeds: Sequence[int]
) -> Row | Unreadable:
    """Return the pairs of a metric on the given seeds, or what is wrong with them.

    Repeats of a seed are averaged: what was played on one seed is one draw. A figure that the
    candidate could not measure where the baseline could is an error, not a pair to leave out.
    """
    sides = by_seed(old.samples), by_seed(new.samples)
    wrong = _unplayed(sides, seeds)
    if wrong is not None:
        return wrong
    base, cand, agree = [], [], len(seeds) > 1
    for seed in seeds:
        pair = [_value(side[seed], metric.name) for side in sides]
        for name, value in zip(("baseline", "candidate"), pair, strict=True):
            if value is not None and not abs(value) <= LARGEST:
                return Unreadable(f"not a finite number on seed {seed} of the {name}", (seed,))
        if pair[0] is not None and pair[1] is None:
            return Unreadable(f"could not be measured on seed {seed} of the candidate", (seed,))
        agree = agree and pair[0] == pair[1]
        base.append(math.nan if None in pair or pair[0] is None else pair[0])
        cand.append(math.nan if pair[0] is None or pair[1] is None else pair[1])
    row = Row(metric, tuple(seeds), np.array(base), np.array(cand))
    measured = len(seeds) - row.left_out
    if measured < 2:
        why = f"measured on {measured} seeds; a comparison needs two"
        return Unreadable(why, measured=measured if agree else None)
    return row


def events_of(scenario: ScenarioSamples, metric: Metric) -> tuple[tuple[int, ...], float]:
    """Return the seeds on which a must-be-zero metric was not zero, the worst first, and its size.

    Up to the absolute tolerance a value is no event.
    """
    found = []
    for sample in scenario.samples:
        value = sample.metrics.get(metric.name)
        if value is not None and math.isfinite(value) and abs(value) > metric.tolerance.abs:
            found.append((-abs(value), sample.seed))
    found.sort()
    return tuple(seed for _, seed in found), -found[0][0] if found else 0.0


def table_of(rows: Sequence[Row | None]) -> Table:
    """Return the rows as one table, shorter ones filled up; None is a row without any pair."""
    width = max((row.base.size for row in rows if row is not None), default=0)
    base = np.full((len(rows), width), np.nan)
    cand = base.copy()
    for index, row in enumerate(rows):
        if row is not None:
            base[index, : row.base.size] = row.base
            cand[index, : row.cand.size] = row.cand
    return Table(base, cand)


def bounds_of(rows: Sequence[Row]) -> Bounds:
    """Return directions and tolerances of the rows."""
    metrics = [row.metric for row in rows]
    return Bounds(
        sign=np.array([metric.sign for metric in metrics]),
        rel=np.array([metric.tolerance.rel for metric in metrics]),
        abs=np.array([metric.tolerance.abs for metric in metrics]),
        floor=np.array([metric.floor for metric in metrics]),
        family=np.zeros(len(rows), dtype=np.int64),
    )


def _unplayed(
    sides: tuple[dict[int, list[Sample]], ...], seeds: Sequence[int]
) -> Unreadable | None:
    if not seeds:
        return Unreadable("no seed was played")
    for name, side in zip(("baseline", "candidate"), sides, strict=True):
        for seed in seeds:
            if seed not in side:
                return Unreadable(f"seed {seed} was not played in the {name}", (seed,))
            failed = [sample for sample in side[seed] if sample.status != "ok"]
            if failed:
                text = f": {failed[0].error[:MAX_ERROR_CHARS]}" if failed[0].error else ""
                why = f"{failed[0].status} on seed {seed} of the {name}{text}"
                return Unreadable(why, (seed,))
    return None


def _value(samples: Sequence[Sample], name: str) -> float | None:
    values = [sample.metrics.get(name) for sample in samples]
    known = [float(value) for value in values if value is not None]
    if len(known) < len(values):
        return None
    # fsum of the order-free kind: repeats may come in any order
    return known[0] if len(known) == 1 else _mean(known)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan
