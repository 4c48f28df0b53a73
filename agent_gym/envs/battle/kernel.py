"""The doors of the engine: begin episodes, play a step, look again."""

from __future__ import annotations

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.envs.battle import contract, layout, rules, senses
from agent_gym.envs.battle.layout import CLOCK, CONTEXT, DENSE, SPARSE, Arena, arena_of
from agent_gym.envs.battle.rules import act, collide, order, place, settle
from agent_gym.envs.battle.senses import sense
from agent_gym.exchange.kernel import memory
from agent_gym.exchange.kernel.memory import pointer
from agent_gym.markets.synthetic import draws
from agent_gym.markets.synthetic.draws import base_of

PARTS = (contract, layout, rules, senses, draws, memory)


@inlined
def alive(arena: Arena, first: int, end: int) -> int:
    """Return how many units of a range live."""
    n = 0
    for u in range(first, end):
        n += 1 if arena.units[u].hp > 0.0 else 0
    return n


@inlined
def enemy_points(arena: Arena) -> float:
    """Return what enemies have left in hit points and shields."""
    total = 0.0
    for u in range(arena.rules[0].n_agents, arena.rules[0].n_units):
        total += arena.units[u].hp + arena.units[u].shield
    return total


@inlined
def tick(arena: Arena) -> bool:
    """Play one tick and say whether both sides live on."""
    n, m = arena.rules[0].n_agents, arena.rules[0].n_units
    for u in range(m):
        if arena.units[u].hp > 0.0:
            act(arena, u)
    for u in range(m):
        if arena.units[u].hp > 0.0:
            settle(arena, u)
    collide(arena)
    return alive(arena, 0, n) > 0 and alive(arena, n, m) > 0


@inlined
def payment(arena: Arena, lost: float, kills: int) -> float:
    """Return what a step pays the team."""
    rules, clock = arena.rules[0], arena.clock[0]
    if rules.reward_kind == SPARSE:
        return 0.0 if clock.over == 0 else 1.0 if clock.won else -1.0
    points = rules.per_kill * kills + (rules.win if clock.won else 0.0)
    if rules.reward_kind == DENSE:
        points += max(lost, 0.0)
    return float(points * rules.scale)


@inlined
def play(arena: Arena) -> float:
    """Play one step of an environment and return what it pays."""
    rules, clock = arena.rules[0], arena.clock[0]
    n, m = rules.n_agents, rules.n_units
    points, enemies = enemy_points(arena), alive(arena, n, m)
    for i in range(n):
        order(arena, i)
    for _ in range(rules.ticks):
        if not tick(arena):
            break
    clock.steps += 1
    left = alive(arena, n, m)
    if left == 0:
        clock.won = 1
    if left == 0 or alive(arena, 0, n) == 0 or clock.steps >= rules.step_limit:
        clock.over = 1
    return payment(arena, points - enemy_points(arena), enemies - left)


@door("void(int64)", parts=PARTS)
def step(context: int) -> None:
    """Play the given actions in every environment and write what is seen after them.

    An environment whose episode ended begins a new one at once if asked to; otherwise it stays as
    it is and pays nothing.
    """
    every = carray(pointer(context), (1,), CONTEXT)[0]
    rewards = carray(pointer(every.rewards), (every.n_envs,), np.float64)
    ended = carray(pointer(every.ended), (every.n_envs,), np.bool_)
    won = carray(pointer(every.won), (every.n_envs,), np.bool_)
    for e in range(every.n_envs):
        arena = arena_of(context, e)
        if arena.clock[0].over:
            rewards[e] = 0.0
            continue
        rewards[e] = play(arena)
        ended[e], won[e] = arena.clock[0].over != 0, arena.clock[0].won != 0
        if every.auto_reset and arena.clock[0].over:
            place(arena)
        sense(arena)


@door("void(int64, int64, int64)", parts=PARTS)
def begin(context: int, first: int, end: int) -> None:
    """Begin the next episode in a range of environments."""
    for e in range(first, end):
        arena = arena_of(context, e)
        place(arena)
        sense(arena)


@door("void(int64, int64, int64)", parts=PARTS)
def look(context: int, first: int, end: int) -> None:
    """Write what is seen in a range of environments, for units that were put where they are."""
    for e in range(first, end):
        sense(arena_of(context, e))


@door("void(int64, uint64)", parts=PARTS)
def seed(context: int, key: int) -> None:
    """Give every environment its own hash and count its episodes anew."""
    every = carray(pointer(context), (1,), CONTEXT)[0]
    clocks = carray(pointer(every.clocks), (every.n_envs,), CLOCK)
    for e in range(every.n_envs):
        clocks[e].root = base_of(np.uint64(key), e)
        clocks[e].episode = 0
