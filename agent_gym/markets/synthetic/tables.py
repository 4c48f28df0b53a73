"""From parameters to the tables that compiled code reads, and the calls into it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.periods import parse_period
from agent_gym.markets.synthetic import flow_kernel as flow
from agent_gym.markets.synthetic import price_kernel as price
from agent_gym.markets.synthetic.activity import Segments, offsets
from agent_gym.markets.synthetic.config import GeneratorConfig
from agent_gym.markets.synthetic.habits import EVERY_MIN
from agent_gym.markets.synthetic.parameters import Moves, Parameters, Season, Volatility
from agent_gym.markets.synthetic.records import FLOW_DTYPE, PRICE_DTYPE, fill

PRICE_STREAMS = ("volatility", "path", "events", "habits", "funding", "quotes")
FLOW_STREAMS = ("trades", "sizes", "takers", "flow_habits")
FUNDING_NS = 8 * HOUR_NS
_NO_MEMORY = 1e-12

Times = NDArray[np.int64]


def seasonal(season: Season, ts: Times, period_ns: int) -> FloatArray:
    """Return the season of each bar; an hour takes the mean over its minutes, which is 0."""
    hour = ts // HOUR_NS % 24
    weekend = (ts // DAY_NS + 3) % 7 >= 5  # 1970-01-01 was a Thursday
    found: FloatArray = np.where(
        weekend, np.array(season.weekend)[hour], np.array(season.weekday)[hour]
    )
    if period_ns < HOUR_NS:
        found = found + np.array(season.minute)[ts // MINUTE_NS % 60]
    return found


def walk_prices(
    config: GeneratorConfig, parameters: Parameters, seeds: Seeds, ts: Times, segments: Segments
) -> tuple[FloatArray, FloatArray]:
    """Return what the walk makes of each bar, and the quoted spreads."""
    period_ns = parse_period(parameters.period)
    dt_min = period_ns / MINUTE_NS
    inputs = np.empty((price.INPUT_ROWS, ts.size))
    inputs[price.SEASON] = seasonal(parameters.volatility.season, ts, period_ns)
    inputs[price.OFFSET] = offsets(segments, dt_min, parameters.activity)
    inputs[price.PUSH] = np.array(config.drift)[segments.activity] * segments.direction
    inputs[price.SETTLES] = ts % FUNDING_NS == 0
    rates = np.array([parameters.funding.probability, parameters.funding.rate_bp])
    record = fill(PRICE_DTYPE, parameters, _clock(parameters, dt_min, carry=config.carry))
    keys = _keys(seeds, PRICE_STREAMS)
    parts = volatility_parts(parameters.volatility, dt_min)
    walked = np.empty((price.OUTPUTS, ts.size))
    price.walk(keys, record, parts, inputs, rates, walked)
    spread = np.empty(ts.size)
    price.quote(keys[price.QUOTES], record, walked[price.HEAT], spread)
    return walked, spread


def flow_trades(
    parameters: Parameters, seeds: Seeds, ts: Times, walked: FloatArray
) -> dict[str, FloatArray]:
    """Return trades, volume and taker buys of each bar."""
    trades, sizes, takers = parameters.trades, parameters.sizes, parameters.takers
    period_ns = parse_period(parameters.period)
    work = np.empty((flow.WORK_ROWS, ts.size))
    work[flow.SEASON] = seasonal(parameters.volatility.season, ts, period_ns)
    work[flow.TRADES_SEASON] = seasonal(trades.season, ts, period_ns)
    work[flow.SIZE_SEASON] = seasonal(sizes.season, ts, period_ns)
    decay = np.exp(-1.0 / np.array(trades.tau))
    variances = (trades.variance, sizes.variance, takers.variance)
    noises = [np.vstack([decay, np.sqrt(np.array(v) * (1.0 - decay**2))]) for v in variances]
    past = np.vstack([np.exp(-1.0 / np.array(sizes.past_tau)), sizes.past])
    keys = _keys(seeds, FLOW_STREAMS)
    record = fill(FLOW_DTYPE, parameters, _clock(parameters, period_ns / MINUTE_NS))
    flow.fill_trades(keys, record, noises[0], walked, work)
    flow.fill_sizes(keys, record, noises[1], past, walked, work)
    flow.fill_tilt(keys, record, noises[2], np.array([takers.past_body]), walked, work)
    per_unit = round(1.0 / parameters.instrument.lot)
    lots = np.maximum(1.0, np.rint(np.exp(work[flow.TRADES] + work[flow.SIZE]) * per_unit))
    return {
        "trades": np.maximum(1.0, np.rint(np.exp(work[flow.TRADES]))),
        "volume": lots / per_unit,
        "taker_buy": np.rint(0.5 * lots * (1.0 + work[flow.TILT])) / per_unit,
    }


def volatility_parts(volatility: Volatility, dt_min: float) -> FloatArray:
    """Return the table of the parts of the log volatility."""
    tau, variance = np.array(volatility.tau_min), np.array(volatility.variance)
    share = np.array(volatility.shot_share)
    decay = np.exp(-dt_min / tau)
    chance = np.minimum(volatility.shots_per_tau * dt_min / tau, 0.5)
    parts = np.empty((price.PART_ROWS, tau.size))
    parts[price.START] = np.sqrt(variance)
    parts[price.DECAY] = decay
    parts[price.SCALE] = np.sqrt(variance * (1.0 - decay**2))
    parts[price.GAUSS] = np.sqrt(1.0 - share)
    parts[price.SHOT] = np.sqrt(share / (chance * (2.0 - chance)))
    parts[price.CHANCE] = chance
    parts[price.RESPONDS] = np.arange(tau.size) < volatility.responsive
    return parts


def _clock(parameters: Parameters, dt_min: float, *, carry: bool = False) -> dict[str, float]:
    habit_bars = max(1, round(EVERY_MIN / dt_min))
    memory = float(np.exp(-habit_bars * dt_min / parameters.character_tau_min))
    return {
        "dt_min": dt_min,
        "start_price": parameters.start_price,
        "habit_memory": memory,
        "habit_noise": float(np.sqrt(1.0 - memory**2)),
        "habit_bars": float(habit_bars),
        "carry": float(carry),
        "tick": parameters.instrument.tick,
        "per_unit": float(round(1.0 / parameters.instrument.tick)),
        "level": parameters.volatility.level,
        "unit_move": unit_move(parameters.moves),
        "log_slow_memory": float(np.log(max(parameters.overshoot.slow_memory, _NO_MEMORY))),
    }


def unit_move(moves: Moves) -> float:
    """Return the factor that gives moves ``z (1 + k z^2) + least sign(z)`` a variance of 1."""
    heavy, least = moves.kurtosis, moves.least
    square = 1.0 + 6.0 * heavy + 15.0 * heavy**2
    cross = 2.0 * least * np.sqrt(2.0 / np.pi) * (1.0 + 2.0 * heavy)
    return float(1.0 / np.sqrt(square + cross + least**2))


def _keys(seeds: Seeds, names: tuple[str, ...]) -> NDArray[np.uint64]:
    return np.array([seeds.child(name).as_uint64() for name in names], dtype=np.uint64)
