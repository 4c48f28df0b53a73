"""What the trader prefers: a Gaussian of outcomes, which is a mean-variance utility.

Minus the expected log of N(m*, s*^2) is, but for a constant, ``-beta (mu - gamma/2 (var + mu^2))``
with ``gamma = 1/m*`` and ``beta = m*/s*^2``. So a preferred mean of 1 is full Kelly, 0.25 a quarter
of it, and beta says how many nats one unit of return is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.agents.information.mixtures import LN_2PI
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray

FLOOR_SHARE = 0.1
BASIS_POINT = 1e-4


@dataclass(frozen=True, slots=True)
class Preference:
    """The preferred distribution of one bar's return on equity.

    Attributes:
        mean: m*, the share of Kelly's position that is wanted.
        deviation: s*, above 0.

    Example:
        >>> wanted = Preference.of_kelly(kelly_fraction=0.25, bar_sigma=0.006)
        >>> round(wanted.risk_aversion, 9), round(wanted.nats_per_return, 6)
        (4.0, 166.666667)
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        for name in ("mean", "deviation"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(
                    f"the {name} of a preference is a number above 0",
                    where="Preference",
                    found=value,
                    remedy="A mean of 0 would mean that no gain is worth any risk",
                )

    @classmethod
    def of_kelly(cls, kelly_fraction: float, bar_sigma: float) -> Preference:
        """Return the preference by which one bar's deviation of return is worth one nat."""
        if not (math.isfinite(bar_sigma) and bar_sigma > 0.0 and kelly_fraction > 0.0):
            raise ConfigError(
                "a preference takes a Kelly fraction and a deviation above 0",
                where="Preference.of_kelly",
                found=f"{kelly_fraction} and {bar_sigma}",
            )
        return cls(kelly_fraction, math.sqrt(kelly_fraction * bar_sigma))

    @property
    def risk_aversion(self) -> float:
        """Return gamma: how many units of mean one unit of variance is worth, times 2."""
        return 1.0 / self.mean

    @property
    def nats_per_return(self) -> float:
        """Return beta: what one unit of return is worth in nats."""
        return self.mean / self.deviation**2

    def nats(self, basis_points: float) -> float:
        """Return what a return in basis points is worth in nats."""
        return basis_points * BASIS_POINT * self.nats_per_return

    def cost(self, mean: ArrayLike, variance: ArrayLike) -> FloatArray:
        """Return minus the expected log of the preferred density, exact for every distribution.

        Only its mean and variance matter, because the log of a Gaussian is a square.
        """
        mu, var = (np.asarray(part, np.float64) for part in (mean, variance))
        utility = mu - 0.5 * self.risk_aversion * (var + mu * mu)
        flat = 0.5 * (LN_2PI + (self.mean / self.deviation) ** 2) + math.log(self.deviation)
        cost: FloatArray = flat - self.nats_per_return * utility
        return cost


def outcome_floor(bar_sigma: float) -> float:
    """Return s0, the deviation of the noise that every outcome carries, whatever the action.

    An outcome without a position is a sure thing. Its entropy is minus infinity, so any KL to a
    preference is infinite and every doubt pays for itself. A tenth of a bar's deviation, the same
    for all actions, makes the flat position comparable with the rest and favours none.
    """
    return FLOOR_SHARE * bar_sigma


def trading_cost(target: ArrayLike, before: float, cost_bp: float) -> FloatArray:
    """Return what a change of position costs, as a return on equity.

    Example:
        >>> trading_cost([-1.0, 0.0, 0.5], before=0.5, cost_bp=10.0).tolist()
        [0.0015, 0.0005, 0.0]
    """
    moved: FloatArray = np.abs(np.asarray(target, np.float64) - before)
    return moved * cost_bp * BASIS_POINT
