"""The canary: if the battles of auxiliary teams were garbage, would the model of the world notice?

Two twins of an agent live through the same whole iteration. What one of them keeps of auxiliary
teams, and all that these see and are paid from now on, is garbage. Whatever way auxiliary data find
to the model, its numbers then differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from agent_gym.agents.marl.network import Floats
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import Results, Senses
from agent_gym.envs.exact import same_bits
from agent_gym.training.marl.amal.agent import AMALAgent
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.mixing import Mixed
from agent_gym.training.marl.worlds import AroundWorlds, MakeWorlds, TeamWorlds

GARBAGE = 1e6
KEPT_NOISE = 4096
Twin: TypeAlias = Callable[[MakeWorlds], AMALAgent]
"""Makes the agent as it stands, whose auxiliary teams play in other worlds."""


class GarbageWorlds(AroundWorlds):
    """What is legal stays; what is seen and paid is garbage."""

    def __init__(self, worlds: TeamWorlds, seeds: Seeds) -> None:
        super().__init__(worlds)
        self._rng = seeds.rng()

    @property
    @override
    def senses(self) -> Senses:
        """Return garbage, and what is legal."""
        return self._spoiled(self._worlds.senses)

    @override
    def reset(self, seeds: Seeds) -> Senses:
        """Leave all episodes and begin others."""
        return self._spoiled(self._worlds.reset(seeds))

    @override
    def step(self, actions: NDArray[np.integer[Any]]) -> Results:
        """Take a step; garbage is paid."""
        found = self._worlds.step(actions)
        return found._replace(rewards=self._noise(found.rewards.shape).astype(np.float64))

    def _spoiled(self, senses: Senses) -> Senses:
        seen, state, legal = senses
        return Senses(self._noise(seen.shape), self._noise(state.shape), legal)

    def _noise(self, shape: tuple[int, ...]) -> Floats:
        noise: Floats = (GARBAGE * self._rng.standard_normal(shape)).astype(np.float32)
        return noise


def canary(twin: Twin, make_worlds: MakeWorlds, mixed: Mixed, seeds: Seeds) -> int:
    """Return how many arrays of the model differ if all of auxiliary teams is garbage.

    Args:
        twin: Makes twins of the agent.
        make_worlds: Makes the worlds that auxiliary teams really play in.
        mixed: The window of the primary team that both twins live through once more.
        seeds: Of the garbage.
    """

    def garbage(config: TeamTrainConfig, n_envs: int) -> TeamWorlds:
        return GarbageWorlds(make_worlds(config, n_envs), seeds.child("worlds"))

    plain, spoiled = twin(make_worlds), twin(garbage)
    if not len(plain.buffer.auxiliary):
        raise DataError("a canary needs auxiliary rows to spoil", where="auxiliary buffer")
    noise = GARBAGE * seeds.child("kept").rng().standard_normal(KEPT_NOISE)
    spoiled.buffer.auxiliary.spoil(noise.astype(np.float32))
    for each in (plain, spoiled):
        each.mix(mixed.fresh, mixed.episodes, mixed.policy)
    one, other = plain.model.state(), spoiled.model.state()
    return sum(not same_bits(one[name], other[name]) for name in one)


def twins_of(agent: AMALAgent, config: TeamTrainConfig) -> Twin:
    """Return what makes twins of an agent, told to learn by a config."""
    arrays, values = agent.state()

    def twin(make_worlds: MakeWorlds) -> AMALAgent:
        made = AMALAgent(config, amal_of(config), make_worlds)
        made.restore(arrays, values)
        return made

    return twin


def symmetric(config: TeamTrainConfig) -> TeamTrainConfig:
    """Return a training whose model is fed auxiliary rows: what a canary has to notice."""
    amal = amal_of(config)
    model = amal.model.model_copy(update={"symmetric": True})
    return config.model_copy(update={"amal": amal.model_copy(update={"model": model})})


def amal_of(config: TeamTrainConfig) -> AmalConfig:
    """Return the settings of AMAL; whoever asks knows that there are some."""
    if config.amal is None:
        raise DataError("this is no training of AMAL", where="amal")
    return config.amal
