"""Teams compared over seeds: how often they win, how soon, and whether that is more than luck.

Belongs here: figures of trainings, from the plain records that they leave behind.
May import: core and evaluation's statistics.
Hands on: ``Comparison`` and ``Ablation``, whose documents pages are made from.
"""

from agent_gym.evaluation.marl.ablation import Ablation, compare_arms
from agent_gym.evaluation.marl.comparison import Comparison, compare_teams
from agent_gym.evaluation.marl.diagnosis import over_seeds
from agent_gym.evaluation.marl.figures import AGREED, ArmFigures, arm_figures
from agent_gym.evaluation.marl.runs import TeamRun, horizon, kept_run, run_of
from agent_gym.evaluation.marl.verdicts import MATCHES_BELOW, Verdict, verdict

__all__ = [
    "AGREED",
    "MATCHES_BELOW",
    "Ablation",
    "ArmFigures",
    "Comparison",
    "TeamRun",
    "Verdict",
    "arm_figures",
    "compare_arms",
    "compare_teams",
    "horizon",
    "kept_run",
    "over_seeds",
    "run_of",
    "verdict",
]
