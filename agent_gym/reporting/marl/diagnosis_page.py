"""The diagnosis as a page: is each idea alive, figure by figure?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates.words import figure, table

HEADS = ("figure", "found", "over seeds, 95 %", "bound", "seeds", "")
GIVEN = ("bonus_ratio", "cem_kl", "information_least", "sign_test")
"""Held by how AMAL is built: they tell that the machine works, not that an idea does."""
MISSED, BUILT, SHOWN, AVERAGE = "**missed**", "by construction", "shown", "on average"


def missed_of(document: Mapping[str, Any]) -> list[str]:
    """Return the figures that miss their bound."""
    return [name for name, one in document["figures"].items() if not one["passed"]]


def mark_of(name: str, one: Mapping[str, Any]) -> str:
    """Return how a bound is held: by all of the interval over seeds, or by the mean alone."""
    if not one["passed"]:
        return MISSED
    if name in GIVEN:
        return BUILT
    ends = one["interval"]
    low, high = one["low"], one["high"]
    inside = ends is not None and (
        (low is None or ends[0] >= low) and (high is None or ends[1] <= high)
    )
    return SHOWN if inside else AVERAGE


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
    marks = {name: mark_of(name, one) for name, one in found.items()}
    counts = Counter(marks.values())
    answer = (
        f"{len(found) - len(missed)} of {many(len(found), 'bound')} hold: {counts[SHOWN]} with the "
        f"whole interval over seeds, {counts[AVERAGE]} on average alone, {counts[BUILT]} by "
        "construction."
    )
    if missed:
        answer += f" Missed: {', '.join(f'`{name}`' for name in missed)}."
    rows = [[f"`{name}`", *figure_row(name, one)[1:], marks[name]] for name, one in found.items()]
    parts = [
        "# Teams: is each idea of AMAL alive?",
        answer,
        f"![Every figure beside its bound]({picture})",
        table(HEADS, rows),
        "A figure is a mean over seeds, and *seeds* says in how many the bound holds by itself. "
        "Where a single seed can spoil it (leaks, the canary, signs, information below 0) all must "
        "hold. What was never seen keeps no bound. *Shown*: the interval over seeds keeps the "
        "bound; *on average*: the mean does, but the interval reaches across; *by construction*: "
        "AMAL sets this figure itself, so it says that the machine works and no more.",
        f"    {document['manifest']['command']}",
    ]
    return "\n\n".join(parts) + "\n"
