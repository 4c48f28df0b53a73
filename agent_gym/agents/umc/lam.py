"""Lambda, the weight of information: how much is wanted, and how much can be afforded.

The outer loop moves lambda slowly: up while little is learned, down while the model does not
explain the market, and back to its base otherwise. The inner choice, ``affordable_lambda``, takes
as much of it as costs no more than a budget. Both are pure: the same state and the same metrics
give the same next state, however often they are asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from agent_gym.agents.umc.efe import affordable_lambda
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config, configure

__all__ = [
    "AdaptiveLambdaScheduler",
    "LambdaConfig",
    "LambdaMetrics",
    "LambdaState",
    "affordable_lambda",
    "saved_state",
]

BASIS_POINT = 1e-4


class LambdaConfig(Config):
    """Where lambda may go, what moves it, and what it may cost."""

    lambda_base: float = Field(default=0.28, ge=0, description="where lambda rests")
    lambda_min: float = Field(default=0.1, ge=0, description="lowest lambda")
    lambda_max: float = Field(default=0.46, ge=0, description="highest lambda")
    info_threshold_low: float = Field(
        default=0.01, ge=0, description="nats a bar; less information than this raises lambda"
    )
    coherence_threshold: float = Field(
        default=0.7, gt=0, lt=1, description="a model less coherent than this lowers lambda"
    )
    adaptation_rate: float = Field(
        default=0.1, ge=0, description="step of the log of lambda when a threshold is crossed"
    )
    return_rate: float = Field(
        default=0.05, gt=0, le=1, description="share of the way back to the base at each decision"
    )
    memory_bars: int = Field(
        default=50, ge=1, description="span of the average of the information gain"
    )
    hysteresis: float = Field(
        default=0.1, ge=0, description="share of a threshold to rise above it before it lets go"
    )
    regret_budget_bp: float = Field(
        default=0.0, ge=0, description="basis points a bar that curiosity may cost; 0: nothing"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.lambda_min <= self.lambda_base <= self.lambda_max:
            raise ValueError("lambda_min, lambda_base and lambda_max must rise in this order")
        if self.lambda_base == 0.0 < self.lambda_max:
            raise ValueError("a lambda_base of 0 cannot rise: give lambda_max 0 too")
        if self.coherence_threshold * (1.0 + self.hysteresis) >= 1.0:
            raise ValueError("with this hysteresis no coherence is high enough to let go")
        return self

    @classmethod
    def fixed(cls, value: float, regret_budget_bp: float = 0.0) -> LambdaConfig:
        """Return the config of a lambda that never moves; 0 switches curiosity off."""
        return cls(
            lambda_base=value,
            lambda_min=value,
            lambda_max=value,
            regret_budget_bp=regret_budget_bp,
        )

    def budget_nats(self, nats_per_return: float) -> float:
        """Return the budget in the currency of free energy."""
        return self.regret_budget_bp * BASIS_POINT * nats_per_return


@dataclass(frozen=True, slots=True)
class LambdaMetrics:
    """What the controller is told at each decision.

    Attributes:
        information: Nats that the next bar is expected to teach about parameters.
        coherence: How well the model explains the market, 0 to 1.
    """

    information: float
    coherence: float

    def __post_init__(self) -> None:
        for name in ("information", "coherence"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise DataError(f"the {name} is not a finite number", where="lambda", found=value)
        if not 0.0 <= self.coherence <= 1.0:
            raise DataError("coherence lies between 0 and 1", where="lambda", found=self.coherence)


@dataclass(frozen=True, slots=True)
class LambdaState:
    """All that the controller remembers; plain numbers, so it is saved as they are.

    Attributes:
        lam: Lambda now.
        information: Running mean of the information gain; 0 before the first decision.
        curious: Too little is learned: lambda is being raised.
        doubtful: The model does not explain the market: lambda is being lowered.
        decisions: How many there were.
        at_min: After how many of them lambda stood at its lower bound.
        at_max: After how many at its upper bound.
    """

    lam: float
    information: float = 0.0
    curious: bool = False
    doubtful: bool = False
    decisions: int = 0
    at_min: int = 0
    at_max: int = 0

    @property
    def share_at_bounds(self) -> float | None:
        """Return the share of decisions with lambda at a bound, None before the first.

        A lambda that is held by its bounds confirms nothing by lying between them.
        """
        if self.decisions == 0:
            return None
        both = self.at_min == self.at_max == self.decisions
        return 1.0 if both else (self.at_min + self.at_max) / self.decisions

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


class _SavedState(Config):
    """A state as it is read back from a file."""

    lam: float = Field(ge=0)
    information: float
    curious: bool
    doubtful: bool
    decisions: int = Field(ge=0)
    at_min: int = Field(ge=0)
    at_max: int = Field(ge=0)


def saved_state(values: Mapping[str, Any]) -> LambdaState:
    """Return the state that was saved with as_dict; a wrong field is named in the error."""
    return LambdaState(**configure(_SavedState, values, where="saved lambda").model_dump())


@dataclass(frozen=True, slots=True)
class AdaptiveLambdaScheduler:
    """The outer loop, one step a decision.

    Example:
        >>> scheduler = AdaptiveLambdaScheduler(LambdaConfig())
        >>> start = scheduler.initial()
        >>> scheduler.step(start, LambdaMetrics(information=0.5, coherence=0.9)).lam
        0.28
        >>> round(scheduler.step(start, LambdaMetrics(information=0.0, coherence=0.9)).lam, 6)
        0.309448
    """

    config: LambdaConfig

    def initial(self) -> LambdaState:
        """Return the state before the first decision."""
        return LambdaState(self.config.lambda_base)

    def step(self, state: LambdaState, metrics: LambdaMetrics) -> LambdaState:
        """Return the next state; nothing else changes."""
        config = self.config
        seen = metrics.information
        if state.decisions > 0:
            seen = state.information + (seen - state.information) * 2.0 / (config.memory_bars + 1.0)
        curious = self._fires(seen, config.info_threshold_low, state.curious)
        doubtful = self._fires(metrics.coherence, config.coherence_threshold, state.doubtful)
        lam = self._moved(state.lam, int(curious) - int(doubtful))
        return LambdaState(
            lam=lam,
            information=seen,
            curious=curious,
            doubtful=doubtful,
            decisions=state.decisions + 1,
            at_min=state.at_min + (lam == config.lambda_min),
            at_max=state.at_max + (lam == config.lambda_max),
        )

    def _fires(self, value: float, threshold: float, fired: bool) -> bool:
        """Return whether a value is too low; once it was, it has to rise well above the bound."""
        return value < threshold or (fired and value <= threshold * (1.0 + self.config.hysteresis))

    def _moved(self, lam: float, direction: int) -> float:
        config = self.config
        if config.lambda_max == 0.0:
            return 0.0
        if not lam > 0.0:
            raise DataError(
                "a lambda of 0 never moves again",
                where="AdaptiveLambdaScheduler.step",
                found=lam,
                remedy="The state belongs to another config; begin with initial()",
            )
        # As a factor and not as a log, so that the base is a fixed point to the last bit.
        pull = math.pow(config.lambda_base / lam, config.return_rate)
        moved = lam * pull * math.exp(config.adaptation_rate * direction)
        return min(max(moved, config.lambda_min), config.lambda_max)
