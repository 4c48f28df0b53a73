"""The ablation as a page: what does nothing, then every difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.reporting.marl.words import (
    DIFFERENCE_HEADS,
    SHORT,
    difference_row,
    idle_words,
    percent_interval,
    power_words,
    time_words,
)
from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates.words import table

ARM_HEADS = ("task", "arm", "seeds", "final wins", "mean over steps", "steps to 80 %")


def ablation_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    found = document["comparisons"]
    sure = sum(one["shown"] for one in found)
    parts = [
        "# Teams: what each part is worth",
        f"{sure} of {many(len(found), 'difference')} to `{document['reference']}` can be told from "
        f"nothing. {power_words(document)}",
        idle_words(document),
        f"![Differences]({picture})",
        "## Differences",
        table(DIFFERENCE_HEADS, [difference_row(one) for one in found]),
        "## The arms",
        table(("arm", "what differs"), _arms(document)),
        "## What each arm reached",
        table(ARM_HEADS, _reached(document)),
        _reading(document),
    ]
    return "\n\n".join(parts) + "\n"


def _arms(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(f"`{name}`", about) for name, about in document["arms"].items()]


def _reached(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            task,
            f"`{arm}`",
            str(len(own["seeds"])),
            percent_interval(own["final"]),
            percent_interval(own["area"]),
            time_words(own["steps_to"]["0.8"]),
        )
        for task, arms in document["figures"].items()
        for arm, own in arms.items()
    ]


def _reading(document: Mapping[str, Any]) -> str:
    metrics = "; ".join(f"*{SHORT[name]}*: {text}" for name, text in document["metrics"].items())
    return (
        "## How to read this\n\n"
        "All arms of a seed begin with the same networks and starts, so differences are paired. "
        "Shares differ in points of per cent, steps in natural logarithms (+0.10 is about a tenth "
        "more). Intervals are of the mean over seeds; p-values come from flipping signs and hold "
        "for all differences of a figure together (Holm). A difference counts where its interval "
        f"leaves out 0 and that p-value is below .05. {metrics}.\n\n"
        f"    {document['manifest']['command']}"
    )
