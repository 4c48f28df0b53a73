"""What the game shows, checked against the contract of our own engine and put in its order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import VenueError
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle.contract import NO_OP, Contract, contract_of
from agent_gym.envs.battle.maps import BattleMap
from agent_gym.envs.starcraft.messages import PROTOCOL, GameLost, Look, Opened, UnitLook

STALKER, ZEALOT = "_is_stalker", "_is_zealot"


class Senses(NamedTuple):
    """What agents see, the whole battle, what each agent may do, and all units, agents first."""

    observations: FloatArray
    state: FloatArray
    legal: NDArray[np.bool_]
    units: tuple[UnitLook, ...]


class Reader:
    """Reads what a worker shows of one map."""

    def __init__(self, battle: BattleMap) -> None:
        self.map, self.contract = battle, contract_of(battle)
        self._seen = _columns(self.contract.observation)
        self._state = _columns(self.contract.state)

    def check(self, opened: Opened) -> None:
        """Raise unless the game has the sizes of our own engine on this map."""
        if opened.protocol != PROTOCOL:
            raise GameLost(
                "the worker speaks another protocol", found=opened.protocol, expected=PROTOCOL
            )
        found = {name: getattr(opened, name) for name in _sizes(self.map, self.contract)}
        expected = _sizes(self.map, self.contract)
        if found != expected:
            wrong = [name for name in expected if found[name] != expected[name]]
            raise VenueError(
                "the game does not have the sizes of the contract",
                where=f"map {self.map.name}",
                found=", ".join(f"{name} {found[name]}" for name in wrong),
                expected=", ".join(f"{name} {expected[name]}" for name in wrong),
                remedy="Use SMAC (not SMACv2) with its own maps and settings",
            )

    def read(self, look: Look) -> Senses:
        """Return what is seen; whoever is dead sees nothing and may do nothing."""
        sizes = _sizes(self.map, self.contract)
        n = sizes["agents"]
        try:
            seen = np.array(look.seen, dtype=np.float64).reshape(n, sizes["observation"])
            state = np.array(look.state, dtype=np.float64).reshape(sizes["state"])
            legal = np.array(look.legal, dtype=np.bool_).reshape(n, sizes["actions"])
        except ValueError as error:
            raise self._wrong(str(error)) from error
        if len(look.units) != n + sizes["enemies"]:
            raise self._wrong(f"{len(look.units)} units")
        for i in range(n):
            dead = look.units[i].hp <= 0.0
            if legal[i, NO_OP] != dead or legal[i, NO_OP + 1 :].any() == dead:
                raise self._wrong(
                    f"agent {i} has {look.units[i].hp:g} hit points and may {legal[i]}"
                )
            if dead and seen[i].any():
                raise self._wrong(f"agent {i} is dead and sees something")
        return Senses(seen[:, self._seen], state[self._state], legal, tuple(look.units))

    def _wrong(self, found: str) -> VenueError:
        return VenueError(
            "what the game shows breaks the contract", where=f"map {self.map.name}", found=found
        )


def _sizes(battle: BattleMap, contract: Contract) -> dict[str, int]:
    observation, state, actions = contract.widths
    return {
        "agents": len(battle.agents),
        "enemies": len(battle.enemies),
        "actions": actions,
        "observation": observation,
        "state": state,
        "limit": battle.step_limit,
    }


def _columns(names: tuple[str, ...]) -> list[int]:
    """Return in which column SMAC shows each name.

    Its layout is ours but for one thing: it counts the kinds of enemies by the numbers of the game,
    where zealots come before stalkers, and the kinds of agents the other way round.
    """
    columns = {name: k for k, name in enumerate(names)}
    for name in names:
        if name.startswith("enemy_") and name.endswith(STALKER):
            other = name.removesuffix(STALKER) + ZEALOT
            columns[name], columns[other] = columns[other], columns[name]
    return [columns[name] for name in names]
