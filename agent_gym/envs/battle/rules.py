"""One tick of a battle, in parts; ``kernel`` puts them together.

Everybody decides from where units stood when the tick began, and all damage of a tick is applied
together, so nobody gains by being first in an array: two units can kill each other.
"""

from __future__ import annotations

import math
from typing import Any

from agent_gym.core.kernels import inlined
from agent_gym.envs.battle.contract import ATTACK, EAST, NO_OP, NORTH, SOUTH, STOP, WEST
from agent_gym.envs.battle.layout import NOBODY, Arena
from agent_gym.markets.synthetic.draws import base_of, uniform

LEAST_DAMAGE = 0.5


@inlined
def spread(clock: Any, size: float) -> float:
    """Return the next random number of an environment, between -size and size."""
    clock.draws += 1
    return size * (2.0 * uniform(clock.stream, clock.draws) - 1.0)


@inlined
def squared(one: Any, other: Any) -> float:
    """Return the squared distance of two units."""
    dx, dy = one.x - other.x, one.y - other.y
    square: float = dx * dx + dy * dy
    return square


@inlined
def place(arena: Arena) -> None:
    """Begin the next episode of an environment."""
    clock = arena.clock[0]
    clock.stream = base_of(clock.root, clock.episode)
    clock.episode += 1
    clock.draws = clock.steps = clock.over = clock.won = 0
    for u in range(arena.rules[0].n_units):
        unit, fact = arena.units[u], arena.facts[u]
        unit.x, unit.y = fact.start_x, fact.start_y
        if fact.jitter > 0.0:
            unit.x += spread(clock, fact.jitter)
            unit.y += spread(clock, fact.jitter)
        unit.hp, unit.shield = fact.max_hp, fact.max_shield
        unit.cooldown = unit.unhit = 0.0
        unit.target = unit.attacker = NOBODY
    for i in range(arena.rules[0].n_agents):
        arena.actions[i] = -1


@inlined
def order(arena: Arena, i: int) -> None:
    """Turn the action of an agent into whom it fights or where it walks; illegal means stop."""
    action, unit, work = arena.actions[i], arena.units[i], arena.work[i]
    if not arena.legal[i, action]:
        action = NO_OP if unit.hp <= 0.0 else STOP
        arena.actions[i] = action
    unit.target = arena.rules[0].n_agents + action - ATTACK if action >= ATTACK else NOBODY
    stride = arena.facts[i].stride
    work.walk_x = stride * ((action == EAST) - (action == WEST))
    work.walk_y = stride * ((action == NORTH) - (action == SOUTH))


@inlined
def nearest(arena: Arena, j: int) -> int:
    """Return the nearest living agent in reach of an enemy, else the nearest that it notices."""
    near, far = math.inf, math.inf
    in_reach, noticed = NOBODY, NOBODY
    for i in range(arena.rules[0].n_agents):
        if arena.units[i].hp > 0.0:
            distance, pair = squared(arena.units[i], arena.units[j]), arena.pairs[j, i]
            if distance < near and distance <= pair.within:
                near, in_reach = distance, i
            if distance < far and distance <= pair.notice:
                far, noticed = distance, i
    return noticed if in_reach == NOBODY else in_reach


@inlined
def held(arena: Arena, j: int, i: int) -> int:
    """Return an agent if it lives and is not too far to be chased, else NOBODY."""
    if i == NOBODY or arena.units[i].hp <= 0.0:
        return NOBODY
    near = squared(arena.units[i], arena.units[j]) <= arena.pairs[j, i].leash
    return i if near else NOBODY


@inlined
def choose(arena: Arena, j: int) -> int:
    """Return whom an enemy fights in this tick.

    While it reloads it keeps its target. Reloaded, it takes the nearest agent in reach, else the
    nearest it notices, else the one that hit it last, else nobody.
    """
    unit = arena.units[j]
    kept = held(arena, j, unit.target)
    if kept != NOBODY:
        in_reach = squared(arena.units[kept], unit) <= arena.pairs[j, kept].within
        if unit.cooldown > 0.0 or (arena.rules[0].sticky and in_reach):
            return kept
    found = nearest(arena, j)
    return held(arena, j, unit.attacker) if found == NOBODY else found


