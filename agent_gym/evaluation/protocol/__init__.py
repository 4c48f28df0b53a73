"""The protocol of an honest evaluation: splits, a record of trials, a lockbox, a verdict.

Belongs here: which rows are learned from and tested, the trial registry, the lockbox, random timing
as a baseline, gates on null markets, and the rules of the verdict. ``forward`` walks over one
series, ``combinatorial`` tests every choice of its stretches, ``seeded`` draws a market anew for
each seed; all hand on an ``Evaluation``.
No figure that takes luck into account is made without an entry in the registry.
"""

from agent_gym.evaluation.protocol.lockbox import Lockbox, Opening
from agent_gym.evaluation.protocol.report import ArmReport, Evaluation
from agent_gym.evaluation.protocol.splits import (
    Combination,
    Combinatorial,
    Fold,
    Span,
    WalkForward,
    purged_combinations,
    walk_forward,
)
from agent_gym.evaluation.protocol.standing import Standing, Standings
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, Trial, TrialPlan, TrialRegistry
from agent_gym.evaluation.protocol.verdict import Evidence, Verdict, judge

__all__ = [
    "ArmReport",
    "Combination",
    "Combinatorial",
    "Evaluation",
    "Evidence",
    "Fold",
    "Lockbox",
    "Opening",
    "Outcome",
    "Span",
    "Standing",
    "Standings",
    "Stretch",
    "Trial",
    "TrialPlan",
    "TrialRegistry",
    "Verdict",
    "WalkForward",
    "judge",
    "purged_combinations",
    "walk_forward",
]
