"""Inlined parts of the walk: a bar is planned, walked and printed on the grid of ticks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.kernels import inlined
from agent_gym.markets.synthetic.bar_path import (
    AT_OPEN,
    INSIDE,
    Path,
    Plan,
    count_moves,
    walk_bar,
)
from agent_gym.markets.synthetic.draws import exponential, normal, uniform
from agent_gym.markets.synthetic.habits import Habits

# Slots of the stream "events": each decision of a bar has a number of its own.
MOVES, JUMP, JUMP_SIZE, JUMP_SIGN, JUMP_PLACE, GAP, GAP_SIZE, GAP_SIGN = range(8)
FLIP, OPEN_SIDE, CLOSE_SIDE, HIGH_PRINT, LOW_PRINT, HOME, REACH_UP, REACH_DOWN = range(8, 16)
MOVES_NOISE = 16

MOST_OF_MOVES = 0.75  # the mean number of moves stays below this share of the most there can be
MOVES_AT_JUMP = 6
JUMP_CHANCE_CAP, JUMP_POWER = 0.25, -1.0 / 3.0
LARGEST_FORCE = 5.0
GAP_CHANCE_CAP = 0.5
LARGEST_OVERSHOOT = 0.3  # of a move, given back slowly


class Weather(NamedTuple):
    """What is known of a bar when it opens."""

    heat: float  # log volatility over its level
    calm: float  # the same without the memory of jumps
    sigma: float
    drift: float


class Walker(NamedTuple):
    """What the walk carries from bar to bar."""

    log_price: float
    last_tick: float
    slow: float
    fast: float
    score: float  # the last bar's own move in standard deviations
    kick: float
    excited: float


class Bar(NamedTuple):
    """One printed bar, in ticks, and what made it."""

    opened: float
    high: float
    low: float
    closed: float
    busy: float  # log of its moves over the usual number
    jump: float
    shock: float


@inlined
def jump_of(p: Any, base: np.uint64, weather: Weather, excited: float) -> float:
    """Return the size of the bar's jump, mostly 0: a power law whose mean is zero.

    With a skew, falls are rarer and larger than rises.
    """
    chance = p.jumps_rate_per_min * p.dt_min * np.exp(p.jumps_heat * weather.calm) + excited
    if uniform(base, JUMP) >= min(JUMP_CHANCE_CAP, chance):
        return 0.0
    size: float = p.jumps_scale * weather.sigma * uniform(base, JUMP_SIZE) ** JUMP_POWER
    size = min(p.jumps_cap, size)
    falls = uniform(base, JUMP_SIGN) < 0.5 * (1.0 - p.jumps_skew)
    size *= -1.0 - p.jumps_skew if falls else 1.0 - p.jumps_skew
    return size


@inlined
def gap_of(p: Any, base: np.uint64, heat: float, habit: float) -> int:
    """Return how many ticks lie between the last price and the first, mostly 0."""
    chance = p.prints_gap_rate * np.exp(p.prints_gap_elasticity * heat + p.prints_gap_drift * habit)
    if uniform(base, GAP) >= min(GAP_CHANCE_CAP, chance):
        return 0
    scale = p.prints_gap_ticks * np.exp(p.prints_gap_ticks_elasticity * heat)
    ticks = 2 + int(scale * exponential(base, GAP_SIZE))
    return -ticks if uniform(base, GAP_SIGN) < 0.5 else ticks


@inlined
def usual_moves(p: Any, heat: float, habit: float) -> float:
    """Return the mean number of moves in this heat."""
    mean = p.moves_mean * np.exp(p.moves_elasticity * heat + p.moves_drift * habit)
    cut: float = min(mean, MOST_OF_MOVES * p.moves_most)
    return cut


@inlined
def plan_of(
    p: Any, base: np.uint64, weather: Weather, habits: Habits, usual: float, jump: float
) -> Plan:
    """Settle how many moves the bar has and how large they are."""
    noise = np.exp(p.moves_noise * normal(base, MOVES_NOISE) - 0.5 * p.moves_noise**2)
    moves = count_moves(usual * noise, int(p.moves_most), uniform(base, MOVES))
    jump_at = -1
    if jump != 0.0:
        moves = max(moves, MOVES_AT_JUMP)
        jump_at = min(int(uniform(base, JUMP_PLACE) * moves), moves - 1)
    clock = 0.5 * p.moves_clock_share
    scale = (clock - 0.5) * np.log(max(moves, 1)) - clock * np.log(usual)
    step = weather.sigma * p.unit_move * np.exp(scale)
    stays = p.moves_return_share * np.exp(-p.moves_return_power * np.log(max(moves, 1)))
    home = jump_at < 0 and moves > 1 and uniform(base, HOME) < stays
    overshoot = p.overshoot_slow_drift * habits.overshoot + p.overshoot_slow_heat * weather.heat
    return Plan(
        moves,
        weather.sigma,
        step,
        min(p.overshoot_slow * np.exp(overshoot), LARGEST_OVERSHOOT),
        p.overshoot_tilt * habits.tilt,
        jump,
        jump_at,
        home,
        weather.drift,
    )


@inlined
def top_tick(p: Any, reach: float, place: int, first: float, last: float, draw: float) -> float:
    """Return the tick of the high; the low is the high of the mirrored path.

    ``reach``, ``first`` and ``last`` are the ticks below the highest point and the two ends. Where
    an end is the highest point, its far quote trades only sometimes; otherwise the print itself is
    the extreme, which minus infinity leaves to it.
    """
    if place == INSIDE:
        return reach + 1.0
    if draw >= p.prints_end_print:
        return -np.inf
    return first + 1.0 if place == AT_OPEN else last + 1.0


@inlined
def reached(p: Any, base: np.uint64, slot: int, sigma: float) -> float:
    """Return how much further than the moves the price reached for a moment, in logs."""
    chance = max(0.0, uniform(base, slot) - 1.0 + p.moves_wick_chance)
    further: float = p.moves_wick * sigma * chance
    return further


@inlined
def print_bar(
    p: Any, base: np.uint64, path: Path, start: float, opened: float, sigma: float
) -> tuple[float, float, float]:
    """Return high, low and close of a walked path in ticks."""
    first, last = np.floor(start), np.floor(start * np.exp(path.end))
    closed = last + np.floor(2.0 * uniform(base, CLOSE_SIDE))
    up, down = reached(p, base, REACH_UP, sigma), reached(p, base, REACH_DOWN, sigma)
    place = INSIDE if up > 0.0 else path.high_place
    reach = np.floor(start * np.exp(path.high + up))
    high = top_tick(p, reach, place, first, last, uniform(base, HIGH_PRINT))
    place = INSIDE if down > 0.0 else path.low_place
    reach = np.floor(-start * np.exp(path.low - down))
    low = -top_tick(p, reach, place, -first - 1.0, -last - 1.0, uniform(base, LOW_PRINT))
    return max(high, opened, closed), min(low, opened, closed), closed


@inlined
def next_bar(
    p: Any,
    event_base: np.uint64,
    path_base: np.uint64,
    walker: Walker,
    weather: Weather,
    habits: Habits,
) -> tuple[Walker, Bar]:
    """Make one bar and return what the walk carries on from it."""
    usual = usual_moves(p, weather.heat, habits.moves)
    jump = jump_of(p, event_base, weather, walker.excited)
    plan = plan_of(p, event_base, weather, habits, usual, jump)
    log_price = walker.log_price
    gap = gap_of(p, event_base, weather.heat, habits.gaps) if plan.moves > 0 else 0
    if gap != 0:
        log_price += np.log(1.0 + gap * p.tick / np.exp(log_price))
    start = np.exp(log_price) / p.tick
    side = 1.0 if walker.last_tick > np.floor(start) else 0.0
    if gap != 0:
        side = np.floor(2.0 * uniform(event_base, OPEN_SIDE))
    elif uniform(event_base, FLIP) < p.prints_flip:
        side = 1.0 - side
    opened = np.floor(start) + side
    path = walk_bar(p, path_base, plan, walker.slow, walker.fast)
    high, low, closed = print_bar(p, event_base, path, start, opened, weather.sigma)
    if plan.moves == 0:  # nothing moved: both quotes traded
        high, low = np.floor(start) + 1.0, min(np.floor(start), opened, closed)
        high = max(high, opened, closed)
    kick, excited = walker.kick, walker.excited
    if jump != 0.0:
        excited += p.jumps_excitation
        lift = 1.0 + (p.jumps_kick_tilt if jump < 0.0 else -p.jumps_kick_tilt)
        force = min(abs(jump) / (p.jumps_scale * weather.sigma), LARGEST_FORCE)
        kick = min(p.jumps_kick_cap, kick + p.jumps_kick * lift * force**p.jumps_kick_power)
    score = path.shock / weather.sigma
    carried = Walker(log_price + path.end, closed, path.slow, path.fast, score, kick, excited)
    busy = np.log((plan.moves + 0.5) / usual)
    return carried, Bar(opened, high, low, closed, busy, jump, path.shock)
