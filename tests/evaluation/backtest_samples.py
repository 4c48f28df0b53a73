"""Agents made of strings and short ways to run them, for the tests of backtests."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from agent_gym.core import Ref
from agent_gym.core.registry import make
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine, BacktestResults
from agent_gym.markets import Bars

for module in ("baselines", "sma_cross", "breakout", "mean_reversion", "momentum", "rsi"):
    import_module(f"agent_gym.agents.rules.{module}")
import_module("agent_gym.agents.rules.vol_target")

RULES = {
    "rules/flat": {},
    "rules/buy-hold": {"size": 0.7},
    "rules/random": {"hold_bars": 3, "allow_short": True},
    "rules/sma-cross": {"fast": 3, "slow": 8, "allow_short": True},
    "rules/breakout": {},
    "rules/mean-reversion": {},
    "rules/momentum": {},
    "rules/rsi": {},
    "rules/vol-target": {"warmup_bars": 2},
}
CROSS = Ref(use="rules/sma-cross", params={"fast": 3, "slow": 8, "allow_short": True})
DICE = Ref(use="rules/random", params={"hold_bars": 5, "allow_short": True})
HOLD = Ref(use="rules/buy-hold")


class Shy:
    """An agent that hides that it can decide a whole series, so that it is run step by step."""

    def __init__(self, ref: Ref) -> None:
        self._agent: Any = make("agent", ref)
        self.name = self._agent.name
        self.reset, self.act, self.observe = (
            self._agent.reset,
            self._agent.act,
            self._agent.observe,
        )


class Puppet:
    """An agent that does what a function of the moment and the observation says."""

    def __init__(self, decide: Any) -> None:
        self.name = "puppet"
        self.decide = decide
        self.seen: list[Observation] = []
        self.steps: list[Step] = []

    def reset(self, start: EpisodeStart) -> None:
        self.start = start

    def act(self, obs: Observation) -> Decision:
        self.seen.append(obs)
        made = self.decide(len(self.seen) - 1, obs)
        return made if isinstance(made, Decision) else Decision(made)

    def observe(self, step: Step) -> None:
        self.steps.append(step)


class Whole(Puppet):
    """A puppet with a whole-series door."""

    needs = ("close",)

    def __init__(self, targets: Any) -> None:
        super().__init__(lambda t, obs: 0.0)
        self._targets = targets

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        result: FloatArray = self._targets(columns["close"])
        return result


def run(bars: Bars, agent: Any, seed: int = 0, **fields: Any) -> BacktestResults:
    return BacktestEngine(BacktestConfig(**fields)).run(bars, agent, seed)


def assert_same(one: BacktestResults, other: BacktestResults) -> None:
    assert one.equity_hash == other.equity_hash
    for name in ("equity", "position", "cash", "target"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.fills, other.fills)
    assert one.metrics == other.metrics
