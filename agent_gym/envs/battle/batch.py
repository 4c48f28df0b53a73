"""Many battles on one map, played by one compiled call a step."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, ConfigError, StoreError
from agent_gym.core.kernels import direct
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import kernel
from agent_gym.envs.battle.contract import contract_of
from agent_gym.envs.battle.layout import (
    CLOCK,
    CONTEXT,
    UNIT,
    WORK,
    Records,
    facts_of,
    pairs_of,
    rules_of,
)
from agent_gym.envs.battle.maps import BattleMap
from agent_gym.envs.exact import EnvState

Actions: TypeAlias = NDArray[np.integer[Any]]


class Senses(NamedTuple):
    """What decisions are made from; the next step overwrites it.

    ``observations[e, i]`` is what agent i sees, ``state[e]`` the whole battle (for who trains, not
    for who plays), and ``legal[e, i]`` what agent i may do.
    """

    observations: NDArray[np.float32]
    state: NDArray[np.float32]
    legal: NDArray[np.bool_]


class Results(NamedTuple):
    """What a step brought each environment; the next step overwrites it.

    With automatic resets ``ended`` is true for one step, and what is seen then belongs to the next
    episode. A battle that ran out of time has ended and was not won.
    """

    rewards: FloatArray
    ended: NDArray[np.bool_]
    won: NDArray[np.bool_]


class Snapshot(NamedTuple):
    """One environment at one moment; it can be put back into any batch of the same map."""

    map_hash: str
    units: Records
    clock: Records
    actions: NDArray[np.int64]

    def digest(self) -> str:
        """Return the SHA-256 of the map's hash and of the little-endian bytes of the state."""
        parts = (self.units, self.clock, self.actions)
        return sha256(self.map_hash.encode() + b"".join(p.tobytes() for p in parts)).hexdigest()


