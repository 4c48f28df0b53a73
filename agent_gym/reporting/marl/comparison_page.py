"""The comparison as a page: the answer first, then a picture and the tables of every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.reporting.marl.pictures import undrawn
from agent_gym.reporting.marl.words import (
    ARM_HEADS,
    RATIO_HEADS,
    SPENT_HEADS,
    arm_row,
    look_words,
    percent_interval,
    ratio_row,
    seeds_words,
    spent_rows,
    verdict_words,
)
from agent_gym.reporting.text import DASH
from agent_gym.reporting.umc_gates.words import table

SPENT = "### What AMAL spent"
OPTIONAL = {"*Best look*": "| best look |", "*What AMAL spent*": SPENT}
"""Points of the reading, and what is on a page that needs them."""
READING = """## How to read this

- *Final wins*: greedy episodes from fresh starts after the last step, which no look has used. The
  figure is the interquartile mean over seeds, with a 95 % interval from seeds that are resampled
  within each task. *Worst seed* hides nothing.
- *Best look*: the same fresh starts, won by the team of that look which won most of its own starts
  (of equals the latest); at each look the team as it is and its mean over the last steps are seen
  (`evaluation.mean_over`). It is picked by looks alone, and judged where nothing was picked.
- *Mean over steps*: the area under the curve of greedy looks, all steps counted, those of
  auxiliary teams and of their selection included. It begins at 0 and is straight between looks; a
  training that stopped early stays where it was.
- *Steps to 80 % and 95 %*: the first look that shows it, as censored data: median by Kaplan and
  Meier with the interval of Brookmeyer and Crowley; `?` is an end that it does not have. "8 of
  10" says how many seeds got there in time; without a median fewer than half did. A look has few
  episodes and looks are some thousand steps apart, so times are no finer than that, and a ratio of
  two early ones is coarse.
- *Ratio*: steps of the same seed under two algorithms, on the logarithmic scale; the mean of the
  middle half of all pairs, with a 95 % interval from resampled pairs (moved outwards for their
  small number). A pair of which one side did not get there is open at that end and nothing is
  filled in: *above* means that the first did not, *below* that the second did not.
- *Verdicts*, fixed before there were figures: an algorithm **matches** MAPPO if the upper end is
  below 1.15, and **beats** it if the upper end is below 1 against MAPPO and against MAPPO with
  reuse of samples. All else is *not shown*, fewer than 10 pairs included. Where `mappo-short` was
  played, MAPPO in the short windows of `mappo-reuse`, both must hold against it too; this was added
  later, and makes either word harder to get.
- *What AMAL spent*: the share of all steps that auxiliary teams and their selection took, and the
  weight of the information bonus as a mean over iterations: median over seeds, and the smallest
  and the largest seed. All these steps are counted above.
- Win rates hold for this engine alone and are never compared with those of another. Every seed is
  in the JSON file.
"""


def comparison_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    parts = ["# Teams: who wins, and how soon", _answer(document), f"![Win rates]({picture})"]
    parts += [f"*{words}*" for words in undrawn(document)]
    for name, task in document["tasks"].items():
        rows = [arm_row(arm, own, document["cpu_s"][name]) for arm, own in task["arms"].items()]
        judged = f"Judged up to {task['until']:,} steps. {look_words(name, document['runs'])}"
        parts += [f"## {name}", judged.rstrip(), table(*_told(ARM_HEADS, rows))]
        if task["ratios"]:
            parts.append(table(RATIO_HEADS, [ratio_row(one) for one in task["ratios"]]))
        spent = spent_rows(task)
        if spent:
            parts += [SPENT, table(SPENT_HEADS, spent)]
    if document["overall"]:
        rows = [
            [arm, percent_interval(own["final"]), percent_interval(own["area"])]
            for arm, own in document["overall"].items()
        ]
        parts += [
            "## All tasks together",
            table(("algorithm", "final wins", "mean over steps"), rows),
        ]
    parts += [_reading("\n".join(parts)) + f"\n    {document['manifest']['command']}"]
    return "\n\n".join(parts) + "\n"


def _reading(text: str) -> str:
    """Return how to read a page; what is not on it is not explained."""
    first, *points = READING.split("\n- ")
    absent = tuple(name for name, sign in OPTIONAL.items() if sign not in text)
    return "\n- ".join([first, *(point for point in points if not point.startswith(absent))])


def _told(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return a table without the columns in which nothing stands."""
    kept = [at for at in range(len(heads)) if any(row[at] != DASH for row in rows)]
    return [heads[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _answer(document: Mapping[str, Any]) -> str:
    lines = []
    for name, task in document["tasks"].items():
        lines.append(f"- **{name}**")
        lines += [f"    - {arm}: {seeds_words(own)}." for arm, own in task["arms"].items()]
        lines += [f"    - {words}" for words in verdict_words(task)]
    return "\n".join(lines)
