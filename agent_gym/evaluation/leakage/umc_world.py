"""The worlds that UMC is checked in: closes of a known law, and a market that own orders move.

Both are drawn, so in the large they are synthetic; here they are the world that the agent is in,
and what the agent meets in them is primary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from agent_gym.agents.gate import Source, Tagged, Tags
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.config import ContinuousTargets
from agent_gym.envs.reflexive import (
    FILL_COLUMNS,
    DriftSignal,
    LinearImpact,
    ReflexiveConfig,
    ReflexiveWorld,
)
from agent_gym.evaluation.leakage.crowd import CLOSE, MARKER, Columns, draw_marker
from agent_gym.evaluation.leakage.echoes import PAID, PARTICIPATION, TRADED
from agent_gym.evaluation.leakage.umc_model import MACRO
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import compute_features
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.known import draw

HOUR_NS = 3_600 * 10**9
ORDER_CHANCE, LARGEST_ORDER = 0.2, 0.1
FIXED_BP, IMPACT_BP, NOISE_BP = 1.0, 20.0, 2.0
SIGMA = 0.006
HIDDEN_DRIFT = DriftSignal(strength=0.1, memory=0.99)

Decide = Callable[[Mapping[str, FloatArray], float], float]
"""Is shown one bar and a chance from 0 to 1; returns the position that is wanted."""


def regimes_of(close: FloatArray) -> dict[str, FloatArray]:
    """Return the columns that macrostates read, and where they are known; closes are enough."""
    opened = np.append(close[:1], close[:-1])
    bars = Bars(
        Instrument(kind="perpetual"),
        HOUR_NS,
        HOUR_NS * np.arange(close.size),
        opened,
        np.maximum(opened, close),
        np.minimum(opened, close),
        close,
        np.ones(close.size),
    )
    names, table = compute_features(bars).observations(np.float64)
    wanted = [part for name in MACRO.inputs for part in (name, f"{name}_known")]
    return {name: table[:, names.index(name)] for name in wanted}


def replayed(market: str, count: int, seeds: Seeds) -> Columns:
    """Return bars of a known market, and what own orders paid there that moved nothing."""
    drawn = draw(Ref(use=market, params={"n_bars": count}), seeds.child("market"))
    dice = seeds.child("orders").rng()
    size = LARGEST_ORDER * dice.random(count)
    paid = FIXED_BP + IMPACT_BP * np.sqrt(size) + NOISE_BP * dice.standard_normal(count)
    known = (dice.random(count) < ORDER_CHANCE).astype(np.float64)
    fills: dict[str, FloatArray] = {PAID: paid, PARTICIPATION: size, TRADED: known}
    close = np.asarray(drawn.bars.close, np.float64)
    return _met(close, {**fills, MARKER: draw_marker(count, seeds.child("replay"))}, "replay")


def traded(decide: Decide, bars: int, impact: float, chances: Seeds, seeds: Seeds) -> Columns:
    """Trade in a reflexive market without a crowd and return what was met there.

    A hidden drift makes it worth learning; only own orders can move its prices.

    Args:
        decide: The policy.
        bars: Bars to trade.
        impact: Deviations of a bar by which buying a whole position lifts prices.
        chances: Of the policy.
        seeds: Of the market.
    """
    usual = ReflexiveConfig()
    strength = impact * SIGMA * usual.daily_volume / usual.account.cash
    config = ReflexiveConfig(
        bars=bars,
        sigma=SIGMA,
        pull=0.0,
        crowd=None,
        signal=HIDDEN_DRIFT,
        impact=LinearImpact(strength=strength),
        actions=ContinuousTargets(low=-1.0, high=1.0),
    )
    world = ReflexiveWorld(config)
    (role,) = world.roles
    start, seen = world.start(role, seeds), world.reset(seeds)[role]
    marker = draw_marker(bars + 1, seeds.child("live"))
    dice = chances.rng().random(bars)
    wanted = (CLOSE, *(part for name in MACRO.inputs for part in (name, f"{name}_known")))
    places = {name: start.column(name) for name in (*wanted, *FILL_COLUMNS[:3])}
    rows = [seen.features]
    for t in range(bars):
        bar = {name: seen.features[[places[name]]] for name in wanted}
        outcome = world.advance(decide({**bar, MARKER: marker[t : t + 1]}, float(dice[t])))
        seen = outcome.observation
        rows.append(seen.features)
        if outcome.terminated:
            break
    table = np.array(rows)
    fills = {name: table[:, places[name]] for name in FILL_COLUMNS[:3]}
    return _met(table[:, places[CLOSE]], {**fills, MARKER: marker[: len(table)]}, "live")


def with_regimes(columns: Columns) -> Columns:
    """Return columns with those that macrostates read, made of the same rows."""
    close = columns[CLOSE]
    made = regimes_of(np.asarray(close.x, np.float64))
    return {**columns, **{name: Tagged(x, close.prov.running()) for name, x in made.items()}}


def _met(close: FloatArray, others: Mapping[str, FloatArray], run: str) -> Columns:
    tags = Tags.of(Source.PRIMARY, run, np.arange(close.size))
    columns = {CLOSE: close, **others}
    return with_regimes({name: Tagged(x, tags) for name, x in columns.items()})
