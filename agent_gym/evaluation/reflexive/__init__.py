"""Reflexive markets put to use: made real, turned against an agent, and measured.

Hands on: ``fit_crowd`` (a crowd whose bars look like given ones), ``red_team`` (the crowd that an
agent loses most in, among those that look real), ``best_participation`` (the yardstick where orders
move prices), and ``RealismTarget``, what looking real means here.
"""

from agent_gym.evaluation.reflexive.episodes import AgentFactory, growth
from agent_gym.evaluation.reflexive.fit import FitConfig, FitResult, fit_crowd
from agent_gym.evaluation.reflexive.moments import RealismTarget, moments_of
from agent_gym.evaluation.reflexive.optimum import (
    GRID,
    FixedParticipation,
    Optimum,
    best_participation,
)
from agent_gym.evaluation.reflexive.red_team import Attack, RedTeamConfig, RedTeamResult, red_team

__all__ = [
    "GRID",
    "AgentFactory",
    "Attack",
    "FitConfig",
    "FitResult",
    "FixedParticipation",
    "Optimum",
    "RealismTarget",
    "RedTeamConfig",
    "RedTeamResult",
    "best_participation",
    "fit_crowd",
    "growth",
    "moments_of",
    "red_team",
]
