"""One figure of a gate, held against its bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, bootstrap_interval
from agent_gym.evaluation.umc.bounds import BOUNDS, Bound

OVER_SEEDS, RANGE = "95 % over seeds", "least and most over seeds"
REPS = 5_000


@dataclass(frozen=True, slots=True)
class GateFigure:
    """A figure, its interval, its bound, and whether it passes.

    Attributes:
        value: What was measured; None if the agent failed.
        low: Low end of the interval.
        high: High end.
        bound: What is asked for.
        seeds: How many paths it comes from.
        interval: What kind of interval it is.
        words: What else is to be said.
    """

    value: float | None
    low: float | None
    high: float | None
    bound: Bound
    seeds: int
    interval: str = OVER_SEEDS
    words: str = ""

    @property
    def passed(self) -> bool | None:
        """Say whether it passes; None where it is only shown."""
        if self.bound.rule == "shown only":
            return None
        if self.value is None:
            return False
        return self.bound.holds(self.value, self.low, self.high)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        bound = self.bound
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "bound": bound.value,
            "passed": self.passed,
            "rule": bound.rule,
            "unit": bound.unit,
            "what": bound.what,
            "seeds": self.seeds,
            "interval": self.interval,
            "words": self.words,
        }


def measured(name: str, found: Interval, seeds: int, words: str = "") -> GateFigure:
    """Return a figure with an interval over seeds."""
    kind = f"{100 * found.level:.4g} % over seeds"
    return GateFigure(found.estimate, found.low, found.high, BOUNDS[name], seeds, kind, words)


def ratio(name: str, parts: tuple[FloatArray, FloatArray], seeds: Seeds, words: str) -> GateFigure:
    """Return the ratio of two means, paired over seeds; resampled seeds tell its interval.

    Where some resample has nothing below the line there is no interval, and a bound on one fails.
    """
    top, bottom = parts
    name_bound, count = BOUNDS[name], int(top.size)
    value = float(top.mean() / bottom.mean())
    try:
        found = bootstrap_interval(_mean_ratio, [top, bottom], seeds, reps=REPS, block=1.0)
    except DataError:
        return GateFigure(
            value, None, None, name_bound, count, "none: not defined on every resample", words
        )
    return measured(name, found, count, words)


def _mean_ratio(top: FloatArray, bottom: FloatArray) -> float | None:
    below = float(bottom.mean())
    return float(top.mean()) / below if below > 0.0 else None


def worst(name: str, values: list[float], words: str = "") -> GateFigure:
    """Return a figure whose largest value over seeds must hold."""
    return GateFigure(
        max(values), min(values), max(values), BOUNDS[name], len(values), RANGE, words
    )


def counted(name: str, count: float, seeds: int, words: str = "") -> GateFigure:
    """Return a count; where the bound names no number, all seeds are asked for."""
    bound = BOUNDS[name]
    if bound.value is None:
        bound = replace(bound, value=float(seeds))
    return GateFigure(float(count), None, None, bound, seeds, "none", words)


def failed(name: str, seeds: int, words: str) -> GateFigure:
    """Return the figure of an agent that failed."""
    return GateFigure(None, None, None, BOUNDS[name], seeds, "none", words)
