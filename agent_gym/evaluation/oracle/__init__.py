"""The attainable optimum of the known markets: by dynamic programming, after costs.

Belongs here: chains of what can be known, their best policies, exact filters, the agent that uses
them, and perfect foresight as a scale for real prices.
"""

from agent_gym.evaluation.oracle.agent import OracleFilter, OracleFilterConfig
from agent_gym.evaluation.oracle.attainable import (
    Attainable,
    attainable,
    optimal_targets,
    regime_targets,
)
from agent_gym.evaluation.oracle.foresight import Foresight, foresight

__all__ = [
    "Attainable",
    "Foresight",
    "OracleFilter",
    "OracleFilterConfig",
    "attainable",
    "foresight",
    "optimal_targets",
    "regime_targets",
]
