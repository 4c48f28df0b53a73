"""Macrostates: the few regimes a market goes through, by a filter that never looks ahead.

Belongs here: the fit of a sticky hidden Markov model on a past, its online filter, stable numbers
for states across refits, their names, and the cycles they go through with honest p-values.
Imports ``agent_gym.core`` only; hands on MacrostateDetector and what it returns.
"""

from agent_gym.agents.umc.macro.config import CycleConfig, MacroConfig
from agent_gym.agents.umc.macro.cycles import Cycle, CycleReport, Redraw
from agent_gym.agents.umc.macro.detector import FitReport, MacrostateDetector
from agent_gym.agents.umc.macro.labels import Label, Regime
from agent_gym.agents.umc.macro.matching import Match
from agent_gym.agents.umc.macro.stability import Stability

__all__ = [
    "Cycle",
    "CycleConfig",
    "CycleReport",
    "FitReport",
    "Label",
    "MacroConfig",
    "MacrostateDetector",
    "Match",
    "Redraw",
    "Regime",
    "Stability",
]
