"""Teams that follow a script: yardsticks for who learns, and checks of the engine.

A script sees the whole battle of a batch and returns an action for every agent. It decides for all
environments at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.registry import unknown
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle.batch import BattleBatch
from agent_gym.envs.battle.contract import ATTACK, EAST, NO_OP, NORTH, SOUTH, STOP, WEST

IntArray: TypeAlias = NDArray[np.int64]
Script: TypeAlias = Callable[[BattleBatch], IntArray]

HEALTHIER = 29.0  # points: one hit of a spine crawler
BUSY_TICKS = 8.0
SAFE_DISTANCE, RETREAT_TICKS, TO_THE_MIDDLE = 5.0, 4.0, 0.02


def random_legal(seeds: Seeds) -> Script:
    """Return a script that draws among the legal actions, all alike."""
    rng = seeds.child("random_legal").rng()

    def decide(batch: BattleBatch) -> IntArray:
        legal = batch.senses.legal
        drawn: IntArray = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=-1)
        return drawn

    return decide


def nearest(batch: BattleBatch) -> IntArray:
    """Go to the nearest enemy and attack it."""
    return _engage(batch, _distances(batch).argmin(axis=-1))


def stand_still(batch: BattleBatch) -> IntArray:
    """Stay, and attack the nearest enemy that comes near."""
    target = _distances(batch).argmin(axis=-1)
    return _attack(batch, target, np.full(target.shape, STOP))


def focus_fire(batch: BattleBatch) -> IntArray:
    """Attack the weakest enemy that anybody can reach; while nobody can, go to the nearest one.

    Of enemies that are equally weak, all take the one that is nearest to any agent.
    """
    reachable = batch.senses.legal[:, :, ATTACK:].any(axis=1)
    points = np.where(reachable, _points(batch)[:, batch.n_agents :], np.inf)
    weakest = points <= points.min(axis=-1, keepdims=True)
    distances = _distances(batch)
    gap = np.where(_living(batch)[:, :, None], distances, np.inf).min(axis=1)
    chosen = np.where(weakest & reachable, gap, np.inf).argmin(axis=-1)
    somebody = reachable.any(axis=-1, keepdims=True)
    return _engage(batch, np.where(somebody, chosen[:, None], distances.argmin(axis=-1)))


def hand_over(batch: BattleBatch) -> IntArray:
    """Share the hits of an enemy that shoots at the nearest: for ``2s_vs_1sc``.

    All attack. An agent that is clearly healthier than another and not the nearest to the enemy
    steps forward while it reloads, so that the next hit is its own.
    """
    n, alive, distances = batch.n_agents, _living(batch), _distances(batch)
    gap = np.where(alive, distances.min(axis=-1), np.inf)
    points = _points(batch)[:, :n]
    weakest = np.where(alive, points, np.inf).min(axis=-1, keepdims=True)
    behind = gap > gap.min(axis=-1, keepdims=True)
    reloading = batch.units["cooldown"][:, :n] >= BUSY_TICKS
    forward = alive & behind & reloading & (points >= weakest + HEALTHIER)
    target = distances.argmin(axis=-1)
    return np.where(forward, _towards(batch, target), _engage(batch, target))


def kite(batch: BattleBatch) -> IntArray:
    """Shoot, and step away from enemies that are near while reloading: for ``3s_vs_5z``."""
    distances = _distances(batch)
    reloading = batch.units["cooldown"][:, : batch.n_agents] >= RETREAT_TICKS
    away = _living(batch) & reloading & (distances.min(axis=-1) < SAFE_DISTANCE)
    return np.where(away, _retreat(batch, distances), nearest(batch))


def _retreat(batch: BattleBatch, distances: FloatArray) -> IntArray:
    """Return the legal step that leads away from near enemies, not into a corner."""
    weight = 1.0 / np.maximum(distances, 0.1) ** 2
    forces = []
    for offset, name, size in zip(
        _offsets(batch), ("x", "y"), (batch.map.width, batch.map.height), strict=True
    ):
        inward = size / 2.0 - batch.units[name][:, : batch.n_agents]
        forces.append(TO_THE_MIDDLE * inward - (offset * weight).sum(axis=-1))
    east, north = forces
    ways = np.stack([north, -north, east, -east], axis=-1)
    legal = batch.senses.legal[:, :, NORTH:ATTACK]
    best: IntArray = np.where(legal, ways, -np.inf).argmax(axis=-1)
    return NORTH + best


def _living(batch: BattleBatch) -> NDArray[np.bool_]:
    """Return which agents live."""
    living: NDArray[np.bool_] = batch.units["hp"][:, : batch.n_agents] > 0.0
    return living


def _points(batch: BattleBatch) -> FloatArray:
    points: FloatArray = batch.units["hp"] + batch.units["shield"]
    return points


def _offsets(batch: BattleBatch) -> tuple[FloatArray, FloatArray]:
    """Return how far east and north of each agent each enemy is."""
    x, y, n = batch.units["x"], batch.units["y"], batch.n_agents
    return x[:, None, n:] - x[:, :n, None], y[:, None, n:] - y[:, :n, None]


def _distances(batch: BattleBatch) -> FloatArray:
    """Return the distance of each agent to each enemy; the dead are infinitely far."""
    alive = batch.units["hp"][:, None, batch.n_agents :] > 0.0
    return np.where(alive, np.hypot(*_offsets(batch)), np.inf)


def _towards(batch: BattleBatch, target: IntArray) -> IntArray:
    """Return the step that leads most directly to a target."""
    dx, dy = (np.take_along_axis(d, target[..., None], -1)[..., 0] for d in _offsets(batch))
    sideways = np.where(dx > 0.0, EAST, WEST)
    return np.where(np.abs(dx) >= np.abs(dy), sideways, np.where(dy > 0.0, NORTH, SOUTH))


def _attack(batch: BattleBatch, target: IntArray, otherwise: IntArray) -> IntArray:
    """Return attacks where they are legal, something else where not, nothing for the dead."""
    legal = batch.senses.legal
    can = np.take_along_axis(legal, ATTACK + target[..., None], -1)[..., 0]
    living = np.where(can, ATTACK + target, otherwise)
    return np.where(legal[:, :, NO_OP], NO_OP, living)


def _engage(batch: BattleBatch, target: IntArray) -> IntArray:
    return _attack(batch, target, _towards(batch, target))


SCRIPTS: dict[str, Callable[[Seeds], Script]] = {
    "random": random_legal,
    "nearest": lambda seeds: nearest,
    "stand": lambda seeds: stand_still,
    "focus": lambda seeds: focus_fire,
    "hand-over": lambda seeds: hand_over,
    "kite": lambda seeds: kite,
}


def script(name: str, seeds: Seeds) -> Script:
    """Return a script by name."""
    if name not in SCRIPTS:
        raise unknown("battle script", name, tuple(SCRIPTS))
    return SCRIPTS[name](seeds)