@inlined
def walk(arena: Arena, u: int, x: float, y: float) -> None:
    """Let a unit go straight towards a point, no further than to it."""
    dx, dy = x - arena.units[u].x, y - arena.units[u].y
    distance = math.sqrt(dx * dx + dy * dy)
    if distance > 0.0:
        share = min(arena.facts[u].stride / distance, 1.0)
        arena.work[u].move_x, arena.work[u].move_y = share * dx, share * dy


@inlined
def shoot(arena: Arena, u: int, t: int) -> None:
    """Let a unit shoot: the shield loses at once, hit points when the tick ends."""
    target, fact = arena.units[t], arena.facts[u]
    for _ in range(fact.hits):
        rest = arena.pairs[u, t].damage - target.shield
        target.shield = max(-rest, 0.0)
        if rest > 0.0:
            arena.work[t].lost += max(rest - arena.facts[t].armour, LEAST_DAMAGE)
    target.unhit, target.attacker = 0.0, u
    arena.units[u].cooldown = fact.reload + spread(arena.clock[0], arena.rules[0].reload_jitter)


@inlined
def fight(arena: Arena, u: int, t: int) -> None:
    """Let a unit shoot at a living target in reach if it is reloaded; out of reach it follows."""
    unit, target = arena.units[u], arena.units[t]
    if squared(unit, target) > arena.pairs[u, t].within:
        walk(arena, u, target.x, target.y)
    elif unit.cooldown <= 0.0:
        shoot(arena, u, t)


@inlined
def act(arena: Arena, u: int) -> None:
    """Let a living unit do what it is after in this tick; an agent whose target died idles."""
    unit, work, rules = arena.units[u], arena.work[u], arena.rules[0]
    work.move_x = work.move_y = 0.0
    enemy = u >= rules.n_agents
    if enemy:
        unit.target = choose(arena, u)
    if unit.target != NOBODY:
        if arena.units[unit.target].hp > 0.0:
            fight(arena, u, unit.target)
    elif enemy:
        walk(arena, u, rules.meet_x, rules.meet_y)
    else:
        work.move_x, work.move_y = work.walk_x, work.walk_y


@inlined
def settle(arena: Arena, u: int) -> None:
    """Move a living unit, take away what it lost, and let the survivor recover and reload."""
    unit, work, fact = arena.units[u], arena.work[u], arena.facts[u]
    unit.x += work.move_x
    unit.y += work.move_y
    hp = unit.hp - work.lost
    work.lost = 0.0
    if hp <= 0.0:
        unit.hp = unit.shield = 0.0
        return
    unit.hp = min(hp + fact.heal, fact.max_hp)
    unit.unhit += 1.0
    if unit.unhit >= fact.calm:
        unit.shield = min(unit.shield + fact.recharge, fact.max_shield)
    unit.cooldown -= 1.0


@inlined
def push_apart(arena: Arena, i: int, j: int) -> None:
    """Push two units that overlap apart, half each; a building stays where it is."""
    one, other, a, b = arena.units[i], arena.units[j], arena.facts[i], arena.facts[j]
    room = a.radius + b.radius
    dx, dy = other.x - one.x, other.y - one.y
    square = dx * dx + dy * dy
    if square >= room * room:
        return
    distance = math.sqrt(square)
    if distance > 0.0:
        dx, dy = dx / distance, dy / distance
    else:
        dx, dy = 1.0, 0.0
    own = 0.0 if a.stride == 0.0 else 1.0 if b.stride == 0.0 else 0.5
    first, second = own * (room - distance), (1.0 - own) * (room - distance)
    if b.stride == 0.0:
        second = 0.0
    one.x, one.y = one.x - first * dx, one.y - first * dy
    other.x, other.y = other.x + second * dx, other.y + second * dy


@inlined
def collide(arena: Arena) -> None:
    """Push everybody apart, pair by pair, once, and keep all on the field."""
    rules = arena.rules[0]
    for i in range(rules.n_units):
        if arena.units[i].hp > 0.0:
            for j in range(i + 1, rules.n_units):
                if arena.units[j].hp > 0.0:
                    push_apart(arena, i, j)
    for u in range(rules.n_units):
        unit = arena.units[u]
        unit.x = min(max(unit.x, rules.low), rules.high_x)
        unit.y = min(max(unit.y, rules.low), rules.high_y)
