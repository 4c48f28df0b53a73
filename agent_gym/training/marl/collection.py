"""Playing: a policy draws its actions in many environments, and all that matters is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl import Choice
from agent_gym.agents.marl.network import Floats
from agent_gym.agents.named_arrays import under
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.exact import EnvState, generator_state, set_generator_state
from agent_gym.training.marl.batch import FRESH, TEAM, Arrays, Batch
from agent_gym.training.marl.worlds import TeamWorlds


class Actor(Protocol):
    """Whatever chooses for every agent in every environment."""

    def act(
        self,
        observations: Floats,
        legal: NDArray[np.bool_],
        memory: Floats,
        draws: FloatArray | None = None,
    ) -> Choice: ...


@dataclass(frozen=True, slots=True)
class Episodes:
    """The episodes that ended in a window."""

    count: int
    wins: int
    total_return: float

    @property
    def win_rate(self) -> float | None:
        """Return the share that was won; None if none has ended."""
        return self.wins / self.count if self.count else None

    @property
    def mean_return(self) -> float | None:
        """Return the mean of their sums of rewards; None if none has ended."""
        return self.total_return / self.count if self.count else None


class Collector:
    """Plays window after window; an episode may go on in the next one.

    Args:
        worlds: Where it plays; they are reset.
        n_steps: Steps of a window.
        chunk: Steps between two memories that are kept.
        memory: Numbers that an agent remembers.
        seeds: Where starts and draws come from.
        source: Who plays, as its windows say.
    """

    def __init__(
        self,
        worlds: TeamWorlds,
        n_steps: int,
        chunk: int,
        memory: int,
        seeds: Seeds,
        source: str = FRESH,
    ) -> None:
        self._source = source
        self.worlds, self._n_steps, self._chunk = worlds, n_steps, chunk
        self._rng = seeds.child("draws").rng()
        self._width = memory
        self.begin(seeds.child("worlds"))

    def begin(self, seeds: Seeds) -> None:
        """Leave all episodes and begin others."""
        worlds = self.worlds
        worlds.reset(seeds)
        shape = (worlds.n_envs, worlds.n_agents, self._width)
        self._memory: Floats = np.zeros(shape, np.float32)
        self.critic_memory: Floats = np.zeros(shape, np.float32)
        self._begun = np.ones(worlds.n_envs, np.bool_)
        self._returns: FloatArray = np.zeros(worlds.n_envs)

    def collect(self, policy: Actor, n_steps: int | None = None) -> tuple[Batch, Episodes]:
        """Play one window and return it, with the episodes that ended in it.

        Args:
            policy: Who plays.
            n_steps: Steps of this window, if it is to be of another length.
        """
        steps = self._n_steps if n_steps is None else n_steps
        kept, wins, total = self._room(steps), 0, 0.0
        for t in range(steps):
            self._look(kept, t)
            self._memory[self._begun] = 0.0
            if t % self._chunk == 0:
                kept.actor_memory[t // self._chunk] = self._memory
            draws = self._rng.random(kept.actions.shape[1:])
            choice = policy.act(kept.observations[t], kept.legal[t], self._memory, draws)
            self._memory = choice.memory.copy()
            kept.actions[t], kept.log_probs[t] = choice.actions, choice.log_probs
            rewards, ended, won = self.worlds.step(choice.actions)
            kept.rewards[TEAM][t], kept.ended[t] = rewards, ended
            self._returns += rewards
            wins, total = wins + int(won[ended].sum()), total + float(self._returns[ended].sum())
            self._returns[ended] = 0.0
            self._begun = ended.copy()
        self._look(kept, steps)
        return kept, Episodes(int(kept.ended.sum()), wins, total)

    def _look(self, kept: Batch, t: int) -> None:
        seen, state, legal = self.worlds.senses
        kept.observations[t], kept.state[t], kept.begun[t] = seen, state, self._begun
        if t < len(kept.legal):
            kept.legal[t] = legal

    def _room(self, t: int) -> Batch:
        """Return an empty window of so many steps."""
        seen, state, choices = self.worlds.contract.widths
        e, n = self.worlds.n_envs, self.worlds.n_agents
        memory = self._memory.shape[-1]
        return Batch(
            source=self._source,
            weight=1.0,
            observations=np.zeros((t + 1, e, n, seen), np.float32),
            state=np.zeros((t + 1, e, state), np.float32),
            legal=np.zeros((t, e, n, choices), np.bool_),
            actions=np.zeros((t, e, n), np.int64),
            log_probs=np.zeros((t, e, n), np.float32),
            rewards={TEAM: np.zeros((t, e), np.float32)},
            ended=np.zeros((t, e), np.bool_),
            begun=np.zeros((t + 1, e), np.bool_),
            actor_memory=np.zeros((-(-t // self._chunk), e, n, memory), np.float32),
            critic_memory=self.critic_memory.copy(),
        )

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return all that decides what is played next."""
        worlds = self.worlds.get_state()
        arrays = {f"worlds/{name}": array for name, array in worlds.arrays.items()}
        arrays |= {
            "memory": self._memory.copy(),
            "critic_memory": self.critic_memory.copy(),
            "begun": self._begun.copy(),
            "returns": self._returns.copy(),
        }
        return arrays, {"worlds": worlds.values, "draws": generator_state(self._rng)}

    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Go on where another collector stood."""
        self.worlds.set_state(EnvState(under("worlds/", arrays), values["worlds"]))
        set_generator_state(self._rng, values["draws"])
        self._memory, self.critic_memory = arrays["memory"].copy(), arrays["critic_memory"].copy()
        self._begun, self._returns = arrays["begun"].copy(), arrays["returns"].copy()
