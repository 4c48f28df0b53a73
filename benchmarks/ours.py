"""Our side of every work, through the package's public doors."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
from agent_gym.agents.team import Independent
from agent_gym.core import ActionSpec, Decision, EpisodeStart, Observation, Role, Seeds, Step
from agent_gym.core.clock import MINUTE_NS
from agent_gym.envs import (
    DiscreteTargets,
    MarketConfig,
    MarketEnv,
    MarketVectorEnv,
    MarketWorld,
)
from agent_gym.exchange import AccountRules, Costs, Tape, run_series, run_sweep
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import FEATURES
from agent_gym.markets.instrument import Instrument
from agent_gym.rollouts.play import play
from agent_gym.rollouts.sinks import ParquetSink
from agent_gym.rollouts.vector import VectorRecorder
from benchmarks.data import Floats, Series

FAST, SLOW, CASH = 20, 50, 10_000.0
COSTS = Costs.fees_only(10.0)
RULES = AccountRules(cash=CASH)
ROLE = Role("trader")
START = EpisodeStart(ROLE, ("close",), ActionSpec(low=0.0, high=1.0), Seeds(0))
EPISODE_BARS = 1_000


def bars_of(series: Series) -> Bars:
    """Return the shared series as Bars of one minute."""
    ts = np.arange(len(series), dtype=np.int64) * MINUTE_NS
    return Bars(Instrument(), MINUTE_NS, ts, *series.columns())


class SeriesRun:
    """Work (a): rule and full ledger over a series; one unit long or flat."""

    def __init__(self, series: Series) -> None:
        self.bars = bars_of(series)
        self.tape = Tape.of(self.bars, COSTS)
        self.rule = sma_cross(SmaCrossConfig(fast=FAST, slow=SLOW))

    def run(self) -> float:
        """Decide and trade on a tape that is laid out, as peers run on frames that are made."""
        targets = self.rule.targets(START, {"close": self.bars.close})
        result = run_series(self.tape, targets, COSTS, RULES, sizing="units")
        return float(result.equity[-1])

    def run_from_bars(self) -> float:
        """Do the same with the checking and laying out of the bars."""
        targets = self.rule.targets(START, {"close": self.bars.close})
        result = run_series(self.bars, targets, COSTS, RULES, sizing="units")
        return float(result.equity[-1])


class SweepRun:
    """Work (c): many pairs of windows on one series, totals only."""

    def __init__(self, series: Series, pairs: list[tuple[int, int]]) -> None:
        self.bars = bars_of(series)
        self.tape = Tape.of(self.bars, COSTS)
        self.pairs = pairs

    def run(self) -> list[float]:
        """Return the final equity of each pair."""
        totals = run_sweep(self.tape, self._targets(), COSTS, RULES, sizing="units")
        return [total["equity"] for total in totals]

    def _targets(self) -> Iterator[Floats]:
        columns = {"close": self.bars.close}
        for fast, slow in self.pairs:
            yield sma_cross(SmaCrossConfig(fast=fast, slow=slow)).targets(START, columns)


def market_fields() -> dict[str, Any]:
    """Return the fields that both environments are made with; 28 + 6 values make an observation."""
    return {
        "features": (*FEATURES, *(f"{name}_known" for name in FEATURES[:10])),
        "actions": DiscreteTargets(levels=(0.0, 1.0)).model_dump(),
        "costs": COSTS.model_dump(),
        "account": RULES.model_dump(),
        "episode_bars": EPISODE_BARS,
    }


def vector_env(
    series: Series, n_lanes: int, seed: int, *, threads: int = 1, copy: bool = False
) -> MarketVectorEnv:
    """Return a vector environment that is reset under its own seed."""
    env = MarketVectorEnv(n_lanes, bars_of(series), threads=threads, copy=copy, **market_fields())
    env.reset(seed=seed)
    return env


def record_steps(env: MarketVectorEnv, actions: Any, folder: Path | None) -> VectorRecorder:
    """Step through a block of actions and record every step, in memory or to a store on disk."""
    recorder = VectorRecorder(env.num_envs, folder=folder, overwrite=True)
    state = env.lanes.state
    times, positions, equity = state["t"], state["pos"], state["eq"]
    flags = np.empty(env.num_envs, dtype=np.uint8)
    for chosen in actions:
        _, rewards, terminated, truncated, _ = env.step(chosen)
        np.left_shift(truncated.view(np.uint8), 1, out=flags)
        np.bitwise_or(flags, terminated.view(np.uint8), out=flags)
        recorder.record(times, chosen, rewards, positions, equity, flags)
    return recorder


def single_steps(series: Series, n_steps: int, seed: int) -> Callable[[], None]:
    """Return a call that steps one Gymnasium environment with coin flips."""
    env = MarketEnv(bars_of(series), **market_fields())
    env.reset(seed=seed)
    actions = Seeds(seed).child("benchmark", "single").rng().integers(0, 2, n_steps).tolist()

    def run() -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return run


class PlainSma:
    """The rule as a user writes it in Python: two running sums over a window of closes."""

    name = "benchmark/plain-sma"

    def reset(self, start: EpisodeStart) -> None:
        """Forget the past."""
        self._close, self._encode = start.column("close"), start.actions.encode
        self._closes: deque[float] = deque(maxlen=SLOW)
        self._fast = self._slow = 0.0
        self._flat, self._long = Decision(self._encode(0.0)), Decision(self._encode(1.0))

    def act(self, obs: Observation) -> Decision:
        """Be long while the fast average is above the slow one."""
        close, closes = obs.features.item(self._close), self._closes
        seen = len(closes)
        self._fast += close - (closes[-FAST] if seen >= FAST else 0.0)
        self._slow += close - (closes[0] if seen == SLOW else 0.0)
        closes.append(close)
        if seen < SLOW - 1:
            return self._flat
        return self._long if self._fast * SLOW > self._slow * FAST else self._flat

    def observe(self, step: Step) -> None:
        """Learn nothing."""


class PlayRun:
    """Work (d): the one loop with an agent in Python and every step going to a store on disk."""

    def __init__(self, series: Series, folder: Path) -> None:
        fields = market_fields() | {"episode_bars": None, "random_start": False, "warmup_bars": 0}
        config = MarketConfig.model_validate(fields | {"features": ()})
        self.world = MarketWorld(config, bars_of(series))
        self.folder = folder

    def run(self) -> None:
        """Play with the rule in plain Python."""
        self._record(PlainSma())

    def run_rule(self) -> None:
        """Play with the package's own rule."""
        self._record(sma_cross(SmaCrossConfig(fast=FAST, slow=SLOW)))

    def run_unrecorded(self) -> None:
        """Play with the rule in plain Python and keep nothing."""
        play(self.world, Independent({ROLE: PlainSma()}), "benchmark", Seeds(1))

    def clear(self, _: object) -> None:
        """Take the store away again."""
        shutil.rmtree(self.folder)

    def _record(self, agent: Any) -> None:
        with ParquetSink(self.folder) as sink:
            play(self.world, Independent({ROLE: agent}), "benchmark", Seeds(1), (sink,))
