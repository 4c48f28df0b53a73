"""What UMC must show before it is believed: acceptance gates, and what each of its parts is worth.

Belongs here: bounds that were written down beforehand, jobs that measure, and their judgement.
Hands on: ``run_gates(plan, setting)`` and ``run_ablation(plan, setting)``, both reports of plain
values. A gate is no trial: nothing is chosen by it, so nothing goes into the registry of trials.
"""

from agent_gym.evaluation.umc.ablation import AblationPlan, AblationReport, run_ablation
from agent_gym.evaluation.umc.gates import GatesReport, run_gates
from agent_gym.evaluation.umc.plan import LETTERS, GatesPlan

__all__ = [
    "LETTERS",
    "AblationPlan",
    "AblationReport",
    "GatesPlan",
    "GatesReport",
    "run_ablation",
    "run_gates",
]
