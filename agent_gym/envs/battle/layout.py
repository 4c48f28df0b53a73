"""The memory that the kernels share with Python, and the numbers of a map as they need them.

Units stand in rows of 64 bytes, agents first: ``units[e, u]`` is unit u of environment e. A unit
lives while it has hit points. The kernels reach all of it by address (see ``Context``), because an
array that is handed to an inlined part costs a reference count each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import carray
from numpy.typing import NDArray

from agent_gym.core.kernels import inlined
from agent_gym.envs.battle.contract import contract_of
from agent_gym.envs.battle.maps import BattleMap
from agent_gym.exchange.kernel.memory import pointer

Records: TypeAlias = NDArray[Any]

NOBODY = -1
DENSE, SPARSE, KILLS = range(3)
REWARDS = {"dense": DENSE, "sparse": SPARSE, "kills": KILLS}


def _fields(kind: str, names: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names.split()]


# ``unhit`` counts ticks since the last hit; ``target`` is whom a unit fights and ``attacker`` who
# hit it last, as rows of units or NOBODY.
UNIT = np.dtype(_fields("<f8", "x y hp shield cooldown unhit") + _fields("<i8", "target attacker"))
# ``root`` is the environment's own hash, ``stream`` that of its episode, ``draws`` the count of
# random numbers taken from it.
CLOCK = np.dtype(_fields("<i8", "steps over won episode draws") + _fields("<u8", "root stream"))
# Where a unit goes in this tick, where its order leads it, and what it loses.
WORK = np.dtype(_fields("<f8", "move_x move_y walk_x walk_y lost"))
# What a unit is, in ticks.
FACTS = np.dtype(
    _fields(
        "<f8",
        "start_x start_y jitter max_hp max_shield radius stride reload heal recharge calm armour",
    )
    + _fields("<i8", "kind hits")
)
# What one unit can do to another. ``within``, ``notice`` and ``leash`` are squared distances of
# centres: from where it can shoot at the other, notices it, and lets it go.
PAIR = np.dtype(_fields("<f8", "damage within notice leash"))
CONTEXT = np.dtype(
    _fields(
        "<i8",
        "n_envs auto_reset n_agents n_units ticks step_limit sticky agent_shields enemy_shields"
        " n_kinds reward_kind n_actions n_seen n_state facts pairs work units clocks actions"
        " observations state legal rewards ended won",
    )
    + _fields(
        "<f8",
        "per_kill win scale reload_jitter low high_x high_y width height sight shoot half_move"
        " meet_x meet_y",
    )
)


class Arena(NamedTuple):
    """One environment as the kernels see it: arrays without reference counts.

    A tuple cannot hold a record, so ``rules`` and ``clock`` are arrays of one.
    """

    rules: Any
    facts: Any
    pairs: Any
    work: Any
    units: Any
    clock: Any
    actions: Any
    observations: Any
    state: Any
    legal: Any


@inlined
def arena_of(context: int, e: int) -> Arena:
    """Return the view of environment e."""
    contexts = carray(pointer(context), (1,), CONTEXT)
    rules = contexts[0]
    n, m, seen, choices = rules.n_agents, rules.n_units, rules.n_seen, rules.n_actions
    every = rules.n_envs
    return Arena(
        contexts,
        carray(pointer(rules.facts), (m,), FACTS),
        carray(pointer(rules.pairs), (m, m), PAIR),
        carray(pointer(rules.work), (m,), WORK),
        carray(pointer(rules.units), (every, m), UNIT)[e],
        carray(pointer(rules.clocks), (every,), CLOCK)[e : e + 1],
        carray(pointer(rules.actions), (every, n), np.int64)[e],
        carray(pointer(rules.observations), (every, n, seen), np.float32)[e],
        carray(pointer(rules.state), (every, rules.n_state), np.float32)[e],
        carray(pointer(rules.legal), (every, n, choices), np.bool_)[e],
    )


def rules_of(battle: BattleMap) -> dict[str, float]:
    """Return the scalars of a map as they stand in a context."""
    contract, rule = contract_of(battle), battle.reward
    seen, state, actions = contract.widths
    return {
        "n_agents": len(battle.agents),
        "n_units": len(battle.units),
        "ticks": battle.time.ticks_per_step,
        "step_limit": battle.step_limit,
        "sticky": int(battle.targeting == "sticky"),
        "agent_shields": int(contract.agent_shields),
        "enemy_shields": int(contract.enemy_shields),
        "n_kinds": len(contract.kinds),
        "n_seen": seen,
        "n_state": state,
        "n_actions": actions,
        "reward_kind": REWARDS[rule.kind],
        "per_kill": rule.per_kill,
        "win": rule.win,
        "scale": reward_scale(battle),
        "reload_jitter": battle.cooldown_jitter_ticks,
        **_ground(battle),
    }


def reward_scale(battle: BattleMap) -> float:
    """Return what one raw point is worth."""
    rule = battle.reward
    if rule.kind == "sparse":
        return 1.0
    points = rule.per_kill * len(battle.enemies) + rule.win
    if rule.kind == "dense":
        points += sum(placed.kind.hp + placed.kind.shield for placed in battle.enemies)
    return rule.total / points


def _ground(battle: BattleMap) -> dict[str, float]:
    """Return the field, and where enemies march: the middle of where agents start."""
    return {
        "low": battle.margin,
        "high_x": battle.width - battle.margin,
        "high_y": battle.height - battle.margin,
        "width": battle.width,
        "height": battle.height,
        "sight": battle.sight,
        "shoot": battle.shoot,
        "half_move": battle.move / 2.0,
        "meet_x": sum(placed.x for placed in battle.agents) / len(battle.agents),
        "meet_y": sum(placed.y for placed in battle.agents) / len(battle.agents),
    }


def facts_of(battle: BattleMap) -> Records:
    """Return what every unit of a map is, in ticks."""
    rate, names = battle.time.ticks_per_second, contract_of(battle).kinds
    facts = np.zeros(len(battle.units), FACTS)
    for fact, placed in zip(facts, battle.units, strict=True):
        kind = placed.kind
        fact["start_x"], fact["start_y"] = placed.x, placed.y
        fact["jitter"] = battle.start_jitter if kind.speed > 0.0 else 0.0
        fact["max_hp"], fact["max_shield"], fact["radius"] = kind.hp, kind.shield, kind.radius
        fact["stride"], fact["reload"] = kind.speed / rate, kind.cooldown_s * rate
        fact["heal"], fact["recharge"] = (
            kind.hp_regeneration / rate,
            kind.shield_regeneration / rate,
        )
        fact["calm"], fact["armour"] = kind.shield_delay_s * rate, kind.armour
        fact["kind"], fact["hits"] = names.index(kind.name) if names else 0, kind.hits
    return facts


def pairs_of(battle: BattleMap) -> Records:
    """Return what every unit of a map can do to every other."""
    units = battle.units
    pairs = np.zeros((len(units), len(units)), PAIR)
    for i, one in enumerate(units):
        for j, other in enumerate(units):
            a, b = one.kind, other.kind
            edges = a.radius + b.radius
            pairs[i, j]["damage"] = a.damage + (a.bonus if b.armoured else 0.0)
            pairs[i, j]["within"] = (a.reach + edges) ** 2
            pairs[i, j]["notice"] = (max(a.scan, a.reach) + edges) ** 2
            pairs[i, j]["leash"] = (a.scan + battle.leash) ** 2
    return pairs
