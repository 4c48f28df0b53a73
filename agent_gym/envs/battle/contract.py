"""What agents see and may do, by name; the layout is that of SMAC.

The kernels write in exactly this order, so a width is the number of names. Kinds of units are told
apart where one side has several, shields are shown for a side that has any.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.envs.battle.maps import BattleMap, Placed

NO_OP, STOP, NORTH, SOUTH, EAST, WEST, ATTACK = range(7)
MOVES = ("north", "south", "east", "west")


@dataclass(frozen=True, slots=True)
class Contract:
    """The names of all actions, of an agent's observation and of the state of the battle."""

    actions: tuple[str, ...]
    observation: tuple[str, ...]
    state: tuple[str, ...]
    kinds: tuple[str, ...]
    agent_shields: bool
    enemy_shields: bool

    @property
    def widths(self) -> tuple[int, int, int]:
        """Return the widths of an observation and of the state, and the number of actions."""
        return len(self.observation), len(self.state), len(self.actions)


def contract_of(battle: BattleMap) -> Contract:
    """Return the contract of a map.

    Example:
        >>> from agent_gym.envs.battle.maps import MAPS
        >>> contract_of(MAPS["3m"]).widths
        (30, 48, 9)
    """
    n, m = len(battle.agents), len(battle.enemies)
    kinds = _kinds(battle)
    ours = _own(battle.agents, kinds)
    theirs = _own(battle.enemies, kinds)
    actions = ("no_op", "stop", *MOVES, *(f"attack_{j}" for j in range(m)))
    observation = [f"can_go_{way}" for way in MOVES]
    for j in range(m):
        observation += [f"enemy_{j}_{name}" for name in ("shootable", "distance", "x", "y")]
        observation += [f"enemy_{j}_{name}" for name in theirs]
    for k in range(n - 1):
        observation += [f"ally_{k}_{name}" for name in ("visible", "distance", "x", "y")]
        observation += [f"ally_{k}_{name}" for name in ours]
    observation += [f"own_{name}" for name in ours]
    state: list[str] = []
    for i in range(n):
        state += [f"agent_{i}_{name}" for name in ("hp", "cooldown", "x", "y", *ours[1:])]
    for j in range(m):
        state += [f"enemy_{j}_{name}" for name in ("hp", "x", "y", *theirs[1:])]
    state += [f"agent_{i}_did_{name}" for i in range(n) for name in actions]
    return Contract(
        actions, tuple(observation), tuple(state), kinds, "shield" in ours, "shield" in theirs
    )


def _kinds(battle: BattleMap) -> tuple[str, ...]:
    """Return the kinds that have to be told apart, none if each side has a single one."""
    mixed = any(
        len({placed.kind.name for placed in side}) > 1 for side in (battle.agents, battle.enemies)
    )
    found = dict.fromkeys(placed.kind.name for placed in battle.units)
    return tuple(found) if mixed else ()


def _own(side: tuple[Placed, ...], kinds: tuple[str, ...]) -> list[str]:
    shields = any(placed.kind.shield > 0.0 for placed in side)
    return ["hp", *(["shield"] if shields else []), *(f"is_{kind}" for kind in kinds)]
