"""Differences between arms on the same paths: intervals, p-values that hold together, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, holm, seeds_interval, sign_flip
from agent_gym.evaluation.umc.variants import CHANGED, EXPECTED, REFERENCE, Sign, about

LEVEL = 0.05


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
        sign: What was expected; None if nothing was.
    """

    market: str
    arm: str
    metric: str
    differences: FloatArray
    interval: Interval
    p: float
    p_holm: float
    sign: Sign | None

    @property
    def nothing(self) -> bool:
        """Say whether the interval holds 0."""
        return self.interval.holds(0.0)

    @property
    def verdict(self) -> str:
        """Return how the figure stands to what was expected."""
        if self.sign is None:
            return "nothing was expected"
        return judge_sign(self.sign, self.differences, self.interval)

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
            "expected": self.sign,
            "verdict": self.verdict,
        }


def judge_sign(sign: Sign, differences: FloatArray, found: Interval) -> str:
    """Return ``as expected``, ``not as expected``, or that an interval says neither.

    A sign that was to be there is then ``not shown``; one that was not to be wrong is ``not
    contradicted``.

    Example:
        >>> judge_sign("exactly 0", np.zeros(3), Interval(0.0, 0.0, 0.0, 0.95))
        'as expected'
    """
    right, wrong = "as expected", "not as expected"
    if sign == "exactly 0":
        return right if not differences.any() else wrong
    if sign == "about 0":
        return right if found.holds(0.0) else wrong
    if sign == "at least 0":
        return right if found.low >= 0.0 else wrong if found.high < 0.0 else "not contradicted"
    low, high = (found.low, found.high) if sign == "positive" else (-found.high, -found.low)
    return right if low > 0.0 else wrong if high < 0.0 else "not shown"


Table = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""Market, arm, metric: one figure a seed."""


def compare_arms(table: Table, first_seed: int) -> list[Compared]:
    """Return every difference to the reference arm of its market."""
    signs = {(one.market, one.arm, one.metric): one.sign for one in EXPECTED}
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
        Compared(market, arm, metric, gap, found, p, held, signs.get((market, arm, metric)))
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
    """
    parts: dict[str, bool] = {}
    for one in compared:
        if one.metric == CHANGED:
            continue
        part = about(one.arm).part
        parts[part] = parts.get(part, True) and one.nothing
    return [part for part, nothing in parts.items() if nothing]
