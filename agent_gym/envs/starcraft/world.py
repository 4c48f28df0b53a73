"""One battle of StarCraft II as a World; to a team it is the battle of our own engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import AgentError, AgentGymError, VenueError
from agent_gym.core.registry import register
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
from agent_gym.envs.battle.contract import NO_OP, STOP
from agent_gym.envs.battle.maps import battle_map
from agent_gym.envs.starcraft.config import StarCraftConfig
from agent_gym.envs.starcraft.examination import located
from agent_gym.envs.starcraft.link import Link
from agent_gym.envs.starcraft.messages import (
    PROTOCOL,
    Begun,
    GameLost,
    Opened,
    Saved,
    Stepped,
)
from agent_gym.envs.starcraft.recording import Recording, Trace, keep, new_folder
from agent_gym.envs.starcraft.senses import Reader, Senses

T = TypeVar("T")


class StarCraftWorld:
    """Implements World on a worker that plays the game; close() ends both.

    Roles, names and the order of all that is seen are those of world ``battle`` on the same map. An
    action that is not legal is played as stop. ``info`` of the last outcome says if the battle was
    ``won`` and if the ``episode_limit`` was reached, which is a defeat and not a truncation.
    """

    def __init__(self, config: StarCraftConfig) -> None:
        self.config = config
        self.map = battle_map(config.map)
        self._reader = Reader(self.map)
        self.contract = self._reader.contract
        self._installed = located(config.python, config.game, config.map)
        self.roles = tuple(Role(f"agent_{i}") for i in range(len(self.map.agents)))
        time = self.map.time
        self._period = Nanos(round(SECOND_NS * time.ticks_per_step / time.ticks_per_second))
        self._link: Link | None = None
        self._about: dict[str, Any] = {}
        self._senses: Senses | None = None
        self.trace = Trace(len(self.roles))
        self._over = True

    @property
    def worker_pid(self) -> int | None:
        """Return the number of the worker's process, which leads its group; None without one."""
        return None if self._link is None else self._link.pid

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe a role before the episode."""
        if role not in self.roles:
            raise AgentError("no such role fights here", found=role, expected=self.roles)
        spec = ActionSpec(n=len(self.contract.actions))
        return EpisodeStart(role, self.contract.observation, spec, seeds, self._period)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Begin a battle."""
        # SMAC starts a second client and forgets the first if an episode was not played out
        if self._link is None or self.config.fresh_client or not self._over:
            self._open(seeds.child("battle").as_int())
        begun = self._ask("reset", Begun, self.config.launch_timeout_s)
        self._about["game_version"] = begun.game_version
        self._about["episodes"] += 1
        self.trace = Trace(len(self.roles))
        self._look(self._read(begun))
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
        chosen = [self._legal(i, actions[role]) for i, role in enumerate(self.roles)]
        came = self._ask("step", Stepped, self.config.step_timeout_s, actions=chosen)
        senses, reward = self._read(came), self._paid(came)
        self.trace.actions.append(chosen)
        self.trace.rewards.append(reward)
        self._look(senses)
        self._over = came.ended
        info = {"won": came.won, "episode_limit": came.limit} if came.ended else None
        if info is not None:
            self._about |= info
        return {
            role: Outcome(seen, reward, came.ended, False, info)
            for role, seen in self._observations().items()
        }

    def state(self) -> FloatArray:
        """Return the whole battle, for who trains; the names are in ``contract.state``."""
        return self._now().state.copy()

    def alive(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which agents live: the mask for losses, since the dead decide nothing."""
        return np.array([unit.hp > 0.0 for unit in self._now().units[: len(self.roles)]])

    def save_replay(self, place: Path, *, checkpoint: str | None = None) -> Recording:
        """Save the episode that has just ended, in a new folder of its own.

        Args:
            place: Where the folder is made.
            checkpoint: Hash of the policy that played, for the metadata.

        Raises:
            VenueError: No episode has ended, or this client has played several, which would all
                be in the file.
        """
        episodes = self._about.get("episodes", 0)
        if not self._over or self._link is None or episodes != 1:
            raise VenueError(
                "a replay holds one episode that was played to its end",
                found=f"{episodes} begun by this client, the last is "
                + ("over" if self._over else "under way"),
                remedy="Use fresh_client and save when the battle is over",
            )
        folder = new_folder(place, f"{self.map.name}-seed{self._about['seed']}")
        asked = {"folder": str(folder), "prefix": folder.name}
        saved = Path(self._ask("save", Saved, self.config.launch_timeout_s, **asked).path)
        if saved.parent != folder:
            raise GameLost("the replay is elsewhere", found=saved, expected=folder)
        about = {name: value for name, value in self._about.items() if name != "episodes"}
        about |= {
            "checkpoint": checkpoint,
            "difficulty": self.config.difficulty,
            "engine": "StarCraft II",
            "map": self.map.name,
            "return": sum(self.trace.rewards),
            "reward": self.config.reward,
            "steps": len(self.trace.actions),
        }
        return keep(saved, self.trace, about)

    def close(self) -> None:
        """End the game and the worker."""
        link, self._link, self._over = self._link, None, True
        if link is not None:
            link.close()

    def _open(self, seed: int) -> None:
        self.close()
        self._link = Link(self._installed.python, self._installed.game)
        opened = self._ask(
            "open",
            Opened,
            self.config.launch_timeout_s,
            protocol=PROTOCOL,
            map=self.map.name,
            seed=seed,
            difficulty=self.config.difficulty,
            game_version=self.config.game_version,
            step_mul=self.map.time.ticks_per_step,
            move_amount=float(self.map.move),
        )
        try:
            self._reader.check(opened)
        except VenueError:
            self.close()
            raise
        self._about = {"seed": seed, "smac": opened.smac, "pysc2": opened.pysc2, "episodes": 0}

    def _ask(self, ask: str, kind: type[T], timeout_s: float, **fields: Any) -> T:
        if self._link is None:
            raise VenueError("no game runs", where=ask, remedy="Call reset() first")
        try:
            return self._link.ask(ask, kind, timeout_s, **fields)
        except AgentGymError:
            self._link, self._over = None, True  # it has been ended with all that it began
            raise

    def _read(self, told: Begun | Stepped) -> Senses:
        try:
            return self._reader.read(told.look)
        except VenueError:
            self.close()
            raise

    def _look(self, senses: Senses) -> None:
        self._senses = senses
        self.trace.frames.append(senses.units)

    def _now(self) -> Senses:
        if self._senses is None:
            raise VenueError("no battle has begun", remedy="Call reset() first")
        return self._senses

    def _paid(self, came: Stepped) -> float:
        if self.config.reward == "dense":
            return came.reward
        return 0.0 if not came.ended else 1.0 if came.won else -1.0

    def _legal(self, i: int, action: Any) -> int:
        """Return the action of an agent as it is played."""
        value = action.item() if isinstance(action, np.ndarray | np.generic) else action
        n = len(self.contract.actions)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < n:
            raise AgentError(
                "not an action",
                where=f"role {self.roles[i]}",
                found=repr(action),
                expected=f"a whole number from 0 to {n - 1}",
            )
        legal = self._now().legal[i]
        return value if legal[value] else NO_OP if legal[NO_OP] else STOP

    def _observations(self) -> dict[Role, Observation]:
        senses = self._now()
        now = Nanos((len(self.trace.frames) - 1) * self._period)
        return {
            role: Observation(now, senses.observations[i].copy(), senses.legal[i].copy())
            for i, role in enumerate(self.roles)
        }


@register("world", "starcraft", StarCraftConfig)
def starcraft_world(config: StarCraftConfig) -> World:
    """Build a battle of StarCraft II; the game starts with the first reset."""
    return StarCraftWorld(config)
