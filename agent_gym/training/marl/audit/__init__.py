"""The audit of a team's training: what is silently broken in how it learns and is judged.

Belongs here: checks of the learner, of AMAL's parts and of the judgement, on a tiny real training.
May import: all of ``training.marl`` and the findings of ``evaluation.audit``.
Hands on: ``audit_team``; a defect is planted by replacing one of a subject's ``Seams``.
"""

from agent_gym.training.marl.audit.run import CHECKS, TeamCheck, audit_team, check_named
from agent_gym.training.marl.audit.subject import Seams, TeamSubject, Training, Watched

__all__ = [
    "CHECKS",
    "Seams",
    "TeamCheck",
    "TeamSubject",
    "Training",
    "Watched",
    "audit_team",
    "check_named",
]
