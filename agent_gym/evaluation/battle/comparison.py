"""One team against others on the same starts: every figure with an interval, every difference too.

Battles do not depend on each other, so their figures are resampled one by one. Differences are
those of pairs with the same start. Wins are counted: Wilson's interval, and Newcombe's for the
difference, which stay honest where a team wins all or none. Every interval is for itself, not for
the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import BattleMap
from agent_gym.evaluation.battle.behaviour import METRICS, BehaviourMetric, behaviour
from agent_gym.evaluation.battle.film import films
from agent_gym.evaluation.battle.players import Player
from agent_gym.evaluation.battle.recording import play
from agent_gym.evaluation.battle.starts import Start
from agent_gym.evaluation.statistics import Interval, seeds_interval, wilson

CHUNK = 50
LEAST_PAIRS = 2
WON = "won"
Tell: TypeAlias = Callable[[int, int], None]
Figures: TypeAlias = dict[str, list[float | None]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over the battles that define it; no interval if there are too few."""

    defined: int
    interval: Interval | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "defined": self.defined,
            **(self.interval.as_dict() if self.interval is not None else {"estimate": None}),
        }


@dataclass(frozen=True, slots=True)
class TeamFigures:
    """Who played, every figure of it, and the differences of the first team to it (if another)."""

    name: str
    version: str | None
    figures: dict[str, Figure]
    lead: dict[str, Figure] | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "checkpoint": self.version,
            "figures": {name: each.as_dict() for name, each in self.figures.items()},
            "lead": None
            if self.lead is None
            else {name: each.as_dict() for name, each in self.lead.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out, the team in question first."""

    battle: BattleMap
    seed: int
    episodes: int
    teams: tuple[TeamFigures, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "map": self.battle.name,
            "map_hash": self.battle.content_hash,
            "seed": self.seed,
            "episodes": self.episodes,
            "metrics": {
                each.name: {"unit": each.unit, "better": each.better, "words": each.words}
                for each in METRICS
            },
            "teams": [team.as_dict() for team in self.teams],
        }


def compare(
    players: Sequence[Player],
    battle: BattleMap,
    seed: int,
    episodes: int,
    tell: Tell | None = None,
) -> Comparison:
    """Let all play the same battles and hold the first against each of the others.

    Args:
        players: The team in question, then those it is compared with.
        battle: The map.
        seed: Where starts come from.
        episodes: How many battles each of them plays.
        tell: Is told how many battles of all are over.
    """
    if episodes < LEAST_PAIRS:
        raise ConfigError("an interval needs more battles", found=episodes, expected="at least 2")
    done, every = 0, episodes * len(players)
    tables: list[Figures] = []
    for player in players:
        table: Figures = {metric.name: [] for metric in METRICS}
        for first in range(1, episodes + 1, CHUNK):
            starts = [Start(seed, k) for k in range(first, min(first + CHUNK, episodes + 1))]
            for figures in measured(player, battle, starts):
                for name, figure in figures.items():
                    table[name].append(figure)
            done += len(starts)
            if tell is not None:
                tell(done, every)
        tables.append(table)
    node = Seeds(seed).child("behaviour")
    teams = tuple(
        TeamFigures(
            player.name,
            player.version,
            {metric.name: _mean(metric, table[metric.name], node) for metric in METRICS},
            None if k == 0 else {m.name: _lead(m, tables[0], table, node) for m in METRICS},
        )
        for k, (player, table) in enumerate(zip(players, tables, strict=True))
    )
    return Comparison(battle, seed, episodes, teams)


def measured(
    player: Player, battle: BattleMap, starts: Sequence[Start]
) -> list[dict[str, float | None]]:
    """Let somebody play and return the figures of every battle."""
    played = play(player, battle, starts)
    shown = films(battle, starts, [episode.actions for episode in played])
    return [behaviour(film) for film in shown]


def lead_of_wins(ours: Sequence[bool], theirs: Sequence[bool], level: float = 0.95) -> Interval:
    """Return the difference of two shares of the same tries, with Newcombe's interval (1998).

    It is made of both Wilson intervals and of how far the two go together, so it has a width even
    where all tries agree.

    Example:
        >>> found = lead_of_wins([True] * 20, [False] * 20)
        >>> found.estimate, round(found.low, 2), found.high
        (1.0, 0.77, 1.0)
    """
    n = len(ours)
    a, b = wilson(sum(ours), n, level), wilson(sum(theirs), n, level)
    phi = _together(ours, theirs)
    low = _reach(a.estimate - a.low, b.high - b.estimate, phi)
    high = _reach(a.high - a.estimate, b.estimate - b.low, phi)
    lead = a.estimate - b.estimate
    return Interval(lead, lead - low, lead + high, level)


def _reach(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(one * one - 2.0 * phi * one * other + other * other, 0.0))


def _together(ours: Sequence[bool], theirs: Sequence[bool]) -> float:
    """Return the correlation of two rows of yes and no; 0 if one of them never changes."""
    n, a, b = len(ours), sum(ours), sum(theirs)
    both = sum(x and y for x, y in zip(ours, theirs, strict=True))
    scale = math.sqrt(a * (n - a) * b * (n - b))
    return (n * both - a * b) / scale if scale > 0.0 else 0.0


def _mean(metric: BehaviourMetric, column: Sequence[float | None], node: Seeds) -> Figure:
    values = [value for value in column if value is not None]
    if metric.name == WON:
        return Figure(len(values), wilson(round(sum(values)), len(values)))
    return _resampled(values, node.child(metric.name))


def _lead(metric: BehaviourMetric, ours: Figures, theirs: Figures, node: Seeds) -> Figure:
    """Return the mean of ours - theirs over the starts that define both."""
    pairs = [
        (a, b)
        for a, b in zip(ours[metric.name], theirs[metric.name], strict=True)
        if a is not None and b is not None
    ]
    if metric.name == WON:
        one, other = ([bool(pair[k]) for pair in pairs] for k in (0, 1))
        return Figure(len(pairs), lead_of_wins(one, other))
    return _resampled([a - b for a, b in pairs], node.child(metric.name, "lead"))


def _resampled(values: Sequence[float], node: Seeds) -> Figure:
    if len(values) < LEAST_PAIRS:
        return Figure(len(values), None)
    return Figure(len(values), seeds_interval(values, node))
