"""The gates that every agent must pass on a market in which there is nothing to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binom, t

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, seeds_interval

SURE = 0.95
RARE = 0.02
ENOUGH = 20  # seeds; of fewer a bootstrap leaves out the truth far too often
LEAST_NET_BP = -0.3
NOTHING_BP = 0.01  # rounding, and what a position drifts by: no agent lives on that


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: passed or not, and the figures behind it in words."""

    name: Literal["A", "B"]
    passed: bool
    why: str
    figures: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the gate as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class NullRuns:
    """What an agent did on a null, one number a seed.

    Attributes:
        gross_bp: Gross a bar.
        net_bp: Net a bar.
        exposure: Mean value held as a fraction of equity, with its sign.
        market_bp: Mean return of the market a bar.
        psr: Probability that the true Sharpe ratio is above 0; None where nothing varied.
    """

    gross_bp: FloatArray
    net_bp: FloatArray
    exposure: FloatArray
    market_bp: FloatArray
    psr: Sequence[float | None]

    @property
    def timing_bp(self) -> FloatArray:
        """Return the gross less what the agent's usual exposure would have earned on the path.

        The paths of a few seeds may all rise, and whoever is long then earns without knowing
        anything. The exposure is the mean over all seeds, so one who is long on just those paths
        that will rise is not excused.
        """
        timing: FloatArray = self.gross_bp - self.exposure.mean() * self.market_bp
        return timing


def gate_a(runs: NullRuns, seeds: Seeds, level: float) -> Gate:
    """Ask whether timing earned nothing before costs: else the agent saw what was to come.

    Args:
        runs: What it did.
        seeds: Of the bootstrap.
        level: Of the interval; higher if several agents are asked at once.
    """
    few = len(runs.timing_bp) < ENOUGH
    found = (
        _student(runs.timing_bp, level)
        if few
        else seeds_interval(runs.timing_bp, seeds, level=level)
    )
    passed = found.low <= NOTHING_BP and found.high >= -NOTHING_BP
    gross = _student(runs.gross_bp, level)
    words = _words("gross of timing", found) + f"; {_words('gross', gross)}"
    if found.low > NOTHING_BP:
        words += ": it earns where nothing can be known, so it looks ahead"
    elif not passed:
        words += ": it loses before costs where nothing can be known"
    figures = {"gross_bp": gross.estimate, "gross_low": gross.low, "gross_high": gross.high}
    return Gate("A", passed, words, found.as_dict() | figures)


def gate_b(runs: NullRuns, *, learns: bool) -> Gate:
    """Ask whether luck is not mistaken for skill, and whether one who learns learned to sit out.

    At most 3 of 20 seeds may have PSR above .95 (``most_lucky`` for other numbers). An agent that
    learns must also lose less than 0.3 bp a bar to costs; a fixed rule cannot know that there is
    nothing to trade for.
    """
    psr = runs.psr
    lucky = lucky_seeds(psr)
    most = most_lucky(len(psr))
    net = float(np.mean(runs.net_bp))
    sits_out = net >= LEAST_NET_BP
    words = f"{lucky} of {len(psr)} seeds with PSR above {SURE} (at most {most})"
    if learns:
        words += f", net {net:.2f} bp a bar (at least {LEAST_NET_BP})"
    figures = {"lucky": float(lucky), "most": float(most), "net_bp": net}
    return Gate("B", lucky <= most and (sits_out or not learns), words, figures)


def lucky_seeds(psr: Sequence[float | None]) -> int:
    """Return how many seeds look like skill: PSR above .95."""
    return sum(value is not None and value > SURE for value in psr)


def most_lucky(count: int) -> int:
    """Return how many of so many seeds chance may lift above .95: more come in 2 % of cases.

    Example:
        >>> [most_lucky(count) for count in (3, 20, 100)]
        [1, 3, 10]
    """
    return int(binom.isf(RARE, count, 1.0 - SURE))


def _student(values: FloatArray, level: float) -> Interval:
    """Return Student's interval of the mean: far out, a bootstrap of 20 seeds is too short."""
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return Interval(mean, mean, mean, level)
    reach = float(t.isf((1.0 - level) / 2.0, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - reach, mean + reach, level)


def _words(name: str, found: Interval) -> str:
    return (
        f"{name} {found.estimate:.2f} bp a bar ({found.low:.2f} to {found.high:.2f}, "
        f"{100 * found.level:.2f} %)"
    )
