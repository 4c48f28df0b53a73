"""What a model of the world sees of a window: one row a step of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl.network import Floats
from agent_gym.envs.battle import Contract
from agent_gym.training.marl.batch import TEAM, Batch, Bools

DID = "_did_"
"""In the name of every feature of the state that tells what was done last."""


class Transitions(NamedTuple):
    """Rows of steps.

    Attributes:
        seen: State before the step without what was done last, what every agent does (one-hot),
            and who lives, ``[rows, inputs]``.
        change: State after it less state before it, ``[rows, features]``; 0 where ``ended``.
        reward: What the team was paid.
        ended: Whether the step ended the episode; what comes next is then another battle.
        source: Who played all of them, as the collector of their window said.
    """

    seen: Floats
    change: Floats
    reward: Floats
    ended: Bools
    source: str

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], source: str) -> Transitions:
        """Return the rows that ``columns`` were taken from."""
        seen, change, reward, ended = (columns[name] for name in COLUMNS)
        return cls(seen, change, reward, ended, source)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def some(self, rows: NDArray[np.int64]) -> Transitions:
        """Return some of the rows."""
        picked = {name: each[rows] for name, each in self.columns().items()}
        return Transitions.of(picked, self.source)


COLUMNS = ("seen", "change", "reward", "ended")


def core_features(contract: Contract) -> NDArray[np.int64]:
    """Return the places in the state of all but what was done last."""
    return np.array([i for i, name in enumerate(contract.state) if DID not in name], np.int64)


def transitions_of(batch: Batch, core: NDArray[np.int64]) -> Transitions:
    """Return the rows of a window, time first, then environments."""
    state = batch.state[..., core]
    before, after = state[:-1], state[1:]
    rows = batch.ended.size
    done = np.eye(batch.legal.shape[-1], dtype=np.float32)[batch.actions]
    parts = (before, done, batch.alive.astype(np.float32))
    seen = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
    change = np.where(batch.ended[..., None], np.float32(0.0), after - before)
    return Transitions(
        seen,
        change.reshape(rows, -1),
        batch.rewards[TEAM].reshape(rows),
        batch.ended.reshape(rows),
        batch.source,
    )


def inputs_of(contract: Contract, agents: int) -> int:
    """Return how many numbers a model sees."""
    return len(core_features(contract)) + agents * (len(contract.actions) + 1)
