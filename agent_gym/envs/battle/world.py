"""One battle as a World: every agent is a role of one team."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Outcome,
    Role,
    World,
)
from agent_gym.envs.battle.batch import BattleBatch
from agent_gym.envs.battle.maps import MAPS, BattleMap, RewardKind, battle_map


class BattleConfig(Config):
    """Which battle is fought and what it pays; all else is part of the map."""

    map: str = Field(default="3m", description=f"one of {', '.join(MAPS)}")
    reward: RewardKind = Field(
        default="dense",
        description="dense: damage, kills and the win; kills: kills and the win; sparse: 1 or -1",
    )

    @field_validator("map")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in MAPS:
            raise ValueError(f"no map has this name; known: {', '.join(MAPS)}")
        return name

    def battle(self) -> BattleMap:
        """Return the map with its reward."""
        return battle_map(self.map).paying(self.reward)


class BattleWorld:
    """Implements World on a batch of one.

    All roles are paid the same and leave together. The dead stay until the end: they see zeros and
    may do nothing. An action that is not legal is played as stop. ``info`` of the last outcome says
    if the battle was ``won``; running out of time is a defeat, not a truncation.
    """

    def __init__(self, config: BattleConfig) -> None:
        self.config = config
        self.batch = BattleBatch(config.battle(), 1, auto_reset=False)
        self.roles = tuple(Role(f"agent_{i}") for i in range(self.batch.n_agents))
        time = self.batch.map.time
        self._period = Nanos(round(SECOND_NS * time.ticks_per_step / time.ticks_per_second))
        self._over = True

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe a role before the episode."""
        if role not in self.roles:
            raise AgentError("no such role fights here", found=role, expected=self.roles)
        contract = self.batch.contract
        spec = ActionSpec(n=len(contract.actions))
        return EpisodeStart(role, contract.observation, spec, seeds, self._period)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Begin a battle."""
        self.batch.reset(seeds.child("battle"))
        self._over = False
        return self._observations()

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let every role act."""
        if self._over:
            raise VenueError("the battle is over", remedy="Call reset() for a new one")
        if set(actions) != set(self.roles):
            raise AgentError(
                "every role acts at once", found=sorted(actions), expected=list(self.roles)
            )
        chosen = [self._whole(role, actions[role]) for role in self.roles]
        rewards, ended, won = self.batch.step(np.array([chosen], dtype=np.int64))
        self._over = bool(ended[0])
        reward, info = float(rewards[0]), {"won": bool(won[0])} if self._over else None
        return {
            role: Outcome(seen, reward, self._over, False, info)
            for role, seen in self._observations().items()
        }

    def state(self) -> FloatArray:
        """Return the whole battle, for who trains; the names are in ``batch.contract.state``."""
        state: FloatArray = self.batch.senses.state[0].astype(np.float64)
        return state

    def _whole(self, role: Role, action: Any) -> int:
        value = action.item() if isinstance(action, np.ndarray | np.generic) else action
        n = len(self.batch.contract.actions)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < n:
            return value
        raise AgentError(
            "not an action",
            where=f"role {role}",
            found=repr(action),
            expected=f"a whole number from 0 to {n - 1}",
        )

    def _observations(self) -> dict[Role, Observation]:
        seen, _, legal = self.batch.senses
        now = Nanos(int(self.batch.clocks["steps"][0]) * self._period)
        return {
            role: Observation(now, seen[0, i].astype(np.float64), legal[0, i].copy())
            for i, role in enumerate(self.roles)
        }


@register("world", "battle", BattleConfig)
def battle_world(config: BattleConfig) -> World:
    """Build a battle."""
    return BattleWorld(config)
