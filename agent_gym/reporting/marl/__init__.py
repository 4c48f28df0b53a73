"""Pages about teams: who wins how soon, what each part is worth, whether each idea is alive.

Belongs here: tables in Markdown, pictures in SVG, and the writing of all three files of a study.
May import: core, evaluation, and the parts that all pages share.
Hands on: ``write_comparison``, ``write_ablation``, ``write_diagnosis``, and rows for a terminal.
"""

from agent_gym.reporting.marl.diagnosis_page import figure_row, mark_of, missed_of
from agent_gym.reporting.marl.words import (
    arm_row,
    difference_row,
    idle_words,
    ratio_row,
    verdict_words,
)
from agent_gym.reporting.marl.writing import (
    ABLATION,
    COMPARISON,
    DIAGNOSIS,
    places,
    write_ablation,
    write_comparison,
    write_diagnosis,
)

__all__ = [
    "ABLATION",
    "COMPARISON",
    "DIAGNOSIS",
    "arm_row",
    "difference_row",
    "figure_row",
    "idle_words",
    "mark_of",
    "missed_of",
    "places",
    "ratio_row",
    "verdict_words",
    "write_ablation",
    "write_comparison",
    "write_diagnosis",
]
