"""What the oracle knows of each market: its chain, its filter, and what one told the truth sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.oracle.chain import (
    Chain,
    drift_chain,
    level_chain,
    regime_chain,
    still_chain,
    told_drift_chain,
    told_regime_chain,
)
from agent_gym.evaluation.oracle.filters import (
    Filter,
    drift_filter,
    kalman_gain,
    mispricing_filter,
    nothing_filter,
    regime_filter,
    signal_filter,
)
from agent_gym.evaluation.oracle.solution import Solution, solve
from agent_gym.markets.known import Drawn, KnownMarketConfig, full_name, known_config
from agent_gym.markets.known.config import (
    BP,
    PCT,
    BreakConfig,
    HiddenDriftConfig,
    MispricingConfig,
    RegimesConfig,
    SignalConfig,
    VolatilityConfig,
)
from agent_gym.markets.known.processes import MISPRICING_SIGNAL, signal_name
from agent_gym.markets.known.source import LAWS

NOT_OF_THE_LAW = {"n_bars", "source"}
LARGEST_COST_BP = 1_000.0

States = Callable[[Drawn], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What one sees who is told the hidden state of the next bar."""

    chain: Chain
    states: States


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All that the oracle needs of a market.

    Attributes:
        chain: What can be known, and what follows it.
        filter: How it comes to be known.
        told: The same for one who is told the truth, None if nothing is hidden.
        band: What the first coordinate of the chain is called, None if there is nothing to know.
        unit: One unit of the band, in the coordinate.
        second: Where on the second coordinate the bands are looked up.
        share: Share of the series in which there is something to earn.
    """

    chain: Chain
    filter: Filter
    told: Told | None = None
    band: str | None = None
    unit: float = 1.0
    second: float = 0.0
    share: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A plan and its best policy under a cost."""

    plan: Plan
    best: Solution


def solved(ref: Ref, cost_bp: float, *, allow_short: bool = True) -> Solved:
    """Return the best policy of the known market that a Ref names; it is kept for the next call."""
    if not 0.0 <= cost_bp <= LARGEST_COST_BP:
        raise ConfigError(
            "a cost is a number of basis points of what is traded",
            where="cost_bp",
            found=cost_bp,
            expected=f"0 to {LARGEST_COST_BP:g}",
        )
    return _solved(full_name(ref.use), _law_of(known_config(ref)), cost_bp, allow_short)


def plan_of(ref: Ref) -> Plan:
    """Return what the oracle knows of the market that a Ref names."""
    return _plan(full_name(ref.use), _law_of(known_config(ref)))


def forget() -> None:
    """Throw away every answer that was kept."""
    _solved.cache_clear()
    _plan.cache_clear()


def _law_of(config: KnownMarketConfig) -> str:
    return config.model_dump_json(exclude=NOT_OF_THE_LAW)


@lru_cache(maxsize=64)
def _solved(name: str, law: str, cost_bp: float, allow_short: bool) -> Solved:
    plan = _plan(name, law)
    return Solved(plan, solve(plan.chain, cost_bp * BP, allow_short=allow_short))


@lru_cache(maxsize=64)
def _plan(name: str, law: str) -> Plan:
    config: Any = LAWS[name].config.model_validate_json(law)
    make = PLANS.get(name, _no_plan)
    return make(config)


def _no_plan(config: KnownMarketConfig) -> Plan:
    """Return the plan of a null: nothing can be known, so nothing can be earned."""
    return Plan(still_chain(0.0, 1.0), nothing_filter())


def _drift_plan(config: HiddenDriftConfig) -> Plan:
    law = config.mean, config.sigma, config.stay
    return Plan(
        drift_chain(*law),
        drift_filter(*law),
        Told(told_drift_chain(*law), lambda drawn: (_next(drawn.truth["regime"]), _zeros(drawn))),
        band="belief",
        share=config.break_at if isinstance(config, BreakConfig) else 1.0,
    )


def _level_chain(config: MispricingConfig) -> Chain:
    noise = float(np.hypot(config.shock, config.sigma))
    return level_chain(config.memory, config.shock, config.reversion, noise)


def _shown_plan(config: MispricingConfig) -> Plan:
    seen = signal_filter(MISPRICING_SIGNAL, -config.deviation)
    return Plan(_level_chain(config), seen, band="mispricing_pct", unit=PCT)


def _hidden_plan(config: MispricingConfig) -> Plan:
    gain, surprise = kalman_gain(config.memory, config.shock, config.sigma)
    deviation = surprise**0.5
    chain = level_chain(config.memory, gain * deviation, config.reversion, deviation)
    told = Told(_level_chain(config), lambda drawn: (-drawn.truth["mispricing"], _zeros(drawn)))
    seen = mispricing_filter(config.memory, config.shock, config.sigma)
    return Plan(chain, seen, told, band="mispricing_pct", unit=PCT)


def _regime_plan(config: RegimesConfig) -> Plan:
    law = config.autocorrelation, config.sigma, config.stay
    told = Told(
        told_regime_chain(*law), lambda drawn: (_next(drawn.truth["regime"]), _returns(drawn))
    )
    return Plan(
        regime_chain(*law),
        regime_filter(*law),
        told,
        band="belief_after_a_rise_of_1_sigma",
        second=config.sigma,
    )


def _signal_plan(config: SignalConfig) -> Plan:
    spread = float((1.0 - config.memory**2) ** 0.5)
    chain = level_chain(config.memory, spread, config.slope, config.noise)
    return Plan(chain, signal_filter(signal_name(config.place), 1.0), band="signal")


def _volatility_plan(config: VolatilityConfig) -> Plan:
    mean = config.drift_bp * BP
    square = 0.5 * (config.calm_sigma_pct**2 + config.wild_sigma_pct**2) * PCT**2
    return Plan(still_chain(mean, mean**2 + square), nothing_filter())


PLANS: dict[str, Callable[[Any], Plan]] = {
    "known/m1": _drift_plan,
    "known/m2": _shown_plan,
    "known/m2-hidden": _hidden_plan,
    "known/m3": _regime_plan,
    "known/m4": _signal_plan,
    "known/m5": _volatility_plan,
    "known/b1": _drift_plan,
}


def _next(column: FloatArray) -> FloatArray:
    """Return what holds in the bar after each one; after the last nothing is traded any more."""
    return np.append(column[1:], column[-1])


def _zeros(drawn: Drawn) -> FloatArray:
    return np.zeros(len(drawn.bars))


def _returns(drawn: Drawn) -> FloatArray:
    return drawn.bars.close / drawn.bars.open - 1.0
