"""UMC under stress: a crowd that looks like its bars, the worst one near it, and shocks.

First a crowd is fitted to the bars, then the red team searches around it; the breaker is on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import Field

from agent_gym.agents.echo import GENOME_SIZE
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, FloatArray
from agent_gym.envs.config import ContinuousTargets
from agent_gym.envs.reflexive import ReflexiveConfig
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.reflexive import (
    FitConfig,
    FitResult,
    RedTeamConfig,
    RedTeamResult,
    fit_crowd,
    growth,
    red_team,
)
from agent_gym.evaluation.scenarios.market import MarketScenario
from agent_gym.evaluation.scenarios.market_run import MarketRun
from agent_gym.evaluation.scenarios.market_school import School
from agent_gym.evaluation.umc_walk.brake import Braked, fall_of
from agent_gym.exchange.costs import AccountRules
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

FIT_CANDIDATES = 12
CANDIDATES = 6
SPREAD = 0.3  # how far echoes of one family lie apart; the middle of them is what is searched
SCENARIOS = ("flash_crash", "price_gap")
SCENARIO_HOURS = 240.0
SCENARIO_MINUTES = (1, 5, 15, 30, 60)
MINUTE_NS = 60 * 10**9
SMALLEST = 1e-12
Done = Callable[[int, int], None]


class StressConfig(Config):
    """How hard to look, and what must hold."""

    echo_size: int = Field(default=100, ge=8, le=10_000, description="echoes in the crowd")
    fit_budget: int = Field(
        default=60,
        ge=FIT_CANDIDATES,
        le=100_000,
        description="crowds that are tried to find one that looks like the bars",
    )
    budget: int = Field(
        default=24,
        ge=0,
        le=100_000,
        description="crowds tried around the fitted one; below 6: that one alone",
    )
    seeds: int = Field(default=5, ge=1, le=1_000, description="fresh episodes in each crowd")
    stress_bars: int = Field(default=500, ge=50, le=100_000, description="bars of an episode")
    largest_distance: float = Field(
        default=1.5,
        gt=0.0,
        description="realism distance that no crowd may pass; 1: as far as real stretches lie",
    )
    realism_bars: int = Field(
        default=2_000,
        ge=200,
        le=100_000,
        description="bars of a stretch by which realism is judged; a fourth of all at most",
    )
    max_drawdown: float = Field(
        default=0.15, gt=0.0, lt=1.0, description="drawdown at which the breaker goes flat"
    )
    scenarios: bool = Field(default=True, description="also play flash crashes and price gaps")


@dataclass(frozen=True, slots=True)
class Held:
    """One episode: what was lost, and whether the breaker held.

    Attributes:
        market: Where.
        growth: Log growth of the account.
        max_drawdown: The deepest fall from a peak.
        worst_bar: The most that one bar took, of the peak.
        passing: What the bar took in which the limit was passed; 0 if it never was.
        leaving: What getting out in the bar after it took.
        tried: Whether anything was held at all: if not, the breaker had nothing to do.
        tripped: Whether the limit was passed.
        held: Whether no more was lost than the limit, that bar and getting out, and no more than
            the limit and the worst bar.
        held_strictly: The same without getting out: the limit and the bar that passed it alone.
    """

    market: str
    growth: float
    max_drawdown: float
    worst_bar: float
    passing: float
    leaving: float
    tried: bool
    tripped: bool
    held: bool
    held_strictly: bool

    @classmethod
    def of(cls, market: str, grown: float, equity: FloatArray, limit: float) -> Held:
        """Judge a path of equity."""
        fall = fall_of(equity, limit)
        held = fall.held(limit) and fall.deepest <= limit + fall.worst_bar
        return cls(
            market,
            grown,
            fall.deepest,
            fall.worst_bar,
            fall.passing,
            fall.leaving,
            tried=bool((equity != equity[0]).any()),
            tripped=fall.passing > 0.0,
            held=held,
            held_strictly=fall.held_strictly(limit),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Stressed:
    """What the stress found."""

    config: StressConfig
    fitted: FitResult
    found: RedTeamResult
    episodes: tuple[Held, ...]
    scenarios: tuple[Held, ...]

    @property
    def realistic(self) -> bool:
        """Say whether some crowd looks like the bars; if not, no loss in one says much."""
        return self.found.worst is not None

    @property
    def all_episodes(self) -> tuple[Held, ...]:
        """Return the episodes in crowds, then those with shocks."""
        return *self.episodes, *self.scenarios

    @property
    def held(self) -> bool:
        """Say whether the breaker held everywhere."""
        return all(each.held for each in self.all_episodes)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "config": self.config.model_dump(mode="json"),
            "fit": self.fitted.as_dict(),
            "red_team": self.found.as_dict(),
            "real_share_within_bound": self.found.target.real_share(self.config.largest_distance),
            "episodes": [asdict(each) for each in self.episodes],
            "scenarios": [asdict(each) for each in self.scenarios],
            "realistic": self.realistic,
            "held": self.held,
            "tried": sum(each.tried for each in self.all_episodes),
            "tripped": sum(each.tripped for each in self.all_episodes),
            "held_strictly": all(each.held_strictly for each in self.all_episodes),
        }


def stress(
    agent: Path,
    bars: Bars,
    account: BacktestConfig,
    config: StressConfig,
    seed: int = 0,
    done: Done | None = None,
) -> Stressed:
    """Fit a crowd to bars, search around it for the one that hurts most, and see what is held.

    Args:
        agent: Folder of an agent that has learned.
        bars: What a realistic market looks like.
        account: Costs and limits.
        config: How hard to look.
        seed: Of the search, the news and the shocks.
        done: Told how many generations are done, of fit and search.
    """
    ref = Ref(use="umc", params={"folder": str(agent)})

    def braked() -> Braked:
        return Braked(cast(Agent, make("agent", ref)), config.max_drawdown)

    first, then = config.fit_budget // FIT_CANDIDATES, config.budget // CANDIDATES

    def told(before: int) -> Callable[[int, float], None]:
        return lambda number, _: None if done is None else done(before + number, first + then)

    base = _market(bars, account, config).model_copy(update={"bars": config.realism_bars})
    plan = FitConfig(market=base, generations=first, candidates=FIT_CANDIDATES, seed=seed)
    fitted = fit_crowd(bars, plan, told(0))
    market = fitted.market.model_copy(update={"bars": config.stress_bars})
    search = RedTeamConfig(
        market=market,
        largest_distance=config.largest_distance,
        generations=then,
        candidates=CANDIDATES,
        seed=seed,
    )
    found = red_team(braked, fitted.target, search, told(first))
    places = {"fitted crowd": market}
    if found.worst is not None and found.worst is not found.baseline:
        places["worst crowd"] = found.worst.market
    episodes = [
        _episode(name, braked(), where, Seeds(seed).child("stress", number), config)
        for name, where in places.items()
        for number in range(config.seeds)
    ]
    shocks = _shocks(ref, bars, account, config, seed) if config.scenarios else []
    return Stressed(config, fitted, found, tuple(episodes), tuple(shocks))


def _market(bars: Bars, account: BacktestConfig, config: StressConfig) -> ReflexiveConfig:
    spec = account.bounds(bars.instrument)
    costs = account.costs().model_copy(update={"impact": 0.0, "participation": None})
    crowd = {"size": config.echo_size, "genome": [0.5] * GENOME_SIZE, "spread": SPREAD}
    said = {
        "bars": config.stress_bars,
        "period": format_period(bars.period_ns),
        "sigma": float(np.diff(np.log(bars.close)).std()),
        "actions": ContinuousTargets(low=spec.low, high=spec.high).model_dump(),
        "crowd": {"use": "echo", "params": crowd},
        "costs": costs.model_dump(),
        "account": AccountRules(allow_short=spec.low < 0.0).model_dump(),
    }
    return configure(ReflexiveConfig, said, where="the market of the red team")


def _episode(
    name: str, agent: Braked, market: ReflexiveConfig, seeds: Seeds, config: StressConfig
) -> Held:
    grown = growth(agent, market, seeds)
    return Held.of(name, grown, np.array(agent.equity), config.max_drawdown)


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
        scenario = cast("MarketScenario[Any]", make("scenario", Ref(use=name, params=params)))
        for number in range(config.seeds):
            seeds = Seeds(seed).child("stress", name, number)
            equity = _played(scenario, ref, venue, seeds)
            grown = float(np.log(max(equity[-1], SMALLEST) / equity[0]))
            found.append(Held.of(name, grown, equity, config.max_drawdown))
    return found


def _played(
    scenario: MarketScenario[Any], ref: Ref, venue: BacktestConfig, seeds: Seeds
) -> FloatArray:
    """Return the equity at every close of a shock."""
    bars, shocks = scenario.market(seeds)
    down = scenario.outages(bars, shocks, seeds.child("faults"))
    school = School(ref, venue, seeds, None)
    return MarketRun(school, None, seeds, down, scenario.wiring()).trade(bars)[0].equity
