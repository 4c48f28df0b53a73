"""Leakage: does what others made reach what a model takes to be true. Four numbers, one control.

- G1 purity: rows the model learned from that are not primary; none.
- G2 non-interference: how far its parameters move when the others are there at all; not a bit.
- G3 predictive leakage: how far its forecasts move by what others did to the data it collected.
- G4 policy influence: how far others move the policy, after projection.

That two populations behave unlike each other is no leakage, and is measured nowhere here. The
control opens the gate to a planted pattern and must be caught, else the numbers prove nothing.
Belongs here: the checks, for any model that can be trained by a factory, and UMC under them.
"""

from agent_gym.evaluation.leakage.checks import (
    Figure,
    NonInterference,
    PredictiveLeakage,
    compare_weights,
    non_interference,
    policy_influence,
    predictive_leakage,
    purity,
    weights_digest,
)
from agent_gym.evaluation.leakage.predictive import Predictive, mean_divergence
from agent_gym.evaluation.leakage.report import (
    Control,
    LeakageReport,
    Live,
    Part,
    Train,
    Trained,
    check_leakage,
    require_caught,
)

__all__ = [
    "Control",
    "Figure",
    "LeakageReport",
    "Live",
    "NonInterference",
    "Part",
    "Predictive",
    "PredictiveLeakage",
    "Train",
    "Trained",
    "check_leakage",
    "compare_weights",
    "mean_divergence",
    "non_interference",
    "policy_influence",
    "predictive_leakage",
    "purity",
    "require_caught",
    "weights_digest",
]
