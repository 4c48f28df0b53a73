"""What an action brings: y = f r - cost + e, and what the bar shows to whoever looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.agents.information.mixtures import Mixture, row_mixture
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

RETURN = 0
"""The dimension of an observation that is the return of the bar."""


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """The next observation, by hidden state and by head.

    Attributes:
        seen: What the bar will show, its return first. Leading axes are there only if what is seen
            depends on the action, as it does in a market that the own orders move.
        states: Which hidden state each component belongs to.
        heads: Which head (which guess of the parameters) it belongs to.
    """

    seen: Mixture
    states: NDArray[np.int64]
    heads: NDArray[np.int64]

    @classmethod
    def of_returns(cls, belief: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> Market:
        """Return a market of which only the return is seen.

        Args:
            belief: Chances of the hidden states, the same for all heads, or one row a head.
            mean: Return of the next bar, ``(..., heads, states)``.
            variance: Its variance, likewise.
        """
        means, variances = (np.asarray(part, np.float64) for part in (mean, variance))
        if means.ndim < 2 or means.shape != variances.shape:
            raise DataError(
                "means and variances have one shape",
                where="Market.of_returns",
                found=f"{means.shape} and {variances.shape}",
                expected="(..., heads, states)",
            )
        heads, states = means.shape[-2:]
        weight = np.broadcast_to(np.asarray(belief, np.float64), (heads, states)) / heads
        flat = (*means.shape[:-2], heads * states)
        return cls(
            row_mixture(weight.ravel(), means.reshape(flat), variances.reshape(flat)),
            np.tile(np.arange(states), heads),
            np.repeat(np.arange(heads), states),
        )

    @classmethod
    def of_heads(cls, mean: ArrayLike, variance: ArrayLike) -> Market:
        """Return a market that is told by heads alone, as a tier's forecasts tell it."""
        means, variances = (np.asarray(part, np.float64) for part in (mean, variance))
        return cls.of_returns([1.0], means[..., None], variances[..., None])


@dataclass(frozen=True, slots=True, eq=False)
class Actions:
    """Positions to choose from.

    Attributes:
        target: Position after the trade, as a fraction of equity.
        cost: What the trade is expected to cost, as a return on equity.
        floor: Deviation of the noise of every outcome; see ``outcome_floor``.
        cost_variance: How unsure the cost is; 0 where it is a fixed fee.
    """

    target: FloatArray
    cost: FloatArray
    floor: float
    cost_variance: FloatArray | float = 0.0

    def __post_init__(self) -> None:
        if self.target.ndim != 1 or self.target.shape != self.cost.shape or not self.target.size:
            raise DataError(
                "every action has one target and one cost",
                where="Actions",
                found=f"{self.target.shape} and {self.cost.shape}",
            )
        if not self.floor > 0.0:
            raise DataError(
                "the noise of an outcome is above 0",
                where="Actions.floor",
                found=self.floor,
                remedy="Take outcome_floor(bar_sigma)",
            )


def outcome(actions: Actions, market: Market) -> Mixture:
    """Return the distribution of y under each action; the weights are those of the market."""
    mean, variance = market.seen.mean[..., RETURN], market.seen.variance[..., RETURN]
    if mean.ndim > 2 or (mean.ndim == 2 and mean.shape[0] != actions.target.size):
        raise DataError(
            "a market that depends on the action has one row an action",
            found=mean.shape[:-1],
            expected=(actions.target.size,),
        )
    target = actions.target[:, None]
    noise = actions.floor**2 + np.broadcast_to(actions.cost_variance, actions.target.shape)
    return row_mixture(
        market.seen.weight,
        target * mean - actions.cost[:, None],
        target * target * variance + noise[:, None],
    )
