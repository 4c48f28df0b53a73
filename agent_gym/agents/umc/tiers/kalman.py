"""The linear-Gaussian tier: one hidden level, and inputs that count as far as they did before.

Each head has its own persistence of the level; how strong level and noise are is chosen for each by
maximum likelihood on the past, how far inputs may count by that of a head without a level. The
chances of the heads then follow from Bayes' rule. Filters are exact, also in the coefficients of
the inputs: what is not known of them is in the variance of the forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize_scalar

from agent_gym.agents.umc.tiers.contract import Forecasts, Series
from agent_gym.agents.umc.tiers.kalman_kernel import (
    NOISE,
    PERSISTENCE,
    PRIOR,
    PUSH,
    best_log_likelihood,
    follow_heads,
)
from agent_gym.agents.umc.tiers.noise import enough_returns
from agent_gym.agents.umc.tiers.scaling import Normaliser
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

NAME = "umc/kalman"
STILL = "still"
LARGEST_INPUT = 8.0
LOG_RATIOS = np.linspace(np.log(1e-5), np.log(1e2), 9)
"""Where the search begins: variance of the level over that of the noise."""
RATIO_TOLERANCE = 0.02
LEARNED = ("laws", "chance", "slopes", "doubt", "input_mean", "input_deviation", "input_usable")


class KalmanConfig(Config):
    """The persistences to weigh, and how strong an input may be."""

    persistences: tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...] = Field(
        default=(0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998),
        description="shares of the hidden level that are left after a bar, one a head",
    )
    still_prior: float = Field(
        default=0.2, gt=0.0, lt=1.0, description="belief beforehand that there is no hidden level"
    )
    slope_sigmas: tuple[Annotated[float, Field(gt=0.0)], ...] = Field(
        default=(0.003, 0.01, 0.03, 0.1),
        min_length=1,
        description="deviations of what a unit of an input may do, of which the likeliest is taken",
    )
    forget: float = Field(
        default=5e-5, ge=0.0, lt=0.1, description="share of the chances that goes back each bar"
    )


class KalmanTier:
    """Exact Kalman filters side by side; implements Tier. Heads are persistences."""

    name = NAME

    def __init__(self, config: KalmanConfig) -> None:
        self._config = config
        self._inputs: tuple[str, ...] = ()
        self._learned: dict[str, FloatArray] = {}

    @property
    def heads(self) -> tuple[str, ...]:
        """Return a name for each persistence."""
        return (STILL, *(f"level_{kept:g}" for kept in self._config.persistences))

    def fit(self, past: Series, seeds: Seeds) -> None:
        """Choose level and noise of each head by likelihood, then learn the slopes."""
        enough_returns(past.standard)
        self._inputs = past.names
        scales = Normaliser.fitted(past.inputs)
        heads, slopes = len(self.heads), 1 + len(past.names)
        self._learned = dict(
            zip(LEARNED[4:], (scales.mean, scales.deviation, scales.usable), strict=True)
        )
        search = _Search(self._values(past), self._known(past, np.zeros(slopes)))
        slope_sigma = search.slope_sigma(self._config.slope_sigmas)
        laws = [search.law(kept, slope_sigma) for kept in (0.0, *self._config.persistences)]
        self._learned["laws"] = np.array(
            [(*law, prior) for law, prior in zip(laws, self._priors(), strict=True)]
        )
        self._learned["chance"] = self._learned["laws"][:, PRIOR].copy()
        self._learned["slopes"] = np.zeros((heads, slopes))
        noise = self._learned["laws"][:, NOISE, None, None]
        self._learned["doubt"] = slope_sigma**2 * noise * np.eye(slopes)
        memory = self.begin()
        self.filter(past, memory)
        means, doubts, chance = self._parts(memory)
        self._learned["chance"] = chance.copy()
        self._learned["slopes"] = means[:, 1:].copy()
        self._learned["doubt"] = doubts[:, 1:, 1:].copy()

    def begin(self) -> FloatArray:
        """Return a memory that has seen nothing and knows what was learned."""
        if not self._learned:
            raise AgentError("a tier follows a market after fit()", where=NAME)
        laws, slopes = self._learned["laws"], self._learned["slopes"]
        memory = np.zeros(self._size)
        means, doubts, chance = self._parts(memory)
        means[:, 1:], doubts[:, 1:, 1:] = slopes, self._learned["doubt"]
        doubts[:, 0, 0] = laws[:, PUSH] / (1.0 - laws[:, PERSISTENCE] ** 2)
        chance[:] = self._learned["chance"]
        return memory

    def filter(self, seen: Series, memory: FloatArray) -> Forecasts:
        """Follow the series from where the memory stands."""
        self._check(seen, memory)
        slopes = 1 + len(self._inputs)
        values = self._values(seen)
        known = self._known(seen, memory[:slopes])
        told = np.empty((3, len(seen), len(self.heads)))
        laws = self._learned["laws"]
        follow_heads(laws, self._config.forget, values, known, memory[slopes:], told)
        memory[:slopes] = known[-1]
        return Forecasts(
            chance=told[0],
            mean=told[1] * seen.sigma[:, None],
            variance=told[2] * seen.sigma[:, None] ** 2,
            score=values[:, 1] - np.log(seen.expected_sigma),
            belief=told[1],
        )

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return a copy of what was learned: laws, chances, slopes and the scales of inputs."""
        return {name: array.copy() for name, array in self._learned.items()}

    def restore(self, weights: Mapping[str, NDArray[Any]], inputs: tuple[str, ...]) -> None:
        """Take up what weights() of a tier with the same config and inputs returned."""
        heads, slopes = len(self.heads), 1 + len(inputs)
        shapes = [(heads, 4), (heads,), (heads, slopes), (heads, slopes, slopes)]
        shapes += [(len(inputs),)] * 3
        for name, shape in zip(LEARNED, shapes, strict=True):
            found = weights[name].shape if name in weights else None
            if found != shape:
                raise DataError(
                    "these weights belong to other heads or inputs",
                    where=f"{NAME}, {name}",
                    found=found,
                    expected=shape,
                )
        self._inputs = inputs
        self._learned = {
            name: np.array(weights[name], dtype=np.float64, order="C") for name in LEARNED
        }

    @property
    def _size(self) -> int:
        """Return how many numbers a memory has: regressors, means, covariances and chances."""
        heads, slopes = len(self.heads), 1 + len(self._inputs)
        return slopes + heads * (1 + slopes) * (2 + slopes) + heads

    def _priors(self) -> list[float]:
        count = len(self._config.persistences)
        still = self._config.still_prior if count else 1.0
        return [still, *([(1.0 - still) / max(count, 1)] * count)]

    def _values(self, seen: Series) -> FloatArray:
        """Return the standardised returns with a column for their scores."""
        return np.column_stack([seen.standard, np.empty(len(seen))])

    def _known(self, seen: Series, before: FloatArray) -> FloatArray:
        """Return what is known before the first bar and after each: last return, and inputs."""
        scales = Normaliser(*(self._learned[name] for name in LEARNED[4:]))
        rows = np.empty((len(seen) + 1, before.size))
        rows[0] = before
        rows[1:, 0] = seen.standard
        rows[1:, 1:] = scales.scaled(seen.inputs)
        np.clip(rows, -LARGEST_INPUT, LARGEST_INPUT, out=rows)
        return np.nan_to_num(rows, copy=False)

    def _parts(self, memory: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means, covariances and chances of a memory, as views."""
        heads, size = len(self.heads), 2 + len(self._inputs)
        state = memory[size - 1 :]
        split = heads * size * (size + 1)
        doubts = state[heads * size : split].reshape(heads, size, size)
        return state[: heads * size].reshape(heads, size), doubts, state[split:]

    def _check(self, seen: Series, memory: FloatArray) -> None:
        if seen.names != self._inputs:
            raise AgentError(
                "the inputs are not those that were learned from",
                where=NAME,
                found=", ".join(seen.names),
                expected=", ".join(self._inputs),
            )
        if memory.shape != (self._size,):
            raise AgentError(
                "the memory is not of this model",
                where=NAME,
                found=memory.shape,
                expected=(self._size,),
                remedy="Begin with begin() of the same model",
            )


class _Search:
    """The likelihood of one past, for any law."""

    def __init__(self, values: FloatArray, known: FloatArray) -> None:
        self._values, self._known = values, known

    def slope_sigma(self, sigmas: tuple[float, ...]) -> float:
        """Return how strong inputs are likely to be, without any level."""
        return max(sigmas, key=lambda sigma: self._likelihood(0.0, 0.0, sigma))

    def law(self, kept: float, slope_sigma: float) -> tuple[float, float, float]:
        """Return persistence, push and noise that make the past most likely."""
        ratio = 0.0
        if kept > 0.0:

            def cost(log_ratio: float) -> float:
                return -self._likelihood(kept, float(np.exp(log_ratio)), slope_sigma)

            costs = [cost(log_ratio) for log_ratio in LOG_RATIOS]
            best = int(np.argmin(costs))
            around = LOG_RATIOS[max(best - 1, 0)], LOG_RATIOS[min(best + 1, len(costs) - 1)]
            found = minimize_scalar(
                cost, bounds=around, method="bounded", options={"xatol": RATIO_TOLERANCE}
            )
            ratio = float(np.exp(found.x))
        self._likelihood(kept, ratio, slope_sigma)
        noise = float(self._values[0, 1])
        return kept, ratio * (1.0 - kept**2) * noise, noise

    def _likelihood(self, kept: float, ratio: float, slope_sigma: float) -> float:
        size = self._known.shape[1] + 1
        law = np.array([kept, ratio * (1.0 - kept**2), 1.0, 1.0])
        doubt = np.diag([ratio, *([slope_sigma**2] * (size - 1))])
        return best_log_likelihood(law, self._values, self._known, np.zeros(size), doubt)


@register("tier", NAME, KalmanConfig)
def kalman_tier(config: KalmanConfig) -> KalmanTier:
    """Follow one hidden level and learn what is linear in the inputs."""
    return KalmanTier(config)
