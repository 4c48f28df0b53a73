"""Figures of one arm on one task over its seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.marl.runs import TeamRun
from agent_gym.evaluation.statistics import (
    Interval,
    iqm,
    iqm_interval,
    kaplan_meier,
    wilson,
)
from agent_gym.evaluation.statistics.survival import Survival

AGREED = (0.8, 0.95)
"""Win rates whose first sight is timed; the first of them decides verdicts."""
POINTS = 50  # of a drawn curve
FEWEST = 2  # seeds that an interval takes


@dataclass(frozen=True, slots=True, eq=False)
class ArmFigures:
    """What an arm reached on a task, and when.

    Attributes:
        runs: Its seeds, in order.
        until: Steps by which it is judged.
        seeds: Where resamples come from.
    """

    runs: tuple[TeamRun, ...]
    until: int
    seeds: Seeds

    def over_seeds(self, figure: Callable[[TeamRun], float]) -> dict[str, Any]:
        """Return the interquartile mean of a figure over seeds, with its interval."""
        return summary([[figure(run)] for run in self.runs], self.seeds)

    def times(self, win_rate: float) -> tuple[list[int], list[bool]]:
        """Return when each seed first showed a win rate, and whether it did."""
        steps, seen = zip(*(run.reached(win_rate, self.until) for run in self.runs), strict=True)
        return list(steps), list(seen)

    def survival(self, win_rate: float) -> Survival:
        """Return the curve of the seeds that have not shown a win rate yet."""
        return kaplan_meier(*self.times(win_rate))

    def steps_to(self, win_rate: float) -> dict[str, Any]:
        """Return how long a win rate took, as censored data."""
        (times, seen), found = self.times(win_rate), self.survival(win_rate)
        return {
            "times": times,
            "seen": seen,
            "median": found.median().as_dict(),
            "restricted_mean": found.restricted_mean(float(self.until)),
            "restricted_to": self.until,
            "reached": found.n - found.censored,
            "not_reached": found.censored,
        }

    def curve(self) -> dict[str, list[float] | None]:
        """Return the interquartile mean of win rates after so many steps, and its band."""
        first = max(run.curve[0].env_steps if run.curve else self.until for run in self.runs)
        steps = np.unique(np.rint(np.linspace(min(first, self.until), self.until, POINTS)))
        rates = np.array([run.win_rates(steps) for run in self.runs])
        found = [summary(column[:, None], self.seeds) for column in rates.T]
        band = len(self.runs) >= FEWEST
        return {
            "env_steps": steps.tolist(),
            "middle": [one["estimate"] for one in found],
            "low": [one["low"] for one in found] if band else None,
            "high": [one["high"] for one in found] if band else None,
        }

    def best(self) -> dict[str, Any] | None:
        """Return what the teams of the best looks won; None if they were not kept."""
        found = [run.best for run in self.runs if run.best is not None]
        if len(found) < len(self.runs):
            return None
        return summary([[share] for share in found], self.seeds) | spread(found)

    def spent(self) -> dict[str, dict[str, float]] | None:
        """Return what AMAL spent on these seeds; None if one of them does not tell."""
        shares = [run.auxiliary_share for run in self.runs if run.auxiliary_share is not None]
        weights = [run.bonus_weight for run in self.runs if run.bonus_weight is not None]
        if min(len(shares), len(weights)) < len(self.runs):
            return None
        return {"auxiliary_share": extent(shares), "bonus_weight": extent(weights)}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        wins, episodes = sum(run.wins for run in self.runs), sum(r.episodes for r in self.runs)
        return {
            "seeds": [run.seed for run in self.runs],
            "final": self.over_seeds(lambda run: run.final),
            "episodes": wilson(wins, episodes).as_dict() | {"wins": wins, "episodes": episodes},
            **spread([run.final for run in self.runs]),
            "best": self.best(),
            "area": self.over_seeds(lambda run: run.area(self.until)),
            "steps_to": {str(rate): self.steps_to(rate) for rate in AGREED},
            "curve": self.curve(),
            "spent": self.spent(),
        }


def arm_figures(runs: Sequence[TeamRun], until: int, seeds: Seeds) -> ArmFigures:
    """Return the figures of one arm on one task."""
    if not runs:
        raise DataError("an arm has at least one seed", found="none")
    ordered = tuple(sorted(runs, key=lambda run: run.seed))
    return ArmFigures(ordered, until, seeds)


def extent(values: Sequence[float]) -> dict[str, float]:
    """Return the median, the smallest and the largest of all seeds.

    Example:
        >>> extent([0.3, 0.1, 0.2])
        {'median': 0.2, 'least': 0.1, 'most': 0.3}
    """
    return {"median": median(values), "least": min(values), "most": max(values)}


def spread(shares: Sequence[float]) -> dict[str, Any]:
    """Return the worst of all seeds, and how many reach each of the agreed win rates.

    Example:
        >>> spread([0.7, 0.9, 0.99])
        {'worst_seed': 0.7, 'seeds_above': {'0.8': 2, '0.95': 1}}
    """
    above = {str(rate): sum(share >= rate for share in shares) for rate in AGREED}
    return {"worst_seed": min(shares), "seeds_above": above}


def summary(scores: Sequence[Sequence[float]] | FloatArray, seeds: Seeds) -> dict[str, Any]:
    """Return the interquartile mean of runs x tasks; a single run has no interval."""
    table = np.asarray(scores, dtype=np.float64)
    found: Interval | None = iqm_interval(table, seeds) if len(table) >= FEWEST else None
    return {
        "estimate": iqm(table),
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "mean": float(table.mean()),
    }
