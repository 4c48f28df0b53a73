"""No slice may pay for the others: every scenario by itself, corrected together by Holm."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.promotion.evidence import Evidence, by_slice
from agent_gym.evaluation.promotion.policy import PromotionPolicy
from agent_gym.evaluation.promotion.superiority import skew_corrected_p
from agent_gym.evaluation.promotion.verdict import Check
from agent_gym.evaluation.statistics import holm, sign_flip


def pairs_needed(slices: int, alpha: float = 0.05) -> int:
    """Return the fewest pairs of a slice with which harm could be shown at all.

    The smallest p-value of n pairs is 2 ** -n, and Holm multiplies it by the number of slices.

    Example:
        >>> [pairs_needed(slices) for slices in (1, 2, 5)]
        [5, 6, 7]
    """
    return math.ceil(math.log2(slices / alpha))


def non_inferiority(evidence: Evidence, policy: PromotionPolicy, seeds: Seeds) -> Check:
    """Return whether every slice keeps what it had, as far as the policy asks."""
    slices = by_slice(evidence.pairs)
    least = pairs_needed(max(len(slices), 1), policy.slice_alpha)
    small = [f"{name} has {rows.size}" for name, rows in slices.items() if rows.size < least]
    if small or not slices:
        return Check(
            name="non_inferiority",
            passed=False,
            words=f"harm cannot be shown with fewer than {least} pairs in each of {len(slices)} "
            f"slices: {', '.join(small) or 'there is none'}",
            figures={"slices": len(slices), "pairs_needed": least},
        )
    p_values = holm([_p(rows, policy, seeds.child(name)) for name, rows in slices.items()])
    said = p_values <= policy.slice_alpha
    in_the_way = said if policy.slice_rule == "no_harm_shown" else ~said
    told = [
        f"{name} {rows.mean():+.6g} (p {p:.2g})"
        for (name, rows), p, blocks in zip(slices.items(), p_values, in_the_way, strict=True)
        if blocks
    ]
    figures: dict[str, float | int | str | bool | None] = {
        "rule": policy.slice_rule,
        "margin": policy.slice_margin,
    }
    for (name, rows), p in zip(slices.items(), p_values, strict=True):
        figures |= {f"{name}_mean": float(rows.mean()), f"{name}_p": float(p)}
    return Check(
        name="non_inferiority",
        passed=not told,
        words=_words(told, len(slices), policy),
        figures=figures,
    )


def _p(rows: FloatArray, policy: PromotionPolicy, seeds: Seeds) -> float:
    """Return the p-value of harm beyond the margin, or of there being none, as the rule asks."""
    moved = np.asarray(rows + policy.slice_margin)
    if policy.slice_rule == "no_harm_shown":
        return sign_flip(moved, "less", seeds=seeds)
    return max(sign_flip(moved, "greater", seeds=seeds), skew_corrected_p(moved))


def _words(told: list[str], slices: int, policy: PromotionPolicy) -> str:
    margin = f"more than {policy.slice_margin:g} an episode"
    if policy.slice_rule == "no_harm_shown":
        if told:
            return f"worse by {margin} in {', '.join(told)}, Holm over {slices} slices"
        return f"none of {slices} slices is shown to be worse by {margin}"
    if told:
        return f"not shown to lose no {margin}: {', '.join(told)}, Holm over {slices} slices"
    return f"all {slices} slices are shown to lose no {margin}"
