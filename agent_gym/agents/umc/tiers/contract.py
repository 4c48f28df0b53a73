"""What every model of the market can do, whichever tier it belongs to.

A tier is fitted once on a past and then follows a series bar by bar. What it says about the next
bar it says as several heads: models that were fitted on resampled pasts. Where they agree the
market is known, where they do not only data could tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One row a bar; everything in a row is known at the close of its bar.

    Attributes:
        returns: Simple return of the bar, 0 for the first.
        expected_sigma: Deviation of its return as it was known before the bar; NaN for the first.
        sigma: Deviation of the next bar's return, by what is known at the close; never 0.
        inputs: One column an input, NaN where it is not known.
        names: What the inputs are called.
    """

    returns: FloatArray
    expected_sigma: FloatArray
    sigma: FloatArray
    inputs: FloatArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.returns.size)

    @property
    def standard(self) -> FloatArray:
        """Return the returns in their expected deviations, NaN where these are not known."""
        units: FloatArray = self.returns / self.expected_sigma
        return units

    def rows(self, start: int, stop: int) -> Series:
        """Return a part of the series, as views."""
        cut = slice(start, stop)
        return Series(
            returns=self.returns[cut],
            expected_sigma=self.expected_sigma[cut],
            sigma=self.sigma[cut],
            inputs=self.inputs[cut],
            names=self.names,
        )

    def beside(self, inputs: FloatArray, names: tuple[str, ...]) -> Series:
        """Return the series with more inputs behind its own."""
        return Series(
            returns=self.returns,
            expected_sigma=self.expected_sigma,
            sigma=self.sigma,
            inputs=np.column_stack([self.inputs, inputs]),
            names=(*self.names, *names),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Forecasts:
    """What a tier says at each close: one row a bar, one column a head.

    Attributes:
        chance: How far each head is believed; a row adds up to 1.
        mean: Expected return of the next bar.
        variance: Variance of the next bar's return.
        score: Log density that the forecast before had given to the return of this bar, all heads
            together, in nats; NaN where there was no forecast.
        belief: What it takes the hidden state to be; one row a bar.
    """

    chance: FloatArray
    mean: FloatArray
    variance: FloatArray
    score: FloatArray
    belief: FloatArray

    @property
    def edge(self) -> FloatArray:
        """Return the expected return of the next bar, all heads together."""
        expected: FloatArray = (self.chance * self.mean).sum(axis=1)
        return expected

    @property
    def error(self) -> FloatArray:
        """Return how far the heads disagree about it, as a deviation."""
        gap = self.mean - self.edge[:, None]
        deviation: FloatArray = np.sqrt((self.chance * gap**2).sum(axis=1))
        return deviation


WARM_BARS = 1_000
"""Bars that bring a memory up to date. What a fit learned is in begin(); to show it the whole past
once more would count the past twice."""


@runtime_checkable
class Tier(Protocol):
    """A model of the market.

    ``memory`` is a flat array of float64 that begin() makes and filter() moves on in place, so a
    series may be shown in any pieces: the forecasts are the same, bit for bit. filter() draws
    nothing at random and never looks at later rows.
    """

    @property
    def name(self) -> str: ...
    @property
    def heads(self) -> tuple[str, ...]: ...
    def fit(self, past: Series, seeds: Seeds) -> None: ...
    def begin(self) -> FloatArray: ...
    def filter(self, seen: Series, memory: FloatArray) -> Forecasts: ...
    def weights(self) -> Mapping[str, NDArray[Any]]: ...
    def restore(self, weights: Mapping[str, NDArray[Any]], inputs: tuple[str, ...]) -> None: ...
