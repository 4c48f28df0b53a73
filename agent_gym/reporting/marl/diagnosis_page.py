"""The diagnosis as a page: is each idea alive, figure by figure?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from agent_gym.reporting.marl.words import OVER_TIME
from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates.words import figure, table

HEADS = ("figure", "found", "over seeds, 95 %", "bound", "seeds", "")
ABOUT = {
    "leaks": "rows of auxiliary teams in what the model of the world learned from",
    "canary": "numbers of the model that change if auxiliary teams met garbage",
    "canary_notices_forgery": "the same, if garbage is passed off as the primary team's",
    "model_r2": 'share of the error of "nothing changes" that forecasts of held-out battles save',
    "information_start": "information of a step in nats, largest of iterations 2 to 5",
    "information_fall": "by which share it has fallen in the last five iterations",
    "information_least": "the smallest that any step had",
    "calibration": "rank correlation of a step's information with what learning it took off the "
    "model's surprise, mean over iterations",
    "noise_share": "share of the information that two columns of pure noise get, last iterations",
    "bonus_ratio": "spread of the bonus's advantages over the reward's, in the first iteration",
    "bonus_ratio_fall": "by which share that ratio has fallen at the end",
    "sign_test": "whether a bonus on an arm of a bandit makes it likelier, for each arm",
    "cem_kl": "divergence of auxiliary teams from the primary one in nats, median",
    "cem_jsd": "divergence between auxiliary teams",
    "elite_gain": "return of the chosen teams less that of all, in battles played anew",
    "novelty_gain": "how much further auxiliary states lie from known ones than the primary's next",
    "coverage_gain": "how much wider states of auxiliary teams are spread, early in the training",
    "ess_auxiliary": "effective share of auxiliary rows, mean over iterations",
    "used_auxiliary": "share of auxiliary rows that the policy learned from",
    "gradient_cosine": "cosine of the gradients of fresh and of auxiliary rows, mean",
    "clip_fresh": "share of fresh rows that an update moves beyond the clip",
    "clip_auxiliary": "the same of auxiliary rows",
}
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


def _halves(document: Mapping[str, Any]) -> str:
    """Return what became of figures over time: means of both halves of the trainings."""
    rows = [
        (said, *(figure(_mean_of(document, name, late=late)) for late in (False, True)))
        for name, said in OVER_TIME.items()
    ]
    return (
        "A mean over a whole training can hide its end. Means over all seeds of the iterations of "
        "the first and of the second half:\n\n"
        + table(("told of every iteration", "first half", "second half"), rows)
    )


def _mean_of(document: Mapping[str, Any], name: str, *, late: bool) -> float | None:
    """Return the mean of what is told of every iteration, over half of each seed's training."""
    values = []
    for report in document["reports"]:
        told = report["iterations"]
        middle = len(told) // 2
        half = told[middle:] if late else told[:middle]
        values += [row[name] for row in half if row[name] is not None]
    return sum(values) / len(values) if values else None


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
        table(("figure", "what it is"), [(f"`{name}`", ABOUT.get(name, "")) for name in found]),
        _halves(document),
        "A figure is a mean over seeds, and *seeds* says in how many the bound holds by itself. "
        "Where a single seed can spoil it (leaks, the canary, signs, information below 0) all must "
        "hold; where luck alone could show a gain (the elites') the interval must, not the mean. "
        "What was never seen keeps no bound. *Shown*: the interval over seeds keeps the bound; "
        "*on average*: the mean does, but the interval reaches across; *by construction*: AMAL "
        "sets this figure itself, so it says that the machine works and no more.",
        f"    {document['manifest']['command']}",
    ]
    return "\n\n".join(parts) + "\n"
