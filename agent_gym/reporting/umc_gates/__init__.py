"""The pages of UMC's acceptance gates and of its ablation, made from their JSON documents.

Belongs here: tables in Markdown, pictures in SVG, and the writing of all three files.
May import: core, and the parts that all pages share.
Hands on: ``write_gates`` and ``write_ablation``, and the words that a terminal shows too.
"""

from agent_gym.reporting.umc_gates.ablation_page import LATER, optional_words
from agent_gym.reporting.umc_gates.writing import (
    ABLATION,
    GATES,
    places,
    write_ablation,
    write_gates,
)

__all__ = [
    "ABLATION",
    "GATES",
    "LATER",
    "optional_words",
    "places",
    "write_ablation",
    "write_gates",
]
