"""Promotion: may a challenger replace the champion, and must it go again once it serves?

Belongs here: the checks of the promotion gate, the sequential watch over a rollout, and the
simulation that measures the error rates of both.
May import: core, evaluation.statistics, evaluation.gate (shapes of simulated noise).
Hands on: ``Verdict``, every check in words with numbers; ``MonitorDecision``. Nothing is stored
here: looks are counted and models are moved by ``pipeline.registry``.
"""

from agent_gym.evaluation.promotion.evidence import (
    Evidence,
    Figures,
    Integrity,
    Look,
    Pair,
    alpha_of,
)
from agent_gym.evaluation.promotion.gate import judge_promotion
from agent_gym.evaluation.promotion.monitor import Monitor, MonitorDecision, MonitorPolicy
from agent_gym.evaluation.promotion.policy import Limits, PromotionPolicy
from agent_gym.evaluation.promotion.slices import pairs_needed
from agent_gym.evaluation.promotion.superiority import chance_of_improvement, skew_corrected_p
from agent_gym.evaluation.promotion.verdict import Check, Verdict

__all__ = [
    "Check",
    "Evidence",
    "Figures",
    "Integrity",
    "Limits",
    "Look",
    "Monitor",
    "MonitorDecision",
    "MonitorPolicy",
    "Pair",
    "PromotionPolicy",
    "Verdict",
    "alpha_of",
    "chance_of_improvement",
    "judge_promotion",
    "pairs_needed",
    "skew_corrected_p",
]
