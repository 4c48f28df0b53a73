"""The promotion gate: facts, limits, superiority and slices; all of them, or it stays as it is."""

from __future__ import annotations

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion.evidence import Evidence, Look
from agent_gym.evaluation.promotion.limits import absolute_limits, integrity
from agent_gym.evaluation.promotion.policy import PromotionPolicy
from agent_gym.evaluation.promotion.slices import non_inferiority
from agent_gym.evaluation.promotion.superiority import superiority
from agent_gym.evaluation.promotion.verdict import Verdict


def judge_promotion(
    evidence: Evidence,
    look: Look,
    policy: PromotionPolicy | None = None,
    seeds: Seeds | None = None,
) -> Verdict:
    """Return whether the challenger may replace the champion, every check with its numbers.

    Args:
        evidence: Both sides on the sealed set, facts and figures.
        look: The counted look at this sealed set; it says what this candidate may spend.
        policy: How strict to be; by default as shipped.
        seeds: Where resamples come from; by default one fixed node, so that the same evidence
            always gives the same verdict.
    """
    asked, root = policy or PromotionPolicy(), (seeds or Seeds(0)).child("promotion")
    for name, seen, named in (
        ("candidate", look.candidate, evidence.challenger),
        ("sealed set", look.sealed_set, evidence.sealed_set),
    ):
        if seen != named:
            raise DataError(f"a look was counted for another {name}", found=seen, expected=named)
    return Verdict(
        champion=evidence.champion,
        challenger=evidence.challenger,
        sealed_set=evidence.sealed_set,
        look=look.number,
        alpha=look.alpha,
        checks=(
            integrity(evidence.integrity),
            *absolute_limits(evidence.figures, asked.limits),
            superiority(evidence, look, asked, root),
            non_inferiority(evidence, asked, root.child("slices")),
        ),
    )