class BattleBatch:
    """E environments of one map.

    Environment e draws from its own hash of the seed and of e, so what happens in it does not
    depend on how many others there are.

    Args:
        battle: The map.
        n_envs: How many environments.
        auto_reset: Begin the next episode within the step that ends one. Otherwise an environment
            stays as it ended, and pays nothing, until ``reset``.

    Example:
        >>> from agent_gym.envs.battle.maps import MAPS
        >>> batch = BattleBatch(MAPS["3m"], 2)
        >>> batch.reset(Seeds(7)).observations.shape
        (2, 3, 30)
        >>> batch.step(np.ones((2, 3), dtype=np.int64)).rewards
        array([0., 0.])
    """

    def __init__(self, battle: BattleMap, n_envs: int, *, auto_reset: bool = True) -> None:
        if n_envs < 1:
            raise ConfigError("a batch needs an environment", where="n_envs", found=n_envs)
        self.map, self.n_envs, self.contract = battle, n_envs, contract_of(battle)
        seen, state, choices = self.contract.widths
        n, m = len(battle.agents), len(battle.units)
        self.units: Records = np.zeros((n_envs, m), UNIT)
        self.clocks: Records = np.zeros(n_envs, CLOCK)
        self.actions: NDArray[np.int64] = np.full((n_envs, n), -1, np.int64)
        self.facts: Records = facts_of(battle)
        self.pairs: Records = pairs_of(battle)
        self.senses = Senses(
            np.zeros((n_envs, n, seen), np.float32),
            np.zeros((n_envs, state), np.float32),
            np.zeros((n_envs, n, choices), np.bool_),
        )
        self.results = Results(
            np.zeros(n_envs), np.zeros(n_envs, np.bool_), np.zeros(n_envs, np.bool_)
        )
        self._work: Records = np.zeros(m, WORK)
        self._context = np.zeros(1, CONTEXT)
        told: dict[str, float] = {"n_envs": n_envs, "auto_reset": int(auto_reset)}
        for name, value in (rules_of(battle) | told | self._addresses()).items():
            self._context[name] = value
        self.address: int = self._context.ctypes.data
        self._step = direct(kernel.step)
        self._begun = False

    def _addresses(self) -> dict[str, int]:
        buffers = {
            "facts": self.facts,
            "pairs": self.pairs,
            "work": self._work,
            "units": self.units,
            "clocks": self.clocks,
            "actions": self.actions,
            **self.senses._asdict(),
            **self.results._asdict(),
        }
        return {name: buffer.ctypes.data for name, buffer in buffers.items()}

    @property
    def n_agents(self) -> int:
        """Return how many agents fight in each environment."""
        return len(self.map.agents)

    def reset(self, seeds: Seeds) -> Senses:
        """Begin the first episode under a seed in every environment."""
        kernel.seed(self.address, seeds.as_uint64())
        kernel.begin(self.address, 0, self.n_envs)
        for buffer in self.results:
            buffer[...] = 0
        self._begun = True
        return self.senses

    def step(self, actions: Actions) -> Results:
        """Play one decision of every agent; look at ``senses`` for what came of it.

        An action that is not legal is played as stop, and as nothing by the dead.
        """
        self._take(actions)
        self._step(self.address)
        return self.results

    def _take(self, actions: Actions) -> None:
        if not self._begun:
            raise AgentError("no battle has begun", remedy="Call reset() first")
        given = np.asarray(actions)
        choices = len(self.contract.actions)
        if given.shape != self.actions.shape or given.dtype.kind not in "iu":
            raise AgentError(
                "actions do not fit the batch",
                found=f"{given.dtype}{given.shape}",
                expected=f"whole numbers of shape {self.actions.shape}",
            )
        if given.min() < 0 or given.max() >= choices:
            raise AgentError(
                "not an action",
                found=f"{given.min()} to {given.max()}",
                expected=f"0 to {choices - 1}",
            )
        self.actions[...] = given

    def capture(self, e: int) -> Snapshot:
        """Return a copy of one environment."""
        kept = (self.units[e].copy(), self.clocks[e : e + 1].copy(), self.actions[e].copy())
        return Snapshot(self.map.content_hash, *kept)

    def restore(self, e: int, snapshot: Snapshot) -> None:
        """Put an environment back to a moment, of itself or of another one of the same map."""
        if snapshot.map_hash != self.map.content_hash:
            raise StoreError(
                "the snapshot is of another map",
                found=snapshot.map_hash,
                expected=self.map.content_hash,
            )
        self.units[e], self.actions[e] = snapshot.units, snapshot.actions
        self.clocks[e] = snapshot.clock[0]
        self._look(e, e + 1)

    def digest(self, e: int) -> str:
        """Return the SHA-256 of one environment."""
        return self.capture(e).digest()

    def get_state(self) -> EnvState:
        """Return all that decides how the batch goes on, as plain arrays."""
        arrays = {f"units_{name}": self.units[name].copy() for name in UNIT.names or ()}
        arrays |= {f"clock_{name}": self.clocks[name].copy() for name in CLOCK.names or ()}
        return EnvState(arrays | {"actions": self.actions.copy()}, self._identity())

    def set_state(self, state: EnvState) -> None:
        """Go on where another batch of the same map and size stood."""
        if state.values != self._identity():
            raise StoreError(
                "the state is of another batch", found=state.values, expected=self._identity()
            )
        for name in UNIT.names or ():
            self.units[name] = state.arrays[f"units_{name}"]
        for name in CLOCK.names or ():
            self.clocks[name] = state.arrays[f"clock_{name}"]
        self.actions[...] = state.arrays["actions"]
        self._look(0, self.n_envs)

    def _identity(self) -> dict[str, Any]:
        return {"map": self.map.content_hash, "n_envs": self.n_envs}

    def _look(self, first: int, end: int) -> None:
        """Fill the buffers from environments that were put where they are; no step was paid."""
        kernel.look(self.address, first, end)
        self.results.rewards[first:end] = 0.0
        self.results.ended[first:end] = self.clocks["over"][first:end] != 0
        self.results.won[first:end] = self.clocks["won"][first:end] != 0
        self._begun = True
