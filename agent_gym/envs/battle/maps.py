"""The maps: who stands where, and every number that a battle depends on.

A map is all there is to a battle but the seed. Its ``content_hash`` covers the facts of its units,
the time base, the jitter, how enemies choose targets and what is paid, together with the version of
the engine, so equal hashes and seeds mean equal battles.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import unknown
from agent_gym.envs.battle.units import MARINE, SPINE_CRAWLER, STALKER, ZEALOT, UnitKind

ENGINE_VERSION = 1
Targeting: TypeAlias = Literal["nearest", "sticky"]
RewardKind: TypeAlias = Literal["dense", "sparse", "kills"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A unit and where it starts, before jitter."""

    kind: UnitKind
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class TimeBase:
    """How seconds become ticks, and how many ticks pass between two decisions.

    The facts of units hold for the game speed "faster", which has 22.4 ticks a second. The 16
    ticks of the speed "normal" belong to other figures.
    """

    ticks_per_second: float = 22.4
    ticks_per_step: int = 8


@dataclass(frozen=True, slots=True)
class RewardRule:
    """What the team is paid.

    ``dense`` pays what enemies lost in hit points and shields (never for what they regained),
    ``per_kill`` and ``win``; ``kills`` pays the last two alone. Both are scaled so that a win in
    which nothing was regained pays ``total``. ``sparse`` pays 1 for a win and -1 for any other end.
    """

    kind: RewardKind = "dense"
    per_kill: float = 10.0
    win: float = 200.0
    total: float = 20.0


@dataclass(frozen=True, slots=True)
class BattleMap:
    """One battle: agents against enemies that a script plays.

    ``targeting`` is how a reloaded enemy picks among agents in reach: ``nearest`` takes the nearest
    one at every shot, ``sticky`` keeps its target while that can be reached. A chased agent is let
    go beyond the scan range and ``leash``. Starts are moved by up to ``start_jitter`` in each
    coordinate (buildings are not), a reload lasts up to ``cooldown_jitter_ticks`` more or less.
    """

    name: str
    agents: tuple[Placed, ...]
    enemies: tuple[Placed, ...]
    step_limit: int
    time: TimeBase = TimeBase()
    targeting: Targeting = "nearest"
    reward: RewardRule = RewardRule()
    start_jitter: float = 1.0
    cooldown_jitter_ticks: float = 1.0
    width: float = 32.0
    height: float = 32.0
    margin: float = 1.0
    sight: float = 9.0
    shoot: float = 6.0
    move: float = 2.0
    leash: float = 4.0

    @property
    def units(self) -> tuple[Placed, ...]:
        """Return all units, agents first."""
        return self.agents + self.enemies

    @property
    def content_hash(self) -> str:
        """Return the hash of everything that decides a battle but the seed."""
        return fingerprint({"engine": ENGINE_VERSION, "map": asdict(self)})

    def paying(self, kind: RewardKind) -> BattleMap:
        """Return the same battle with another reward."""
        return replace(self, reward=replace(self.reward, kind=kind))


def _column(kind: UnitKind, n: int, x: float) -> tuple[Placed, ...]:
    """Return n units one above the other, a length apart, around the middle of the map."""
    return tuple(Placed(kind, x, 16.0 + k - (n - 1) / 2) for k in range(n))


def _marines(n: int, step_limit: int, name: str) -> BattleMap:
    return BattleMap(name, _column(MARINE, n, 9.0), _column(MARINE, n, 23.0), step_limit)


_ALL = (
    _marines(1, 60, "1m_vs_1m"),
    _marines(3, 60, "3m"),
    _marines(8, 120, "8m"),
    BattleMap(
        "2s_vs_1sc",
        (Placed(STALKER, 11.12, 10.34), Placed(STALKER, 16.98, 10.37)),
        (Placed(SPINE_CRAWLER, 13.92, 20.04),),
        300,
    ),
    BattleMap(
        "2s3z",
        _column(STALKER, 2, 8.0) + _column(ZEALOT, 3, 10.0),
        _column(STALKER, 2, 24.0) + _column(ZEALOT, 3, 22.0),
        120,
    ),
    BattleMap("3s_vs_5z", _column(STALKER, 3, 9.0), _column(ZEALOT, 5, 23.0), 250),
)
MAPS = {battle.name: battle for battle in _ALL}


def battle_map(name: str) -> BattleMap:
    """Return a map by name."""
    if name not in MAPS:
        raise unknown("battle map", name, tuple(MAPS))
    return MAPS[name]
