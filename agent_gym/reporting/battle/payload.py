"""What the viewer is told of a battle: plain numbers, rounded to what can be seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import BattleMap, contract_of
from agent_gym.evaluation.battle import Film, Replay, shots_of

MARGIN = 2.5
NARROWEST, WIDEST = 1.15, 1.6
SMALLEST_HEIGHT = 9.0


class Box(NamedTuple):
    """The part of the field that is shown."""

    left: float
    bottom: float
    width: float
    height: float


def shown_box(film: Film) -> Box:
    """Return the part of the field in which the battle happens, somewhat wider than high."""
    x, y = film.units["x"], film.units["y"]
    width = float(np.ptp(x)) + 2 * MARGIN
    height = max(float(np.ptp(y)) + 2 * MARGIN, SMALLEST_HEIGHT)
    width, height = max(width, NARROWEST * height), max(height, width / WIDEST)
    centre_x, centre_y = (float(at.min() + at.max()) / 2 for at in (x, y))
    return Box(centre_x - width / 2, centre_y - height / 2, width, height)


def payload(film: Film, replay: Replay) -> dict[str, Any]:
    """Return all that the viewer draws."""
    battle, units = film.battle, film.units
    return {
        "agents": film.agents,
        "ticks": film.ticks,
        "perStep": battle.time.ticks_per_step,
        "perSecond": battle.time.ticks_per_second,
        "field": [battle.width, battle.height],
        "box": [round(each, 3) for each in shown_box(film)],
        "units": _kinds(battle),
        "x": _rounded(units["x"], 2),
        "y": _rounded(units["y"], 2),
        "hp": _rounded(units["hp"], 1),
        "shield": _rounded(units["shield"], 1),
        "target": units["target"].tolist(),
        "shots": [
            [shot.tick, shot.shooter, shot.target, round(shot.damage, 1)] for shot in shots_of(film)
        ],
        "deaths": [_death(film, u) for u in range(len(battle.units))],
        "actions": film.actions.tolist(),
        "actionNames": [name.replace("_", " ") for name in contract_of(battle).actions],
        "rewards": _rounded(np.cumsum(film.rewards), 3),
        "signals": {
            name: _rounded(array, 4)
            for name in replay.header.signals
            if (array := replay.signal(name)) is not None
        },
    }


def _kinds(battle: BattleMap) -> list[dict[str, Any]]:
    n = len(battle.agents)
    return [
        {
            "name": f"agent {u}" if u < n else f"enemy {u - n}",
            "kind": placed.kind.name.replace("_", " "),
            "label": str(u if u < n else u - n),
            "radius": placed.kind.radius,
            "reach": placed.kind.reach,
            "hp": placed.kind.hp,
            "shield": placed.kind.shield,
            "building": placed.kind.speed == 0,
        }
        for u, placed in enumerate(battle.units)
    ]


def _death(film: Film, u: int) -> int:
    """Return the tick at which a unit is dead, -1 if it lives to the end."""
    dead = np.flatnonzero(~film.alive[:, u])
    return int(dead[0]) if len(dead) else -1


def _rounded(array: FloatArray, digits: int) -> list[Any]:
    rounded: list[Any] = np.round(array, digits).tolist()
    return rounded
