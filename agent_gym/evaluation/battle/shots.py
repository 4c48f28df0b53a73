"""Who shot at whom, and what it cost: read from a film, by the rules of the engine.

A reload begins with a shot, so a weapon that is further from ready than a tick before has fired.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agent_gym.envs.battle.layout import Records, facts_of, pairs_of
from agent_gym.envs.battle.rules import LEAST_DAMAGE
from agent_gym.evaluation.battle.film import Film


class Shot(NamedTuple):
    """One shot: at which tick, who, at whom, what it took, and what the target did not have."""

    tick: int
    shooter: int
    target: int
    damage: float
    overkill: float


def shots_of(film: Film) -> list[Shot]:
    """Return all shots of a battle in the order of the engine: by tick, then by unit.

    Damage beyond what was left of a target counts as overkill of those who shot last in a tick.
    """
    facts, pairs, units = facts_of(film.battle), pairs_of(film.battle), film.units
    reload = units["cooldown"]
    fired = np.argwhere(reload[1:] > reload[:-1])
    found: list[Shot] = []
    tick, left = -1, _Left(units[0])
    for k, u in fired.tolist():
        if k != tick:
            tick, left = k, _Left(units[k])
        target = int(units["target"][k + 1, u])
        blow, armour = float(pairs[u, target]["damage"]), float(facts[target]["armour"])
        taken = over = 0.0
        for _ in range(int(facts[u]["hits"])):
            one, beyond = left.hit(target, blow, armour)
            taken, over = taken + one, over + beyond
        found.append(Shot(k + 1, u, target, taken, over))
    return found


class _Left:
    """What is left of everybody within a tick."""

    def __init__(self, units: Records) -> None:
        self._hp, self._shield = units["hp"].tolist(), units["shield"].tolist()

    def hit(self, target: int, blow: float, armour: float) -> tuple[float, float]:
        """Return what a blow takes, and what it would have taken more."""
        absorbed = min(blow, self._shield[target])
        rest = blow - self._shield[target]
        self._shield[target] = max(-rest, 0.0)
        if rest <= 0.0:
            return absorbed, 0.0
        wound = max(rest - armour, LEAST_DAMAGE)
        real = min(wound, self._hp[target])
        self._hp[target] -= real
        return absorbed + real, wound - real
