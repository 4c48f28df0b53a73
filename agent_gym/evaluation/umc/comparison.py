"""Differences between arms on the same paths: intervals, p-values that hold together, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, holm, seeds_interval, sign_flip
from agent_gym.evaluation.umc.variants import (
    CHANGED,
    EXPECTED,
    MARGINS,
    REFERENCE,
    Expected,
    Sign,
    about,
)

LEVEL = 0.05
FEWEST_SEEDS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """An arm less the arm it is compared with, in one figure on one market.

    Attributes:
        market: Where.
        arm: Which.
        metric: Of what.
        differences: One a seed, paired.
        interval: Of their mean.
        p: That nothing is going on, by flipping signs; two-sided.
        p_holm: The same, holding for all comparisons of this figure together.
        expected: What was expected; None if nothing was.
    """

    market: str
    arm: str
    metric: str
    differences: FloatArray
    interval: Interval
    p: float
    p_holm: float
    expected: Expected | None

    @property
    def nothing(self) -> bool:
        """Say whether the interval holds 0."""
        return self.interval.holds(0.0)

    @property
    def verdict(self) -> str:
        """Return how the figure stands to what was expected."""
        if self.expected is None:
            return "nothing was expected"
        margin = MARGINS.get(self.metric, 0.0)
        sign = self.expected.sign
        return judge_sign(sign, self.differences, self.interval, self.p_holm, margin)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "market": self.market,
            "arm": self.arm,
            "against": REFERENCE[self.market],
            "part": about(self.arm).part,
            "metric": self.metric,
            **self.interval.as_dict(),
            "p": self.p,
            "p_holm": self.p_holm,
            "seeds": int(self.differences.size),
            "expected": None if self.expected is None else self.expected.as_dict(),
            "verdict": self.verdict,
        }


def judge_sign(
    sign: Sign, differences: FloatArray, found: Interval, p_holm: float, margin: float = 0.0
) -> str:
    """Return ``as expected``, ``not as expected``, or that the figures say neither.

    A difference is there if its interval leaves out 0 and its p-value, held for all comparisons
    together, is below 5 %. A sign that was to be there is else ``not shown``; one that was not to
    be wrong is ``not contradicted``. About 0 is what holds 0 and does not reach beyond the margin.

    Example:
        >>> judge_sign("exactly 0", np.zeros(3), Interval(0.0, 0.0, 0.0, 0.95), 1.0)
        'as expected'
    """
    right, wrong = "as expected", "not as expected"
    sure = p_holm < LEVEL
    if sign == "exactly 0":
        return right if not differences.any() else wrong
    if sign == "about 0":
        if not found.holds(0.0):
            return wrong if sure else "not contradicted"
        return right if max(-found.low, found.high) <= margin else "not contradicted"
    if sign == "at least 0":
        below = found.high < 0.0 and sure
        return right if found.low >= 0.0 else wrong if below else "not contradicted"
    low, high = (found.low, found.high) if sign == "positive" else (-found.high, -found.low)
    if not sure:
        return "not shown"
    return right if low > 0.0 else wrong if high < 0.0 else "not shown"


Table = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""Market, arm, metric: one figure a seed."""


def compare_arms(table: Table, first_seed: int) -> list[Compared]:
    """Return every difference to the reference arm of its market."""
    known = {(one.market, one.arm, one.metric): one for one in EXPECTED}
    raw = []
    for market, arms in table.items():
        against = arms[REFERENCE[market]]
        for arm, figures in arms.items():
            if arm == REFERENCE[market]:
                continue
            for metric, values in figures.items():
                gap = np.array(values) - np.array(against[metric])[: len(values)]
                seeds = Seeds(first_seed).child("ablation", market, arm, metric)
                p = sign_flip(gap, seeds=seeds) if gap.any() else 1.0
                raw.append((market, arm, metric, gap, seeds_interval(gap, seeds), p))
    together = _holm_by_metric([(metric, p) for _, _, metric, _, _, p in raw])
    return [
        Compared(market, arm, metric, gap, found, p, held, known.get((market, arm, metric)))
        for (market, arm, metric, gap, found, p), held in zip(raw, together, strict=True)
    ]


def _holm_by_metric(tests: Sequence[tuple[str, float]]) -> list[float]:
    """Return the p-values that hold for all tests of the same figure together."""
    adjusted = [1.0] * len(tests)
    for name in dict.fromkeys(metric for metric, _ in tests):
        places = [at for at, (metric, _) in enumerate(tests) if metric == name]
        for at, value in zip(places, holm([tests[at][1] for at in places]), strict=True):
            adjusted[at] = float(value)
    return adjusted


def optional_parts(compared: Sequence[Compared]) -> list[str]:
    """Return the parts whose interval holds 0 in every figure on every market.

    To decide otherwise is worth nothing in itself: the share of changed decisions does not count.
    Fewer than 10 seeds call nothing optional: an interval that wide holds 0 nearly always.
    """
    few = unsure_parts(compared)
    return [
        part
        for part, own in _by_part(compared).items()
        if part not in few and all(one.nothing for one in own)
    ]


def unsure_parts(compared: Sequence[Compared]) -> list[str]:
    """Return the parts that some figure has too few seeds of to call them optional."""
    return [
        part
        for part, own in _by_part(compared).items()
        if min(one.differences.size for one in own) < FEWEST_SEEDS
    ]


def _by_part(compared: Sequence[Compared]) -> dict[str, list[Compared]]:
    parts: dict[str, list[Compared]] = {}
    for one in compared:
        if one.metric != CHANGED:
            parts.setdefault(about(one.arm).part, []).append(one)
    return parts
