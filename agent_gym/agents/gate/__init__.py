"""The asymmetric gate: others may shape what is done, never what is taken to be true.

Belongs here: where a record came from (``Source``, ``Provenance``, ``Tags``), arrays that carry it
along (``Tagged``), and the gate, the only maker of what a model of the world learns from.
Hands on: ``PrimaryBatch``, which a learner of a world model takes instead of arrays, and
``Projection``, which keeps the influence of others on a policy below a bound. Whether the gate is
tight is measured in ``evaluation.leakage``.
"""

from agent_gym.agents.gate.asymmetric import (
    AsymmetricGate,
    GateConfig,
    GateCounts,
    PrimaryBatch,
)
from agent_gym.agents.gate.projection import Projection, divergences, mix_logits
from agent_gym.agents.gate.provenance import Provenance, ProvenanceError, Source
from agent_gym.agents.gate.tagged import Tagged, aligned_tags, concat
from agent_gym.agents.gate.tags import Tags

__all__ = [
    "AsymmetricGate",
    "GateConfig",
    "GateCounts",
    "PrimaryBatch",
    "Projection",
    "Provenance",
    "ProvenanceError",
    "Source",
    "Tagged",
    "Tags",
    "aligned_tags",
    "concat",
    "divergences",
    "mix_logits",
]
