"""Simple players of benchmark snapshots: what every trained agent should be compared with."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.evaluation.benchmark.layout import MarketLayout


class TargetRule(Protocol):
    """Sets one target a market from what is seen and the last targets."""

    def begin(self, start: EpisodeStart, layout: MarketLayout) -> None: ...
    def targets(self, seen: FloatArray, held: FloatArray) -> FloatArray: ...


class MarketRule:
    """Implements Agent by a rule."""

    def __init__(self, name: str, rule: TargetRule) -> None:
        self.name = name
        self._rule = rule
        self._targets = np.zeros(0)

    def reset(self, start: EpisodeStart) -> None:
        """Find the markets and hold nothing."""
        layout = MarketLayout.of(start)
        self._targets = np.zeros(layout.n_markets)
        self._rule.begin(start, layout)

    def act(self, obs: Observation) -> Decision:
        """Return the targets."""
        self._targets = self._rule.targets(obs.features, self._targets)
        return Decision(self._targets.copy())

    def observe(self, step: Step) -> None:
        """Learn nothing."""


class FlatConfig(Config):
    """Nothing to set."""


class LongConfig(Config):
    """How much to buy of everything."""

    size: float = Field(default=1.0, gt=0.0, le=1.0)


class RandomConfig(Config):
    """How long to keep what was drawn."""

    hold_ticks: int = Field(default=1, ge=1)


class ThresholdConfig(Config):
    """When to enter and when to leave; ``size`` is the share of a budget."""

    enter: float = Field(default=0.2, gt=0.0, description="signal at which a position is taken")
    leave: float = Field(default=0.05, ge=0.0, description="signal below which it is closed")
    size: float = Field(default=1.0, gt=0.0, le=1.0)


class _Constant:
    """Implements TargetRule: the same of everything."""

    def __init__(self, size: float) -> None:
        self._size = size

    def begin(self, start: EpisodeStart, layout: MarketLayout) -> None:
        """Prepare nothing."""

    def targets(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        """Return the size for every market."""
        return np.full_like(held, self._size)


class _Random:
    """Implements TargetRule by dice, thrown anew every few ticks."""

    def __init__(self, hold_ticks: int) -> None:
        self._hold = hold_ticks

    def begin(self, start: EpisodeStart, layout: MarketLayout) -> None:
        """Take the dice of this episode."""
        self._rng = start.seeds.child("random").rng()
        self._tick = 0

    def targets(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        """Return fresh targets, or those held."""
        self._tick += 1
        if (self._tick - 1) % self._hold:
            return held
        return self._rng.integers(-1, 2, held.size).astype(np.float64)


class _Threshold:
    """Takes the side of a signal when it is strong and leaves when it is weak or has turned."""

    def __init__(self, feature: str, sign: float, config: ThresholdConfig) -> None:
        self._feature, self._sign, self._config = feature, sign, config

    def begin(self, start: EpisodeStart, layout: MarketLayout) -> None:
        """Find the columns of the signal."""
        self._columns = layout.columns(self._feature)

    def targets(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        """Return the side of each signal that is strong enough."""
        signal, rule = self._sign * seen[self._columns], self._config
        stays = (np.abs(signal) >= rule.leave) & (signal * held > 0.0)
        kept = np.where(stays, held, 0.0)
        targets: FloatArray = np.where(
            np.abs(signal) >= rule.enter, rule.size * np.sign(signal), kept
        )
        return targets


@register("agent", "benchmark/flat", FlatConfig)
def flat(config: FlatConfig) -> MarketRule:
    """Hold nothing: exactly 0."""
    return MarketRule("benchmark/flat", _Constant(0.0))


@register("agent", "benchmark/long", LongConfig)
def long(config: LongConfig) -> MarketRule:
    """Buy YES and every perpetual at the first tick, and keep them."""
    return MarketRule("benchmark/long", _Constant(config.size))


@register("agent", "benchmark/random", RandomConfig)
def random(config: RandomConfig) -> MarketRule:
    """Throw dice: loses its costs."""
    return MarketRule("benchmark/random", _Random(config.hold_ticks))


@register("agent", "benchmark/sentiment", ThresholdConfig)
def sentiment(config: ThresholdConfig) -> MarketRule:
    """Follow what prices have not yet taken in of the posts, weighed by who wrote them."""
    return MarketRule("benchmark/sentiment", _Threshold("gap", 1.0, config))


@register("agent", "benchmark/headline", ThresholdConfig)
def headline(config: ThresholdConfig) -> MarketRule:
    """Follow every headline of the tick, whoever wrote it: what promoters live on."""
    return MarketRule("benchmark/headline", _Threshold("sentiment", 1.0, config))


@register("agent", "benchmark/momentum", ThresholdConfig)
def momentum(config: ThresholdConfig) -> MarketRule:
    """Follow the move of the last five ticks."""
    return MarketRule("benchmark/momentum", _Threshold("return_5", 1.0, config))


@register("agent", "benchmark/contrarian", ThresholdConfig)
def contrarian(config: ThresholdConfig) -> MarketRule:
    """Go against the move of the last five ticks."""
    return MarketRule("benchmark/contrarian", _Threshold("return_5", -1.0, config))
