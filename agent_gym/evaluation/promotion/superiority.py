"""Is the challenger better on the sealed snapshots? Two one-sided tests that must agree.

The sign flip is exact for differences that are symmetric about 0 if nothing is going on. Rare big
losses are not: with mean 0 and that skew it would promote one in eight at 5 %. So a t-test that is
corrected for skew (Johnson 1978) has to agree, and the larger of the two p-values counts.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.promotion.evidence import Evidence, Look, differences_of
from agent_gym.evaluation.promotion.policy import PromotionPolicy
from agent_gym.evaluation.promotion.verdict import Check
from agent_gym.evaluation.statistics import Interval, iqm_interval, sign_flip, wilson

# Differences that vary by rounding alone have no spread to divide by.
ROUNDING = 1e-12


def superiority(evidence: Evidence, look: Look, policy: PromotionPolicy, seeds: Seeds) -> Check:
    """Return whether the challenger earns more on the sealed snapshots, at this look's share."""
    gains = differences_of(evidence.pairs)
    if gains.size < policy.min_pairs:
        return Check(
            name="superiority",
            passed=False,
            words=f"{gains.size} sealed pairs are fewer than the {policy.min_pairs} asked for",
            figures={"pairs": gains.size},
        )
    flip = sign_flip(gains, "greater", seeds=seeds.child("superiority"))
    skewed = skew_corrected_p(gains)
    p, mean = max(flip, skewed), float(gains.mean())
    middle = iqm_interval(gains, seeds, reps=policy.reps, level=policy.level)
    better = chance_of_improvement(gains, policy.level)
    passed = p <= look.alpha
    words = (
        f"the challenger earns {mean:+.6g} an episode on {gains.size} sealed pairs, p {p:.2g} is "
        f"{'at most' if passed else 'above'} {look.alpha:.3g} (look {look.number}); "
        f"IQM {_told(middle)}, wins {_told(better)}"
    )
    return Check(
        name="superiority",
        passed=passed,
        words=words,
        figures={
            "pairs": int(gains.size),
            "mean": mean,
            "sd": float(gains.std(ddof=1)),
            "p": p,
            "p_sign_flip": flip,
            "p_skew_corrected": skewed,
            "alpha": look.alpha,
            **_figures("iqm", middle),
            **_figures("improvement", better),
        },
    )


def skew_corrected_p(gains: FloatArray) -> float:
    """Return the one-sided p-value of Johnson's t: does the mean stay above 0 with its skew?

    Example:
        >>> rare_losses = np.array([1.0] * 19 + [-17.0])
        >>> sign_flip(rare_losses, "greater") < 0.5 < skew_corrected_p(rare_losses)
        True
    """
    n, mean = gains.size, float(gains.mean())
    spread = float(gains.std(ddof=1))
    if spread <= ROUNDING * float(np.abs(gains).max()):
        return 0.0 if mean > 0.0 else 1.0
    third = float(np.mean((gains - mean) ** 3)) * n * n / ((n - 1) * (n - 2))
    shifted = mean + third / (6.0 * spread**2 * n) + third * mean**2 / (3.0 * spread**4)
    return float(stdtr(n - 1, -shifted * math.sqrt(n) / spread))


def chance_of_improvement(gains: FloatArray, level: float) -> Interval:
    """Return how often the challenger wins a pair, ties half, with Wilson's interval.

    A tie counts as lost at the lower end and as won at the upper one.

    Example:
        >>> found = chance_of_improvement(np.array([1.0, 2.0, 0.0, -1.0]), 0.95)
        >>> found.estimate, round(found.low, 3), round(found.high, 3)
        (0.625, 0.15, 0.954)
    """
    wins, ties, n = int(np.sum(gains > 0.0)), int(np.sum(gains == 0.0)), int(gains.size)
    low, high = wilson(wins, n, level).low, wilson(wins + ties, n, level).high
    return Interval((wins + 0.5 * ties) / n, low, high, level)


def _figures(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _told(interval: Interval) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
