"""One trained team as a comparison sees it: looks at it, and its wins from fresh starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import wilson

KIND = "training of a team"
DENSE = "dense"


class Seen(NamedTuple):
    """A look: greedy episodes after so many steps of all environments."""

    env_steps: int
    wins: int
    episodes: int

    @property
    def win_rate(self) -> float:
        """Return the share that was won."""
        return self.wins / self.episodes


@dataclass(frozen=True, slots=True)
class TeamRun:
    """One seed of one arm on one task.

    Attributes:
        task: The battle and what it pays.
        arm: What was done.
        seed: Its seed.
        env_steps: Steps that were played, those of auxiliary teams included.
        budget: Steps that might have been.
        curve: The looks.
        wins: Greedy wins from fresh starts, after the last step.
        episodes: How many fresh starts there were.
        best_steps: Steps up to the look that was best; None if nobody kept its team.
        best_wins: Wins of that team from the same fresh starts.
        auxiliary_share: Share of all steps that auxiliary teams took; None if nobody told.
        bonus_weight: What the information bonus counted, mean over iterations; None likewise.
        model_hash: Which policy that was.
        config_hash: What it was made by.
        command: The command that makes it again.
    """

    task: str
    arm: str
    seed: int
    env_steps: int
    budget: int
    curve: tuple[Seen, ...]
    wins: int
    episodes: int
    model_hash: str
    config_hash: str
    command: str
    best_steps: int | None = None
    best_wins: int | None = None
    auxiliary_share: float | None = None
    bonus_weight: float | None = None

    @property
    def final(self) -> float:
        """Return the share of fresh starts that was won."""
        return self.wins / self.episodes

    @property
    def best(self) -> float | None:
        """Return the share of fresh starts that the team of the best look won, if it was kept."""
        return None if self.best_wins is None else self.best_wins / self.episodes

    @property
    def end(self) -> int:
        """Return until when something is known of it; what stopped early stays as it was."""
        return max(self.env_steps, self.budget)

    def reached(self, win_rate: float, until: int) -> tuple[int, bool]:
        """Return the first look with such a win rate and True, else how long it was waited for."""
        seen = [look for look in self.curve if look.env_steps <= until]
        for look in seen:
            if look.win_rate >= win_rate:
                return look.env_steps, True
        return (seen[-1].env_steps if seen else until), False

    def win_rates(self, steps: ArrayLike) -> FloatArray:
        """Return the win rate after so many steps: straight between looks, 0 at the beginning.

        After the last look it stays; that is asked for only where a training has stopped early.
        """
        at = [0.0, *(float(look.env_steps) for look in self.curve)]
        rates = [0.0, *(look.win_rate for look in self.curve)]
        found: FloatArray = np.interp(np.asarray(steps, dtype=np.float64), at, rates)
        return found

    def area(self, until: int) -> float:
        """Return the mean win rate over all steps up to one.

        Example:
            >>> looks = (Seen(50, 5, 10), Seen(100, 10, 10))
            >>> TeamRun("3m", "mappo", 0, 100, 100, looks, 1, 1, "", "", "").area(100)
            0.5
        """
        inner = [float(look.env_steps) for look in self.curve if look.env_steps < until]
        at = np.array([0.0, *inner, float(until)])
        return float(np.trapezoid(self.win_rates(at), at)) / until

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "task": self.task,
            "arm": self.arm,
            "seed": self.seed,
            "env_steps": self.env_steps,
            "budget": self.budget,
            "curve": [list(look) for look in self.curve],
            "wins": self.wins,
            "episodes": self.episodes,
            "win_rate": wilson(self.wins, self.episodes).as_dict(),
            "best_steps": self.best_steps,
            "best_wins": self.best_wins,
            "auxiliary_share": self.auxiliary_share,
            "bonus_weight": self.bonus_weight,
            "model_hash": self.model_hash,
            "config_hash": self.config_hash,
            "command": self.command,
        }


def run_of(document: Mapping[str, Any], arm: str | None = None) -> TeamRun:
    """Return what a comparison needs of the record that a training leaves.

    Args:
        document: ``training.json`` as plain values.
        arm: What it is called; by default its algorithm.
    """
    try:
        if document["kind"] != KIND:
            raise DataError("this is no training of a team", found=document["kind"], expected=KIND)
        made, final = document["manifest"], document["final"]
        config, best = made["config"], document.get("best", {})
        return TeamRun(
            task=task_name(config["world"]["map"], config["world"]["reward"]),
            arm=arm or document["algorithm"],
            seed=config["seed"],
            env_steps=document["env_steps"],
            budget=config["env_steps"],
            curve=tuple(Seen(r["env_steps"], r["wins"], r["episodes"]) for r in document["curve"]),
            wins=final["wins"],
            episodes=final["episodes"],
            model_hash=document["model_hash"],
            config_hash=made["config_hash"],
            command=made["command"],
            best_steps=best.get("env_steps"),
            best_wins=best.get("wins"),
            **_spent(document.get("amal", ())),
        )
    except (KeyError, TypeError) as error:
        raise DataError("a record of a training is not whole", found=str(error)) from error


def _spent(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return what AMAL spent, from its figures of every iteration; nothing if it did not join."""
    if not rows:
        return {}
    weights = [row["lambda_info"] for row in rows]
    share = rows[-1]["auxiliary_share"]  # of all steps so far
    return {"auxiliary_share": share, "bonus_weight": sum(weights) / len(weights)}


def kept_run(document: Mapping[str, Any]) -> TeamRun:
    """Return the run that ``as_dict`` described."""
    try:
        names = {field.name for field in fields(TeamRun)} & set(document)
        plain = {name: document[name] for name in names}
        return TeamRun(**plain | {"curve": tuple(Seen(*look) for look in document["curve"])})
    except (KeyError, TypeError) as error:
        raise DataError("a kept run is not whole", found=str(error)) from error


def task_name(battle: str, reward: str) -> str:
    """Return what a battle is called with what it pays.

    Example:
        >>> task_name("3m", "dense"), task_name("3m", "kills")
        ('3m', '3m:kills')
    """
    return battle if reward == DENSE else f"{battle}:{reward}"


def horizon(runs: Sequence[TeamRun]) -> int:
    """Return until when runs of a task are judged: the end of those with the smallest budget.

    A training ends with the iteration in which its last step falls, so some end a little later than
    others. The last look counts for all of them; what has ended before stays as it was.
    """
    if not runs:
        raise DataError("there is nothing to compare", found="no runs")
    least = min(run.budget for run in runs)
    return max(run.end for run in runs if run.budget == least)


def by_task(runs: Iterable[TeamRun]) -> dict[str, dict[str, dict[int, TeamRun]]]:
    """Return runs by task, arm and seed, in the order in which they came; none may come twice."""
    found: dict[str, dict[str, dict[int, TeamRun]]] = {}
    for run in runs:
        own = found.setdefault(run.task, {}).setdefault(run.arm, {})
        if run.seed in own:
            raise DataError(
                "a seed comes twice",
                where=f"{run.task}, {run.arm}, seed {run.seed}",
                remedy="Name each folder once; --renew takes what is named last",
            )
        own[run.seed] = run
    return found
