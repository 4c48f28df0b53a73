"""A backtest that is played from outside: a visitor is shown a bar, decides, is shown the next.

The figures at the end are those of a backtest with the same targets, made by the same engine.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Config, Ref, make, names
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.stepwise import EPISODE, TRADER, CappedTrader, build_world
from agent_gym.markets.bars import Bars
from agent_gym.markets.source import open_market

REACHES_OUT = ("exchange", "file")
RUNS_PROGRAMS = ("door/", "llm")
MOST_VISITS = 16
MOST_BARS = 100_000


class VisitError(AgentError):
    """A visitor asked for something that cannot be done now."""


class VisitConfig(Config):
    """What a visitor plays."""

    market: str = "synthetic/btc-1h"
    bars: int = 500
    seed: int = 0


class Visitor:
    """Implements Agent on targets that come from outside, one at a time or all at once."""

    name = "visitor"

    def __init__(self, targets: list[float]) -> None:
        self._targets, self._t = targets, 0

    def reset(self, start: EpisodeStart) -> None:
        """Begin with the first target."""
        self._t = 0

    def act(self, obs: Observation) -> Decision:
        """Return the next target."""
        self._t += 1
        return Decision(self._targets[self._t - 1])

    def observe(self, step: Step) -> None:
        """Learn nothing."""


class Visit:
    """One backtest of one visitor."""

    def __init__(self, bars: Bars, seed: int = 0, config: BacktestConfig | None = None) -> None:
        self._bars, self._seed, self._config = bars, seed, config or BacktestConfig()
        self._targets: list[float] = []
        self._world = build_world(bars, self._config)
        self._trader = CappedTrader(Visitor(self._targets), self._world, self._config)
        seeds = Seeds(seed).child(EPISODE)
        self._now: Observation | None = self._world.reset(seeds.child("world"))[TRADER]
        self._start = self._world.start(TRADER, seeds.child("agent", TRADER))
        self._trader.reset(self._start)
        self._reward = 0.0

    @property
    def finished(self) -> bool:
        """Return whether there is nothing more to decide."""
        return self._now is None

    def seen(self) -> dict[str, Any]:
        """Return what the visitor sees now, as plain values."""
        told: dict[str, Any] = {
            "decision": len(self._targets),
            "decisions": len(self._bars) - 1,
            "finished": self.finished,
            "reward": self._reward,
        }
        if self._now is not None:
            values = [
                value if np.isfinite(value) else None for value in self._now.features.tolist()
            ]
            told["ts"] = int(self._now.ts)
            told["features"] = dict(zip(self._start.feature_names, values, strict=True))
            spec = self._start.actions
            told["target_bounds"] = [spec.low, spec.high]
        return told

    def step(self, target: float, times: int = 1) -> dict[str, Any]:
        """Hold a target for some bars and return what is seen then."""
        if self._now is None:
            raise VisitError("this session is over", remedy="Ask for its figures, or begin another")
        if not np.isfinite(target):
            raise VisitError("a target is a finite number", found=target)
        reward = 0.0
        for _ in range(times):
            self._targets.append(float(target))
            outcome = self._world.advance(self._trader.act(self._now).action)
            reward += outcome.reward
            over = outcome.terminated or outcome.truncated
            self._now = None if over else outcome.observation
            if self._now is None:
                break
        self._reward = reward
        return self.seen()

    def results(self) -> BacktestResults:
        """Return the results, once it is over."""
        if not self.finished:
            raise VisitError(
                "this session is not over",
                found=f"{len(self._targets)} of {len(self._bars) - 1} decisions",
            )
        return BacktestEngine(self._config).run(self._bars, Visitor(self._targets), self._seed)


class VisitBook:
    """The visits that are open, by name; calls from several threads come one after the other.

    Args:
        trusted: Whether visitors may name markets that read files or exchanges, and agents that
            run programs or ask servers.
    """

    def __init__(self, *, trusted: bool = False, most: int = MOST_VISITS) -> None:
        self._trusted, self._most = trusted, most
        self._open: dict[str, Visit] = {}
        self._count, self._lock = 0, Lock()

    def markets(self) -> list[str]:
        """Return the markets that may be named."""
        return [each for each in names("market") if self._trusted or each not in REACHES_OUT]

    def agents(self) -> list[str]:
        """Return the agents that may be named."""
        known = names("agent")
        return [each for each in known if self._trusted or not each.startswith(RUNS_PROGRAMS)]

    def begin(self, config: VisitConfig) -> dict[str, Any]:
        """Open a visit and return its name and what is seen first."""
        bars = self._bars(config)
        with self._lock:
            if len(self._open) >= self._most:
                raise VisitError("too many sessions are open", expected=f"at most {self._most}")
            visit = Visit(bars, config.seed)
            self._count += 1
            name = f"visit-{self._count}"
            self._open[name] = visit
            return {"session": name, **visit.seen()}

    def step(self, name: str, target: float, times: int = 1) -> dict[str, Any]:
        """Let a visitor decide."""
        with self._lock:
            return {"session": name, **self._find(name).step(target, times)}

    def end(self, name: str) -> dict[str, Any]:
        """Return the figures of a visit if it is over, and forget it."""
        with self._lock:
            visit = self._find(name)
            del self._open[name]
            told = figures(visit.results()) if visit.finished else {"figures": None}
            return {"session": name, "finished": visit.finished, **told}

    def backtest(self, agent: Ref, config: VisitConfig) -> dict[str, Any]:
        """Run an agent by name over a market and return its figures."""
        if agent.use not in self.agents():
            raise _unknown("agent", agent.use, self.agents())
        make("agent", agent)  # wrong parameters are told before a market is made
        return figures(BacktestEngine().run(self._bars(config), agent, config.seed))

    def _find(self, name: str) -> Visit:
        if name not in self._open:
            raise VisitError("there is no such session", found=name)
        return self._open[name]

    def _bars(self, config: VisitConfig) -> Bars:
        if config.market not in self.markets():
            raise _unknown("market", config.market, self.markets())
        if not 2 <= config.bars <= MOST_BARS:
            raise ConfigError("bars", found=config.bars, expected=f"2 to {MOST_BARS}")
        params = {"n_bars": config.bars}
        return open_market(Ref(use=config.market, params=params), Seeds(config.seed))


def figures(run: BacktestResults) -> dict[str, Any]:
    """Return the figures of a backtest as plain values; what is unknown is None."""
    told = {
        name: value if value is None or np.isfinite(value) else None
        for name, value in run.metrics.as_dict().items()
        if value is None or isinstance(value, int | float)
    }
    return {
        "agent": run.agent,
        "figures": told,
        "final_equity": float(run.equity[-1]),
        "equity_hash": run.equity_hash,
    }


def _unknown(noun: str, name: str, known: list[str]) -> VisitError:
    return VisitError(f"no {noun} of this name may be used", found=name, expected=", ".join(known))
