"""UMC under stress: a crowd that was bred to hurt it, and shocks; with the breaker at its limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, FloatArray
from agent_gym.envs.config import ContinuousTargets
from agent_gym.envs.reflexive import ReflexiveConfig
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.reflexive import (
    RealismTarget,
    RedTeamConfig,
    RedTeamResult,
    growth,
    red_team,
)
from agent_gym.evaluation.scenarios.scenario import Scenario, Subject
from agent_gym.evaluation.umc_walk.brake import Braked, drawdowns
from agent_gym.exchange.costs import AccountRules
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

CANDIDATES = 6
SCENARIOS = ("flash_crash", "price_gap")
SCENARIO_HOURS = 240.0
SCENARIO_MINUTES = (1, 5, 15, 30, 60)
MINUTE_NS = 60 * 10**9
Done = Callable[[int, int], None]


class StressConfig(Config):
    """How hard to look, and what must hold."""

    echo_size: int = Field(default=100, ge=8, le=10_000, description="echoes in the crowd")
    budget: int = Field(
        default=24, ge=CANDIDATES, le=100_000, description="crowds that the search may try"
    )
    seeds: int = Field(
        default=5, ge=1, le=1_000, description="fresh episodes in the worst crowd that was found"
    )
    stress_bars: int = Field(default=500, ge=50, le=100_000, description="bars of an episode")
    largest_distance: float = Field(
        default=2.5, gt=0.0, description="realism distance that no accepted crowd may pass"
    )
    realism_bars: int = Field(
        default=2_000, ge=200, le=100_000, description="bars that realism is judged by"
    )
    max_drawdown: float = Field(
        default=0.15, gt=0.0, lt=1.0, description="drawdown at which the breaker goes flat"
    )
    scenarios: bool = Field(default=True, description="also play flash crashes and price gaps")


@dataclass(frozen=True, slots=True)
class Held:
    """One episode: what was lost, and whether the breaker held the limit plus one bar."""

    market: str
    growth: float
    max_drawdown: float
    worst_bar: float
    tripped: bool | None
    held: bool


@dataclass(frozen=True, slots=True, eq=False)
class Stressed:
    """What the stress found."""

    config: StressConfig
    found: RedTeamResult
    episodes: tuple[Held, ...]
    scenarios: tuple[Held, ...]

    @property
    def held(self) -> bool:
        """Say whether the breaker held everywhere."""
        return all(each.held for each in (*self.episodes, *self.scenarios))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "config": self.config.model_dump(mode="json"),
            "red_team": self.found.as_dict(),
            "episodes": [asdict(each) for each in self.episodes],
            "scenarios": [asdict(each) for each in self.scenarios],
            "held": self.held,
        }


def stress(
    agent: Path,
    bars: Bars,
    account: BacktestConfig,
    config: StressConfig,
    seed: int = 0,
    done: Done | None = None,
) -> Stressed:
    """Search for the realistic crowd that an agent loses most in, then see whether it is held.

    Args:
        agent: Folder of an agent that has learned.
        bars: What a realistic market looks like.
        account: Costs and limits.
        config: How hard to look.
        seed: Of the search, the news and the shocks.
        done: Told how many generations are done.
    """
    ref = Ref(use="umc", params={"folder": str(agent)})
    market = _market(bars, account, config)

    def braked() -> Braked:
        return Braked(cast(Agent, make("agent", ref)), config.max_drawdown)

    generations = max(1, config.budget // CANDIDATES)
    plan = RedTeamConfig(
        market=market,
        largest_distance=config.largest_distance,
        realism_bars=config.realism_bars,
        generations=generations,
        candidates=CANDIDATES,
        seed=seed,
    )
    told = None if done is None else lambda number, _worst: done(number, generations)
    found = red_team(braked, RealismTarget.of(bars), plan, told)
    worst = None if found.worst is None else found.worst.market
    episodes = [
        _episode(name, braked(), where, Seeds(seed).child("stress", number), config)
        for name, where in (("usual crowd", market), ("worst crowd", worst))
        if where is not None
        for number in range(config.seeds)
    ]
    shocks = _shocks(ref, bars, account, config, seed) if config.scenarios else []
    return Stressed(config, found, tuple(episodes), tuple(shocks))


def _market(bars: Bars, account: BacktestConfig, config: StressConfig) -> ReflexiveConfig:
    spec = account.bounds(bars.instrument)
    costs = account.costs().model_copy(update={"impact": 0.0, "participation": None})
    said = {
        "bars": config.stress_bars,
        "period": format_period(bars.period_ns),
        "sigma": float(np.diff(np.log(bars.close)).std()),
        "actions": ContinuousTargets(low=spec.low, high=spec.high).model_dump(),
        "crowd": {"use": "echo", "params": {"size": config.echo_size}},
        "costs": costs.model_dump(),
        "account": AccountRules(allow_short=spec.low < 0.0).model_dump(),
    }
    return configure(ReflexiveConfig, said, where="the market of the red team")


def _episode(
    name: str, agent: Braked, market: ReflexiveConfig, seeds: Seeds, config: StressConfig
) -> Held:
    grown = growth(agent, market, seeds)
    equity = np.array(agent.equity)
    deepest, worst = drawdowns(equity)
    held = deepest <= config.max_drawdown + passing_loss(equity, config.max_drawdown)
    return Held(name, grown, deepest, worst, agent.tripped, held)


def passing_loss(equity: FloatArray, limit: float) -> float:
    """Return what the bar that passed the limit and the one after it lost; 0 if none did.

    The order to get out is filled in the bar after the one that passed.

    Example:
        >>> round(passing_loss(np.array([100.0, 90.0, 80.0, 78.0]), 0.15), 6)
        0.12
    """
    peak = np.maximum.accumulate(equity)
    below = 1.0 - equity / peak
    passed = np.flatnonzero(below > limit)
    if not passed.size:
        return 0.0
    first = int(passed[0])
    last = min(first + 1, equity.size - 1)
    return float((equity[max(first - 1, 0)] - min(equity[first], equity[last])) / peak[first])


def _shocks(
    ref: Ref, bars: Bars, account: BacktestConfig, config: StressConfig, seed: int
) -> list[Held]:
    """Play the shocks that other agents are tested with, on the account of the run."""
    minutes = bars.period_ns // MINUTE_NS
    if minutes not in SCENARIO_MINUTES:
        raise ConfigError(
            "no shocks are known for bars of this length",
            found=format_period(bars.period_ns),
            expected=", ".join(f"{each}m" for each in SCENARIO_MINUTES),
            remedy="Say --no-scenarios",
        )
    venue = account.model_copy(
        update={"max_drawdown": config.max_drawdown, "participation": None, "impact": 0.0}
    )
    found = []
    for name in SCENARIOS:
        params = {
            "hours": SCENARIO_HOURS,
            "bar_minutes": minutes,
            "venue": venue.model_dump(mode="json"),
        }
        scenario = cast(Scenario, make("scenario", Ref(use=name, params=params)))
        for number in range(config.seeds):
            seeds = Seeds(seed).child("stress", name, number)
            figures = scenario.play(seeds, Subject(agent=ref)).metrics
            lost, worst = float(figures["max_drawdown"] or 0.0), float(figures["worst_bar"] or 0.0)
            grown = float(np.log1p(figures["net_return"] or 0.0))
            held = lost <= config.max_drawdown + worst
            found.append(Held(name, grown, lost, worst, None, held))
    return found
