"""Simple players of benchmark snapshots: what every trained agent should be compared with."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.evaluation.benchmark.layout import MarketLayout


class MarketRule:
    """Implements Agent by a rule that sets one target a market."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._targets = np.zeros(0)

    def reset(self, start: EpisodeStart) -> None:
        """Find the markets and hold nothing."""
        self._layout = MarketLayout.of(start)
        self._targets = np.zeros(self._layout.n_markets)
        self._begin(start)

    def _begin(self, start: EpisodeStart) -> None:
        """Prepare what the rule needs."""

    def act(self, obs: Observation) -> Decision:
        """Return the targets."""
        self._targets = self._rule(obs.features, self._targets)
        return Decision(self._targets.copy())

    def observe(self, step: Step) -> None:
        """Learn nothing."""

    def _rule(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        """Return the targets from what is seen and the last targets."""
        raise NotImplementedError


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


class _Constant(MarketRule):
    def __init__(self, name: str, size: float) -> None:
        super().__init__(name)
        self._size = size

    @override
    def _rule(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        return np.full_like(held, self._size)


class _Random(MarketRule):
    def __init__(self, config: RandomConfig) -> None:
        super().__init__("benchmark/random")
        self._hold = config.hold_ticks

    @override
    def _begin(self, start: EpisodeStart) -> None:
        self._rng = start.seeds.child("random").rng()
        self._tick = 0

    @override
    def _rule(self, seen: FloatArray, held: FloatArray) -> FloatArray:
        self._tick += 1
        if (self._tick - 1) % self._hold:
            return held
        return self._rng.integers(-1, 2, held.size).astype(np.float64)


class _Threshold(MarketRule):
    """Takes the side of a signal when it is strong and leaves when it is weak or has turned."""

    def __init__(self, name: str, feature: str, sign: float, config: ThresholdConfig) -> None:
        super().__init__(name)
        self._feature, self._sign, self._config = feature, sign, config

    @override
    def _begin(self, start: EpisodeStart) -> None:
        self._columns = self._layout.columns(self._feature)

    @override
    def _rule(self, seen: FloatArray, held: FloatArray) -> FloatArray:
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
    return _Constant("benchmark/flat", 0.0)


@register("agent", "benchmark/long", LongConfig)
def long(config: LongConfig) -> MarketRule:
    """Buy YES and every perpetual at the first tick, and keep them."""
    return _Constant("benchmark/long", config.size)


@register("agent", "benchmark/random", RandomConfig)
def random(config: RandomConfig) -> MarketRule:
    """Throw dice: loses its costs."""
    return _Random(config)


@register("agent", "benchmark/sentiment", ThresholdConfig)
def sentiment(config: ThresholdConfig) -> MarketRule:
    """Follow what prices have not yet taken in of the posts, weighed by who wrote them."""
    return _Threshold("benchmark/sentiment", "gap", 1.0, config)


@register("agent", "benchmark/headline", ThresholdConfig)
def headline(config: ThresholdConfig) -> MarketRule:
    """Follow every headline of the tick, whoever wrote it: what promoters live on."""
    return _Threshold("benchmark/headline", "sentiment", 1.0, config)


@register("agent", "benchmark/momentum", ThresholdConfig)
def momentum(config: ThresholdConfig) -> MarketRule:
    """Follow the move of the last five ticks."""
    return _Threshold("benchmark/momentum", "return_5", 1.0, config)


@register("agent", "benchmark/contrarian", ThresholdConfig)
def contrarian(config: ThresholdConfig) -> MarketRule:
    """Go against the move of the last five ticks."""
    return _Threshold("benchmark/contrarian", "return_5", -1.0, config)
