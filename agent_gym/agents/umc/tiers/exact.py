"""The exact tier: simple laws of the market, weighed against each other by Bayes' rule.

Every hypothesis is a small hidden Markov model with known parameters, so its filter is exact, and
so are the weights. The walk is one of them: where nothing can be known it wins, and nothing is
expected. Nothing is searched for, so nothing can get stuck, and 300 hypotheses over a year of
hours take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.umc.tiers.contract import Forecasts, Series
from agent_gym.agents.umc.tiers.exact_kernel import PRIOR, follow_hypotheses
from agent_gym.agents.umc.tiers.noise import student_noise
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

NAME = "umc/exact"
WALK, DRIFT, MEMORY = "walk", "drift", "memory"
LARGEST_INPUT = 8.0
LEVEL, RETURN, BOUNDED, INPUTS = range(4)  # columns of what a law may be linear in
TOSSED = 0.5  # a sign that is drawn anew each bar: it says nothing of the direction


class ExactConfig(Config):
    """The hypotheses, and how fast what was learned is forgotten.

    Slopes are in deviations of a bar's return: of a drift a bar, or for each unit of an input.
    """

    drifts: tuple[float, ...] = Field(
        default=(0.03, 0.05, 0.07, 0.1, 0.14, 0.2), description="sizes of a drift that turns"
    )
    drift_stays: tuple[float, ...] = Field(
        default=(0.98, 0.99, 0.995, 0.998), description="chances that its sign stays for a bar"
    )
    memories: tuple[float, ...] = Field(
        default=(0.03, 0.05, 0.08, 0.12),
        description="shares of a return that come again, or go back, as a regime has it",
    )
    memory_stays: tuple[float, ...] = Field(
        default=(0.99, 0.995, 0.998, 0.999), description="chances that the regime stays"
    )
    memory_bound: float = Field(
        default=2.0,
        gt=0.0,
        description="deviations beyond which half of these laws remember no more of a return: "
        "what jumps seldom goes on, or back, in proportion",
    )
    slopes: tuple[float, ...] = Field(
        default=(0.02, 0.035, 0.06, 0.1, 0.16), description="of one input, of either sign"
    )
    jolts: tuple[float, ...] = Field(
        default=(0.05, 0.1, 0.2, 0.3, 0.5),
        description="shares of a return by which the next one is spread wider, whichever way: a "
        "walk may do so too, and without these its rivals would be believed for it",
    )
    walk_prior: float = Field(
        default=0.7, gt=0.0, lt=1.0, description="belief beforehand that nothing can be known"
    )
    forget: float = Field(
        default=5e-5, ge=0.0, lt=0.1, description="share of the belief that goes back each bar"
    )


class ExactTier:
    """A bank of exact filters; implements Tier. Heads are kinds of hypotheses."""

    name = NAME

    def __init__(self, config: ExactConfig) -> None:
        self._config = config
        self._inputs: tuple[str, ...] = ()
        self._table = np.empty((0, PRIOR + 1))
        self._knobs = np.empty(0)
        self._learned = np.empty(0)

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the kinds of hypotheses."""
        return (WALK, DRIFT, MEMORY, *self._inputs)

    def fit(self, past: Series, seeds: Seeds) -> None:
        """Measure the noise of the past, then weigh the hypotheses by it, from the prior on."""
        self._inputs = past.names
        self._table = self._hypotheses(past.names)
        scale, freedom = student_noise(past.standard)
        self._knobs = np.array([scale, freedom, self._config.forget])
        self._learned = self._table[:, PRIOR].copy()
        memory = self.begin()
        self.filter(past, memory)
        self._learned = self._state_of(memory)[1].copy()

    def begin(self) -> FloatArray:
        """Return a memory that has seen nothing and knows what was learned."""
        if not self._learned.size:
            raise AgentError("a tier follows a market after fit()", where=NAME)
        unsure = np.full(self._learned.size, 0.5)
        return np.concatenate([np.zeros(self._width), unsure, self._learned])

    def filter(self, seen: Series, memory: FloatArray) -> Forecasts:
        """Follow the series from where the memory stands."""
        self._check_inputs(seen)
        n, width = len(seen), self._width
        values = np.column_stack([seen.standard, np.empty(n)])
        rows = np.empty((n + 1, width))
        rows[0] = memory[:width]
        bound = self._config.memory_bound
        rows[1:, LEVEL] = 1.0
        rows[1:, RETURN] = values[:, 0]
        rows[1:, BOUNDED] = np.clip(values[:, 0], -bound, bound)
        rows[1:, INPUTS:] = seen.inputs
        np.nan_to_num(rows, copy=False)
        np.clip(rows, -LARGEST_INPUT, LARGEST_INPUT, out=rows)
        told = np.empty((3, n, len(self.heads)))
        follow_hypotheses(self._table, self._knobs, values, rows, self._state_of(memory), told)
        memory[:width] = rows[-1]
        return Forecasts(
            chance=told[0],
            mean=told[1] * seen.sigma[:, None],
            variance=told[2] * seen.sigma[:, None] ** 2,
            score=values[:, 1] - np.log(seen.expected_sigma),
            belief=told[0],
        )

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return a copy of what was learned: the belief in each hypothesis, and the noise."""
        return {"belief": self._learned.copy(), "noise": self._knobs.copy()}

    def restore(self, weights: Mapping[str, NDArray[Any]], inputs: tuple[str, ...]) -> None:
        """Take up what weights() of a tier with the same config and inputs returned."""
        table = self._hypotheses(inputs)
        found = tuple(weights[name].shape for name in ("belief", "noise") if name in weights)
        expected = ((len(table),), (3,))
        if found != expected:
            raise DataError(
                "these beliefs belong to other hypotheses",
                where=NAME,
                found=found,
                expected=expected,
            )
        self._inputs, self._table = inputs, table
        self._learned, self._knobs = (
            np.array(weights[name], dtype=np.float64) for name in ("belief", "noise")
        )

    @property
    def _width(self) -> int:
        return INPUTS + len(self._inputs)

    def _state_of(self, memory: FloatArray) -> FloatArray:
        """Return the part of a memory that holds beliefs and weights, as a view."""
        return memory[self._width :].reshape(2, -1)

    def _check_inputs(self, seen: Series) -> None:
        if seen.names != self._inputs:
            raise AgentError(
                "the inputs are not those that were learned from",
                where=NAME,
                found=", ".join(seen.names),
                expected=", ".join(self._inputs),
            )

    def _hypotheses(self, names: tuple[str, ...]) -> FloatArray:
        """Return one row a hypothesis; kinds share the prior equally, and so do those of a kind.

        Of the walk's share half is that of the plain one.
        """
        config = self._config
        plain, jolts = [(0.0, 0.0, LEVEL, 1.0)], _of_returns(config.jolts, (TOSSED,))
        half = 0.5 if jolts else 1.0
        share = (1.0 - config.walk_prior) / (3.0 if names else 2.0)
        kinds = [
            (0, half * config.walk_prior, plain),
            (0, (1.0 - half) * config.walk_prior, jolts),
            (1, share, list(_turning(LEVEL, config.drifts, config.drift_stays))),
            (2, share, _of_returns(config.memories, config.memory_stays)),
        ]
        for i in range(len(names)):
            laws = list(_leading(INPUTS + i, config.slopes))
            kinds.append((3 + i, share / len(names), laws))
        rows = [
            (*law, float(head), prior / len(laws)) for head, prior, laws in kinds for law in laws
        ]
        return np.array(rows, dtype=np.float64)


def _of_returns(
    sizes: tuple[float, ...], stays: tuple[float, ...]
) -> list[tuple[float, float, int, float]]:
    """Return laws of the last return, all of it or up to the bound."""
    return [law for column in (RETURN, BOUNDED) for law in _turning(column, sizes, stays)]


def _turning(
    column: int, sizes: tuple[float, ...], stays: tuple[float, ...]
) -> Iterator[tuple[float, float, int, float]]:
    """Yield laws whose slope turns its sign with a hidden state."""
    for size in sizes:
        for stay in stays:
            yield -size, size, column, stay


def _leading(column: int, slopes: tuple[float, ...]) -> Iterator[tuple[float, float, int, float]]:
    """Yield laws in which an input always says the same."""
    for slope in slopes:
        for signed in (-slope, slope):
            yield signed, signed, column, 1.0


@register("tier", NAME, ExactConfig)
def exact_tier(config: ExactConfig) -> ExactTier:
    """Weigh simple laws of the market against each other and against the walk."""
    return ExactTier(config)
