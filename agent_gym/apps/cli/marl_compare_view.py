"""How a comparison of teams is shown at a terminal: a table a task, then the words for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agent_gym.apps.cli.output import table
from agent_gym.reporting.marl import (
    arm_row,
    difference_row,
    idle_words,
    ratio_row,
    verdict_words,
)
from agent_gym.reporting.marl.words import (
    ARM_HEADS,
    BRIEF,
    DIFFERENCE_HEADS,
    RATIO_HEADS,
    SPENT_HEADS,
    spent_rows,
)

Rows: TypeAlias = list[tuple[object, ...]]


def comparison_view(document: Mapping[str, Any]) -> RenderableType:
    """Return the tables and the verdicts."""
    parts: list[RenderableType] = []
    for name, task in document["tasks"].items():
        title = f"{name}, {task['until']:,} steps"
        rows: Rows = [
            _brief(arm_row(arm, own, document["cpu_s"][name])) for arm, own in task["arms"].items()
        ]
        parts.append(narrow(table(title, BRIEF, rows)))
        ratios: Rows = [tuple(ratio_row(one)) for one in task["ratios"]]
        if ratios:
            parts.append(narrow(table("Ratios of steps", RATIO_HEADS, ratios)))
        spent: Rows = [tuple(row) for row in spent_rows(task)]
        if spent:
            parts.append(narrow(table("What AMAL spent", SPENT_HEADS, spent)))
        parts += [Text(words, style="bold") for words in verdict_words(task)]
    return Group(*parts)


def _brief(row: Sequence[str]) -> tuple[object, ...]:
    whole = dict(zip(ARM_HEADS, row, strict=True))
    return tuple(whole[name] for name in BRIEF)


def ablation_view(document: Mapping[str, Any]) -> RenderableType:
    """Return the table of differences, and which parts change nothing."""
    rows: Rows = [tuple(difference_row(one)) for one in document["comparisons"]]
    title = f"Each arm less {document['reference']}"
    return Group(narrow(table(title, DIFFERENCE_HEADS, rows)), Text(idle_words(document)))


def narrow(made: Table) -> Table:
    """Return a table that takes little room."""
    made.box, made.show_edge, made.padding = box.SIMPLE_HEAD, False, (0, 1, 0, 0)
    return made
