"""How real a market looks: stylised facts in their bands, classifiers, and a search for money.

Hands on: ``measure`` for a whole report, and its parts: ``facts_of``, ``published_bands``,
``bootstrap_bands``, ``auc``, ``probe``, ``strongest_edge``. What cannot be measured is None with a
reason, never 0.
"""

from agent_gym.evaluation.realism.bands import (
    Band,
    Bands,
    bootstrap_bands,
    published_bands,
    published_days,
)
from agent_gym.evaluation.realism.classifier import auc, halves_auc, sample
from agent_gym.evaluation.realism.edge import Edge, ProbeRow, strongest_edge
from agent_gym.evaluation.realism.facts import Fact, facts_of
from agent_gym.evaluation.realism.probe import probe
from agent_gym.evaluation.realism.report import FactRow, RealismReport, measure

__all__ = [
    "Band",
    "Bands",
    "Edge",
    "Fact",
    "FactRow",
    "ProbeRow",
    "RealismReport",
    "auc",
    "bootstrap_bands",
    "facts_of",
    "halves_auc",
    "measure",
    "probe",
    "published_bands",
    "published_days",
    "sample",
    "strongest_edge",
]
