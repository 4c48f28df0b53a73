"""What agents see of a battle, in the order that ``contract`` names."""

from __future__ import annotations

import math
from typing import Any

from agent_gym.core.kernels import inlined
from agent_gym.envs.battle.contract import ATTACK, EAST, NO_OP, NORTH, SOUTH, STOP, WEST
from agent_gym.envs.battle.layout import Arena
from agent_gym.envs.battle.rules import squared


@inlined
def allow(arena: Arena, i: int) -> None:
    """Write what an agent may do: the dead nothing, the living all but that."""
    unit, rules = arena.units[i], arena.rules[0]
    alive, step = unit.hp > 0.0, rules.half_move
    arena.legal[i, NO_OP], arena.legal[i, STOP] = not alive, alive
    arena.legal[i, NORTH] = alive and unit.y + step <= rules.high_y
    arena.legal[i, SOUTH] = alive and unit.y - step >= rules.low
    arena.legal[i, EAST] = alive and unit.x + step <= rules.high_x
    arena.legal[i, WEST] = alive and unit.x - step >= rules.low
    for j in range(rules.n_agents, rules.n_units):
        enemy = arena.units[j]
        near = squared(unit, enemy) <= rules.shoot * rules.shoot
        arena.legal[i, ATTACK + j - rules.n_agents] = alive and near and enemy.hp > 0.0


@inlined
def share(part: float, whole: float) -> float:
    """Return a part of a whole; there is nothing of nothing."""
    return part / whole if whole > 0.0 else 0.0


@inlined
def show_body(arena: Arena, i: int, k: int, u: int, shields: int) -> int:
    """Write hit points, shield and kind of a unit for agent i, from column k on."""
    unit, fact = arena.units[u], arena.facts[u]
    arena.observations[i, k] = share(unit.hp, fact.max_hp)
    k += 1
    if shields:
        arena.observations[i, k] = share(unit.shield, fact.max_shield)
        k += 1
    for c in range(arena.rules[0].n_kinds):
        arena.observations[i, k + c] = 1.0 if fact.kind == c else 0.0
    return k + int(arena.rules[0].n_kinds)


@inlined
def show_unit(arena: Arena, i: int, k: int, u: int) -> int:
    """Write a unit as agent i sees it, from column k on: nothing if it is dead or out of sight."""
    unit, me, rules = arena.units[u], arena.units[i], arena.rules[0]
    enemy = u >= rules.n_agents
    shields = rules.enemy_shields if enemy else rules.agent_shields
    dx, dy = unit.x - me.x, unit.y - me.y
    distance = math.sqrt(dx * dx + dy * dy)
    if unit.hp <= 0.0 or distance > rules.sight:
        end = k + 5 + shields + rules.n_kinds
        for c in range(k, end):
            arena.observations[i, c] = 0.0
        return int(end)
    shootable = enemy and arena.legal[i, ATTACK + u - rules.n_agents]
    arena.observations[i, k] = 1.0 if shootable or not enemy else 0.0
    arena.observations[i, k + 1] = distance / rules.sight
    arena.observations[i, k + 2] = dx / rules.sight
    arena.observations[i, k + 3] = dy / rules.sight
    return show_body(arena, i, k + 4, u, shields)


@inlined
def observe(arena: Arena, i: int) -> None:
    """Write what an agent sees; the dead see nothing."""
    rules = arena.rules[0]
    if arena.units[i].hp <= 0.0:
        for c in range(rules.n_seen):
            arena.observations[i, c] = 0.0
        return
    for way in range(NORTH, ATTACK):
        arena.observations[i, way - NORTH] = 1.0 if arena.legal[i, way] else 0.0
    k = ATTACK - NORTH
    for u in range(rules.n_agents, rules.n_units):
        k = show_unit(arena, i, k, u)
    for u in range(rules.n_agents):
        if u != i:
            k = show_unit(arena, i, k, u)
    show_body(arena, i, k, i, rules.agent_shields)


@inlined
def show_place(arena: Arena, k: int, unit: Any, shield: float) -> int:
    """Write where a unit of the state is, and its shield if that is not negative."""
    rules = arena.rules[0]
    arena.state[k] = (unit.x - rules.width / 2.0) / rules.width
    arena.state[k + 1] = (unit.y - rules.height / 2.0) / rules.height
    if shield < 0.0:
        return k + 2
    arena.state[k + 2] = shield
    return k + 3


@inlined
def show_state(arena: Arena) -> None:
    """Write the whole battle: every living unit, and what agents did last."""
    rules, k = arena.rules[0], 0
    for c in range(rules.n_state):
        arena.state[c] = 0.0
    for u in range(rules.n_units):
        unit, fact = arena.units[u], arena.facts[u]
        enemy = u >= rules.n_agents
        shields = rules.enemy_shields if enemy else rules.agent_shields
        end = k + (3 if enemy else 4) + shields + rules.n_kinds
        if unit.hp > 0.0:
            arena.state[k] = share(unit.hp, fact.max_hp)
            if not enemy:
                k += 1
                arena.state[k] = max(unit.cooldown, 0.0) / fact.reload
            shield = share(unit.shield, fact.max_shield) if shields else -1.0
            k = show_place(arena, k + 1, unit, shield)
            if rules.n_kinds:
                arena.state[k + fact.kind] = 1.0
        k = end
    for i in range(rules.n_agents):
        if arena.actions[i] >= 0:
            arena.state[k + arena.actions[i]] = 1.0
        k += rules.n_actions


@inlined
def sense(arena: Arena) -> None:
    """Write all that can be seen of one environment."""
    for i in range(arena.rules[0].n_agents):
        allow(arena, i)
        observe(arena, i)
    show_state(arena)
