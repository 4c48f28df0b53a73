"""The diagnosis as a page: is each idea alive, figure by figure?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates.words import figure, table

HEADS = ("figure", "found", "over seeds, 95 %", "bound", "seeds", "")
MARKS = {True: "passed", False: "**missed**"}


def missed_of(document: Mapping[str, Any]) -> list[str]:
    """Return the figures that miss their bound."""
    return [name for name, one in document["figures"].items() if not one["passed"]]


def figure_row(name: str, one: Mapping[str, Any]) -> list[str]:
    """Return the row of a figure, at a terminal and on a page."""
    ends = one["interval"]
    return [
        name,
        figure(one["value"]),
        "-" if ends is None else f"{figure(ends[0])} to {figure(ends[1])}",
        one["bound"],
        f"{one['seeds_passed']} of {one['seeds']}",
    ]


def diagnosis_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    found = document["figures"]
    missed = missed_of(document)
    answer = f"{len(found) - len(missed)} of {many(len(found), 'bound')} hold."
    if missed:
        answer += f" Missed: {', '.join(f'`{name}`' for name in missed)}."
    rows = [
        [f"`{name}`", *figure_row(name, one)[1:], MARKS[one["passed"]]]
        for name, one in found.items()
    ]
    parts = [
        "# Teams: is each idea of AMAL alive?",
        answer,
        f"![Every figure beside its bound]({picture})",
        table(HEADS, rows),
        "A figure is a mean over seeds, and *seeds* says in how many the bound holds by itself. "
        "Where a single seed can spoil it (leaks, the canary, signs, information below 0) all must "
        "hold. What was never seen keeps no bound.",
        f"    {document['manifest']['command']}",
    ]
    return "\n\n".join(parts) + "\n"
