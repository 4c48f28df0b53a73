"""The chain of risk parts: a target passes them in a stated order, and each answer is kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Self

from pydantic import Field, model_validator

from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.registry import Config
from agent_gym.exchange.risk.drawdown import DrawdownBreaker, DrawdownConfig, check_drawdowns
from agent_gym.exchange.risk.forecast import (
    ConfidenceConfig,
    ConfidenceShrink,
    KellyCap,
    KellyConfig,
)
from agent_gym.exchange.risk.limits import LimitConfig, PositionLimit
from agent_gym.exchange.risk.tails import EsCap, EsConfig, VarCap, VarConfig
from agent_gym.exchange.risk.view import (
    Cap,
    Rearmable,
    RiskModel,
    RiskView,
    StatefulRisk,
    WhenUnknown,
)


class RiskChain:
    """Applies risk parts one after the other and counts which of them bound.

    Example:
        >>> chain = RiskChain([PositionLimit(LimitConfig(max_leverage=0.5))])
        >>> target, caps = chain.apply(2.0, RiskView(0, 100.0, 100.0, 1.0, 0.0, 0.01))
        >>> target, [cap.part for cap in caps if cap.binding]
        (0.5, ['limit'])
    """

    def __init__(self, models: Sequence[RiskModel]) -> None:
        self._models = tuple(models)
        names = self.names
        if len(set(names)) != len(names):
            raise ConfigError("a risk part stands in the chain twice", found=list(names))
        self._stateful = {
            model.name: model for model in self._models if isinstance(model, StatefulRisk)
        }
        self.bound_counts = dict.fromkeys(names, 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parts in their order."""
        return tuple(model.name for model in self._models)

    def apply(self, target: float, view: RiskView) -> tuple[float, list[Cap]]:
        """Return the target that all parts allow, and what each of them did."""
        if not isfinite(target):
            raise VenueError(
                "a target is not a finite number", where=f"time {view.ts}", found=target
            )
        caps = []
        for model in self._models:
            cap = model.cap(target, view)
            _check_only_shrinks(cap, target)
            if cap.after != target:
                self.bound_counts[model.name] += 1
            target = cap.after
            caps.append(cap)
        return target, caps

    def re_arm(self, view: RiskView) -> None:
        """Re-arm every part that can be; they raise where it is too early."""
        for model in self._models:
            if isinstance(model, Rearmable):
                model.re_arm(view)

    def reset(self) -> None:
        """Begin an episode."""
        self.bound_counts = dict.fromkeys(self.names, 0)
        for model in self._stateful.values():
            model.reset()

    def state(self) -> dict[str, Any]:
        """Return all that the chain remembers as plain values."""
        return {
            "bound_counts": dict(self.bound_counts),
            "parts": {name: model.state() for name, model in self._stateful.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what state() of a chain with the same parts returned."""
        counts, parts = state["bound_counts"], state["parts"]
        if tuple(counts) != self.names or tuple(parts) != tuple(self._stateful):
            raise VenueError(
                "the state belongs to another chain", found=list(counts), expected=list(self.names)
            )
        self.bound_counts = dict(counts)
        for name, model in self._stateful.items():
            model.restore(parts[name])


def _check_only_shrinks(cap: Cap, target: float) -> None:
    if not (cap.before == target and abs(cap.after) <= abs(target) and cap.after * target >= 0.0):
        raise VenueError(
            "a risk part may only bring a target nearer to 0",
            where=f"risk part {cap.part}",
            found=f"{target} became {cap.after}",
        )


class RiskConfig(Config):
    """The usual chain; None leaves a part out."""

    confidence_z: float | None = Field(default=ConfidenceConfig().z, ge=0.0)
    kelly_fraction: float | None = Field(default=KellyConfig().fraction, gt=0.0, le=1.0)
    kelly_z: float = Field(default=KellyConfig().z, ge=0.0)
    max_kelly_bet: float = Field(default=KellyConfig().max_fraction, gt=0.0)
    var_limit: float | None = Field(default=VarConfig().limit, gt=0.0)
    es_limit: float | None = Field(default=EsConfig().limit, gt=0.0)
    soft_drawdown: float = Field(default=DrawdownConfig().soft_drawdown, ge=0.0, lt=1.0)
    max_drawdown: float | None = Field(default=DrawdownConfig().max_drawdown, gt=0.0, lt=1.0)
    cool_off_days: float = Field(default=DrawdownConfig().cool_off_days, ge=0.0)
    drawdown_step: float = Field(default=DrawdownConfig().scale_step, ge=0.0, lt=1.0)
    limits: LimitConfig | None = LimitConfig()
    without_forecast: WhenUnknown = ConfidenceConfig().when_unknown
    without_history: WhenUnknown = VarConfig().when_unknown

    @model_validator(mode="after")
    def _soft_comes_first(self) -> Self:
        if self.max_drawdown is not None:
            check_drawdowns(self.soft_drawdown, self.max_drawdown)
        return self


def build_chain(config: RiskConfig) -> RiskChain:
    """Return the parts that the config asks for: forecast, tails, drawdown and limits, in turn."""
    unsure, early = config.without_forecast, config.without_history
    parts: list[RiskModel] = []
    if config.confidence_z is not None:
        parts.append(ConfidenceShrink(ConfidenceConfig(z=config.confidence_z, when_unknown=unsure)))
    if config.kelly_fraction is not None:
        kelly = KellyConfig(
            fraction=config.kelly_fraction,
            z=config.kelly_z,
            max_fraction=config.max_kelly_bet,
            when_unknown=unsure,
        )
        parts.append(KellyCap(kelly))
    if config.var_limit is not None:
        parts.append(VarCap(VarConfig(limit=config.var_limit, when_unknown=early)))
    if config.es_limit is not None:
        parts.append(EsCap(EsConfig(limit=config.es_limit, when_unknown=early)))
    if config.max_drawdown is not None:
        drawdown = DrawdownConfig(
            soft_drawdown=config.soft_drawdown,
            max_drawdown=config.max_drawdown,
            cool_off_days=config.cool_off_days,
            scale_step=config.drawdown_step,
        )
        parts.append(DrawdownBreaker(drawdown))
    if config.limits is not None:
        parts.append(PositionLimit(config.limits))
    return RiskChain(parts)
