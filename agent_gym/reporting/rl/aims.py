"""What the table of the lander is meant to hold, and what of it is still missing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from agent_gym.reporting.canvas import steps_text
from agent_gym.reporting.rl.verdict import LEAST_SEEDS
from agent_gym.reporting.text import many


class Aim(NamedTuple):
    """A return that a shipped config should reach, over at least five seeds."""

    algo: str
    config: str
    level: float
    steps: int | None = None


AIMS = (
    Aim("ppo", "lander-ppo", 250.0, 250_000),
    Aim("ppo", "lander-ppo-1m", 270.0, 1_000_000),
    Aim("a2c", "lander-a2c", 180.0),
    Aim("sac", "lander-sac", 260.0),
    Aim("td3", "lander-td3", 230.0),
)
NOTHING = "Nothing: every aim is reached with at least {least} seeds.\n"
COMPLETE = (
    "`{command}` trains what is not there and writes this page anew; finished runs are kept.\n"
)


def gaps(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is missing, a sentence each: algorithms without a row, seeds, aims not reached.

    Example:
        >>> gaps([])[2]
        'A2C (aim 180) has no row: `agent-gym train --config lander-a2c --seeds 5`.'
    """
    found = []
    for aim in AIMS:
        fitting = [row for row in rows if _fits(row, aim)]
        if not fitting:
            found.append(_no_row(aim))
        for row in fitting:
            found += _of_row(row, aim)
    return found


def missing_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the part of the page that says what is missing and which command brings it."""
    found = gaps(rows)
    lines = [f"- {text}" for text in found]
    body = "\n".join(lines) + "\n" if found else NOTHING.format(least=LEAST_SEEDS)
    aims = ", ".join(f"{_name(aim)} {aim.level:g}" for aim in AIMS)
    parts = [f"## What is missing\n\nThe aims are {aims}.\n", body]
    if found:
        parts.append(COMPLETE.format(command=completing(rows)))
    return "\n".join(parts)


def completing(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the command that completes the table with the learner that its rows have."""
    fast = any(row["learner"] == "sbx" for row in rows)
    return "make results" + (" LEARNER=sbx" if fast else "")


def _fits(row: Mapping[str, Any], aim: Aim) -> bool:
    return row["algo"] == aim.algo and aim.steps in (None, row["steps"])


def _name(aim: Aim) -> str:
    at = f" at {steps_text(aim.steps)}" if aim.steps else ""
    return f"{aim.algo.upper()}{at}"


def _no_row(aim: Aim) -> str:
    command = f"agent-gym train --config {aim.config} --seeds {LEAST_SEEDS}"
    return f"{_name(aim)} (aim {aim.level:g}) has no row: `{command}`."


def _of_row(row: Mapping[str, Any], aim: Aim) -> list[str]:
    title = f"{row['algo'].upper()}, {steps_text(row['steps'])}, {row['name']}"
    found = []
    if row["seeds"] < LEAST_SEEDS:
        found.append(
            f"{title} has {many(row['seeds'], 'seed')}, and {LEAST_SEEDS} are the least: "
            f"`{row['command']}`."
        )
    if row["iqm"] < aim.level:
        found.append(f"{title} misses its aim: {row['iqm']:.1f}, and {aim.level:g} is aimed at.")
    other = _changes(row["command"])
    if other and PurePath(row["folder"]).name == aim.config:
        found.append(
            f"{title} is of other settings than {aim.config} has now ({', '.join(other)}); "
            f"`agent-gym train --config {aim.config} --fresh` takes the new ones."
        )
    return found


def _changes(command: str) -> list[str]:
    """Return what a command sets besides the learner, which the shipped files leave open."""
    words = shlex.split(command)
    pairs = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    return [pair for pair in pairs if not pair.startswith("learner=")]
