"""The gate: did tonight's agent get worse, and how surely would we know?

Belongs here: the comparison of two runs of a suite, its error rates and their proof.
May import: core, evaluation.scenarios.metric.
Hands on: ``Diff``, a word for every metric and one for the suite; the same for the same input.
"""

from agent_gym.evaluation.gate.anchor import anchor_drift
from agent_gym.evaluation.gate.change_points import ChangePoint, change_points
from agent_gym.evaluation.gate.diff import Diff, Finding, Notice, SuiteWord, Word
from agent_gym.evaluation.gate.history import History, Night, night_of
from agent_gym.evaluation.gate.judge import judge
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.quarantine import (
    Quarantine,
    QuarantineEntry,
    entries_for,
    proposals,
)
from agent_gym.evaluation.gate.samples import Rerun, Sample, ScenarioSamples, SuiteSamples

__all__ = [
    "ChangePoint",
    "Diff",
    "Finding",
    "GatePolicy",
    "History",
    "Night",
    "Notice",
    "Quarantine",
    "QuarantineEntry",
    "Rerun",
    "Sample",
    "ScenarioSamples",
    "SuiteSamples",
    "SuiteWord",
    "Word",
    "anchor_drift",
    "change_points",
    "entries_for",
    "judge",
    "night_of",
    "proposals",
]
