"""What a trade will cost, learned from what trades did cost: a Bayesian regression of slippage.

Slippage in basis points is linear in (1, root of participation, volatility) with Gaussian noise;
half a spread is part of what is fixed. Belief is normal-inverse-gamma, so every answer is exact.
This is one place where an action changes what will be observed: a larger order costs more and says
more about impact.

The model does not ask where a fill comes from; whoever feeds it decides what may teach it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from scipy.special import digamma, gammaln, stdtrit

from agent_gym.agents.umc.linear import LinearBelief
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

INPUTS = ("one", "root_participation", "sigma_bp")
BASIS_POINT = 1e-4
LN_2PI = float(np.log(2.0 * np.pi))


class SlippagePrior(Config):
    """What is believed of slippage before the first fill."""

    fixed_bp: float = Field(
        default=0.0, description="slippage of a small order, half the spread in it"
    )
    fixed_deviation_bp: float = Field(default=1.0, gt=0, description="how unsure that is")
    impact_bp: float = Field(default=10.0, description="slippage at the whole volume of a bar")
    impact_deviation_bp: float = Field(default=20.0, gt=0, description="how unsure that is")
    sigma_share: float = Field(default=0.0, description="share of a bar's deviation that is paid")
    sigma_deviation: float = Field(default=0.05, gt=0, description="how unsure that is")
    noise_bp: float = Field(default=2.0, gt=0, description="deviation of one fill's slippage")
    noise_fills: float = Field(
        default=4.0, gt=2, description="how many fills the guess of the noise is worth"
    )

    def belief(self) -> SlippageBelief:
        """Return the belief that this prior is."""
        mean = np.array([self.fixed_bp, self.impact_bp, self.sigma_share])
        deviation = np.array(
            [
                self.fixed_deviation_bp,
                self.impact_deviation_bp,
                self.sigma_deviation,
            ]
        )
        precision = np.diag((self.noise_bp / deviation) ** 2)
        shape = 0.5 * self.noise_fills
        # So that the expected variance is noise_bp squared.
        scale = (shape - 1.0) * self.noise_bp**2
        return SlippageBelief.of(mean, precision, shape, scale)


@dataclass(frozen=True, slots=True, eq=False)
class SlippageBelief(LinearBelief):
    """What is believed of slippage, in basis points, after the fills so far."""

    def expected_cost_bp(self, inputs: ArrayLike) -> FloatArray:
        """Return the expected slippage of orders."""
        expected: FloatArray = np.asarray(inputs, np.float64) @ self.mean()
        return expected

    def predictive_deviation_bp(self, inputs: ArrayLike) -> FloatArray:
        """Return the deviation of one order's slippage: noise, and doubt about coefficients."""
        deviation: FloatArray = np.sqrt(self.noise_variance() * (1.0 + self.doubt(inputs)))
        return deviation

    def interval_bp(self, inputs: ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the interval that holds one order's slippage with a chance of ``level``."""
        if not 0.0 < level < 1.0:
            raise DataError("the level of an interval lies between 0 and 1", found=level)
        width = np.sqrt(self.scale() / self.shape * (1.0 + self.doubt(inputs)))
        reach = width * float(stdtrit(2.0 * self.shape, 0.5 + 0.5 * level))
        middle = self.expected_cost_bp(inputs)
        return middle - reach, middle + reach

    def information_gain(self, inputs: ArrayLike) -> FloatArray:
        """Return what one fill says about the coefficients, in nats, exactly.

        The doubt about the coefficients is a multiple of the noise, so the noise cancels.
        """
        gain: FloatArray = 0.5 * np.log1p(self.doubt(inputs))
        return gain

    def noise_information(self) -> float:
        """Return what one fill says about the size of the noise, in nats, exactly.

        It is the same for every order; with ``information_gain`` it is all that a fill teaches.
        """
        half = self.shape + 0.5
        student = (
            half * (digamma(half) - digamma(self.shape))
            + gammaln(self.shape)
            - gammaln(half)
            + 0.5 * np.log(np.pi)
        )
        # The entropy of the scale-free prediction, less that of the noise if its size were known.
        known = 0.5 * (LN_2PI + 1.0 - np.log(2.0) - digamma(self.shape))
        return float(student - known)


@dataclass(frozen=True, slots=True, eq=False)
class OrderPrices:
    """What the orders of several actions cost and teach.

    Attributes:
        cost: Expected slippage, as a return on equity.
        information: Nats about the coefficients and the noise; 0 without an order.
    """

    cost: FloatArray
    information: FloatArray


def order_inputs(participation: ArrayLike, sigma_bp: float) -> FloatArray:
    """Return rows of inputs for orders of several sizes, as shares of the bar's volume.

    Example:
        >>> order_inputs([0.0, 0.04], sigma_bp=60.0).tolist()
        [[1.0, 0.0, 60.0], [1.0, 0.2, 60.0]]
    """
    shares = np.asarray(participation, np.float64)
    if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise DataError("an order is at least 0 of the volume", found=shares.tolist())
    if not (math.isfinite(sigma_bp) and sigma_bp >= 0.0):
        raise DataError("sigma_bp is a number of at least 0", where="order", found=sigma_bp)
    ones = np.ones_like(shares)
    return np.stack([ones, np.sqrt(shares), sigma_bp * ones], axis=-1)


def price_orders(
    belief: SlippageBelief,
    change: FloatArray,
    equity_per_volume: float,
    sigma_bp: float,
) -> OrderPrices:
    """Return what changes of position cost and teach; no order costs and teaches nothing.

    Args:
        belief: About slippage.
        change: Of position, as fractions of equity, signed.
        equity_per_volume: Equity over the volume of a bar, in the same money.
        sigma_bp: Deviation of one bar's return now.
    """
    size: FloatArray = np.abs(change)
    rows = order_inputs(size * equity_per_volume, sigma_bp)
    taught = belief.information_gain(rows) + belief.noise_information()
    return OrderPrices(
        cost=size * BASIS_POINT * belief.expected_cost_bp(rows),
        information=np.where(size > 0.0, taught, 0.0),
    )
