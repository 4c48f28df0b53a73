"""How a team fights, in figures of one battle each.

A figure that a battle does not define (whom to focus on where there is one enemy) is None and is
counted as such, never as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.envs.battle.contract import ATTACK
from agent_gym.envs.battle.layout import pairs_of
from agent_gym.evaluation.battle.film import Film
from agent_gym.evaluation.battle.recording import summed
from agent_gym.evaluation.battle.shots import Shot, shots_of

Better: TypeAlias = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Fight:
    """A film and what is read from it more than once."""

    film: Film

    @cached_property
    def shots(self) -> list[Shot]:
        """Return all shots."""
        return shots_of(self.film)

    @cached_property
    def ours(self) -> list[Shot]:
        """Return the shots of agents."""
        return [shot for shot in self.shots if shot.shooter < self.film.agents]

    @cached_property
    def theirs(self) -> list[Shot]:
        """Return the shots of enemies."""
        return [shot for shot in self.shots if shot.shooter >= self.film.agents]

    @cached_property
    def distances(self) -> FloatArray:
        """Return how far agents are from enemies, ``[ticks + 1, agents, enemies]``; inf if dead."""
        x, y, n = self.film.units["x"], self.film.units["y"], self.film.agents
        dx, dy = (at[:, :n, None] - at[:, None, n:] for at in (x, y))
        alive = self.film.alive
        both = alive[:, :n, None] & alive[:, None, n:]
        return np.where(both, np.hypot(dx, dy), np.inf)


def focus_fire(fight: Fight) -> float | None:
    """Return the share of attackers on the most attacked enemy.

    Counted are decisions in which at least two agents attack while at least two enemies live.
    """
    film, n = fight.film, fight.film.agents
    shares = []
    for t, actions in enumerate(film.actions):
        aims = actions[actions >= ATTACK]
        if len(aims) >= 2 and film.alive[film.decisions[t], n:].sum() >= 2:
            shares.append(np.bincount(aims).max() / len(aims))
    return float(np.mean(shares)) if shares else None


def overkill(fight: Fight) -> float | None:
    """Return the share of the agents' damage that its targets did not have any more."""
    wasted = sum(shot.overkill for shot in fight.ours)
    whole = wasted + _damage(fight.ours)
    return wasted / whole if whole > 0.0 else None


def damage_exchange(fight: Fight) -> float | None:
    """Return the share of all damage in the battle that the agents dealt."""
    dealt, taken = _damage(fight.ours), _damage(fight.theirs)
    return dealt / (dealt + taken) if dealt + taken > 0.0 else None


def time_in_range(fight: Fight) -> float | None:
    """Return the share of its life that an agent has an enemy in the reach of its weapon."""
    film, n = fight.film, fight.film.agents
    reach = np.sqrt(pairs_of(film.battle)["within"][:n, n:])
    lived = film.alive[:-1, :n]
    near = (fight.distances[:-1] <= reach).any(axis=-1)
    return float(near[lived].mean()) if lived.any() else None


def kiting_distance(fight: Fight) -> float:
    """Return how far an agent goes away from the nearest enemy it sees, while it reloads.

    Only its own way counts, not that of the enemy; the mean over agents.
    """
    film, n = fight.film, fight.film.agents
    x, y = film.units["x"], film.units["y"]
    gaps = fight.distances[:-1]
    nearest = gaps.argmin(axis=-1)
    before = gaps.min(axis=-1)
    there_x, there_y = (np.take_along_axis(at[:-1, n:], nearest, axis=1) for at in (x, y))
    after = np.hypot(x[1:, :n] - there_x, y[1:, :n] - there_y)
    counted = (before <= film.battle.sight) & (film.units["cooldown"][:-1, :n] > 0.0)
    counted &= film.alive[1:, :n]
    steps = np.maximum(np.where(counted, after - np.where(counted, before, 0.0), 0.0), 0.0)
    return float(steps.sum() / n)


def target_switches(fight: Fight) -> float | None:
    """Return how often an enemy's next shot is at another agent than its last, as a share.

    Counted are shots whose last target still lived, so that a death is no switch.
    """
    if fight.film.agents < 2:
        return None
    last: dict[int, int] = {}
    switched: list[bool] = []
    alive = fight.film.alive
    for shot in fight.theirs:
        before = last.get(shot.shooter)
        if before is not None and alive[shot.tick - 1, before]:
            switched.append(before != shot.target)
        last[shot.shooter] = shot.target
    return sum(switched) / len(switched) if switched else None


def damage_sharing(fight: Fight) -> float | None:
    """Return how evenly agents bear the damage: 1 if all the same, 0 if one of them bears all.

    Counted is what falls until the first of them dies: in a defeat, all have borne all they could.
    """
    film, n = fight.film, fight.film.agents
    losses = np.flatnonzero(film.alive[:, :n].sum(axis=-1) < n)
    end = int(losses[0]) if len(losses) else film.ticks
    borne = np.zeros(n)
    for shot in fight.theirs:
        if shot.tick <= end:
            borne[shot.target] += shot.damage
    if n < 2 or borne.sum() == 0.0:
        return None
    shares = borne / borne.sum()
    return float((1.0 / np.square(shares).sum() - 1.0) / (n - 1))


def survival(fight: Fight) -> float:
    """Return the share of agents that live at the end."""
    return float(fight.film.alive[-1, : fight.film.agents].mean())


def points_left(fight: Fight) -> float:
    """Return the share of their hit points and shields that the agents have at the end."""
    units, n = fight.film.units, fight.film.agents
    points = (units["hp"] + units["shield"])[[0, -1], :n].sum(axis=-1)
    return float(points[1] / points[0])


@dataclass(frozen=True, slots=True)
class BehaviourMetric:
    """One figure of a battle: its unit, which way is better, and how it is found."""

    name: str
    unit: str
    better: Better
    compute: Callable[[Fight], float | None]

    @property
    def words(self) -> str:
        """Return what it is, in a sentence."""
        return (self.compute.__doc__ or "").strip().split("\n")[0]


def won(fight: Fight) -> float:
    """Return 1 for a battle that was won, else 0."""
    return float(fight.film.won)


def total_reward(fight: Fight) -> float:
    """Return the sum of rewards."""
    return summed(fight.film.rewards)


def length(fight: Fight) -> float:
    """Return how many decisions were made."""
    return float(len(fight.film.actions))


METRICS = (
    BehaviourMetric("won", "share", "higher", won),
    BehaviourMetric("total_reward", "points", "higher", total_reward),
    BehaviourMetric("steps", "steps", "neither", length),
    BehaviourMetric("survival", "share", "higher", survival),
    BehaviourMetric("points_left", "share", "higher", points_left),
    BehaviourMetric("damage_exchange", "share", "higher", damage_exchange),
    BehaviourMetric("focus_fire", "share", "neither", focus_fire),
    BehaviourMetric("overkill", "share", "lower", overkill),
    BehaviourMetric("time_in_range", "share", "neither", time_in_range),
    BehaviourMetric("kiting_distance", "lengths", "neither", kiting_distance),
    BehaviourMetric("target_switches", "share", "neither", target_switches),
    BehaviourMetric("damage_sharing", "share", "neither", damage_sharing),
)


def behaviour(film: Film) -> dict[str, float | None]:
    """Return every figure of a battle by name."""
    fight = Fight(film)
    return {metric.name: metric.compute(fight) for metric in METRICS}


def _damage(shots: list[Shot]) -> float:
    return sum(shot.damage for shot in shots)
