"""What each kind of unit can do: public facts of the game, in seconds of its speed "faster"."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnitKind:
    """The facts of one kind of unit.

    Lengths are in the units of the map, ``reach`` is counted from edge to edge, and rates are per
    second. A shot deals ``damage`` (and ``bonus`` on what is armoured) ``hits`` times. A shield
    takes damage first, without armour, and comes back after ``shield_delay_s`` without a hit.
    Enemies notice who is within ``scan`` of them. A unit of speed 0 is a building.
    """

    name: str
    hp: float
    radius: float
    speed: float
    damage: float
    cooldown_s: float
    reach: float
    bonus: float = 0.0
    hits: int = 1
    armour: float = 0.0
    armoured: bool = False
    scan: float = 5.0
    hp_regeneration: float = 0.0
    shield: float = 0.0
    shield_regeneration: float = 0.0
    shield_delay_s: float = 0.0


MARINE = UnitKind(
    name="marine", hp=45, radius=0.375, speed=3.15, damage=6, cooldown_s=0.61, reach=5
)
STALKER = UnitKind(
    name="stalker",
    hp=80,
    radius=0.625,
    speed=4.13,
    damage=13,
    bonus=5,
    cooldown_s=1.34,
    reach=6,
    armour=1,
    armoured=True,
    shield=80,
    shield_regeneration=2.8,
    shield_delay_s=7.14,
)
ZEALOT = UnitKind(
    name="zealot",
    hp=100,
    radius=0.5,
    speed=3.15,
    damage=8,
    hits=2,
    cooldown_s=0.86,
    reach=0.1,
    armour=1,
    shield=50,
    shield_regeneration=2.8,
    shield_delay_s=7.14,
)
SPINE_CRAWLER = UnitKind(
    name="spine_crawler",
    hp=300,
    radius=1.125,
    speed=0,
    damage=25,
    bonus=5,
    cooldown_s=1.32,
    reach=7,
    armour=2,
    armoured=True,
    scan=10,
    hp_regeneration=0.38,
)
