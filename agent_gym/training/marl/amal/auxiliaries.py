"""Auxiliary teams: they play whole battles of their own, on a budget that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl import Crowd, TeamPolicy
from agent_gym.agents.marl.network import Floats
from agent_gym.agents.named_arrays import under
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.cem import CrossEntropy, by_ranks
from agent_gym.training.marl.amal.space import (
    ROUNDS,
    ShiftSpace,
    distances,
    divergences,
    rescaling,
)
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.batch import AUXILIARY, TEAM, Arrays, Batch, Bools
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.worlds import TeamWorlds


class Probes(NamedTuple):
    """Moments of primary battles on which behaviours are compared, ``[rows, agents, ...]``."""

    seen: Floats
    legal: Bools
    alive: Bools


@dataclass(frozen=True, slots=True)
class Generation:
    """How a generation did; fitness is by ranks, gain that of the elites over all, in returns."""

    number: int
    mean_return: float
    elite_gain: float
    episodes: int


class Judged(NamedTuple):
    """The generation that ended last: its shifts, and the numbers of its elites."""

    shifts: FloatArray
    elites: NDArray[np.int64]


class Auxiliaries:
    """The cloud of shifts, the worlds its teams play in, and their scores.

    Args:
        config: How they are found.
        worlds: Their own environments, one a team.
        policy: What they are shifted from, as it is at first.
        chunk: Steps between two memories that are kept.
        seeds: Their own randomness.
    """

    def __init__(
        self, config: AmalConfig, worlds: TeamWorlds, policy: TeamPolicy, chunk: int, seeds: Seeds
    ) -> None:
        self._config, self._chunk, self._seeds = config, chunk, seeds
        self.space = ShiftSpace(policy, config, seeds)
        self.search = CrossEntropy(self.space.dim, config, seeds.child("cem"))
        memory, play = policy.config.memory, seeds.child("play")
        self._collector = Collector(worlds, 0, chunk, memory, play, AUXILIARY)
        self._teams = config.num_auxiliary_agents
        self._credit, self.steps, self.pulled_back = 0.0, 0, 0
        self.kl = self.jsd = 0.0
        self.last: Generation | None = None
        self.judged: Judged | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin a generation."""
        self.shifts = self.search.ask()
        self._age = 0
        self._collector.begin(self._seeds.child("worlds", self.search.generation))
        self._scores: FloatArray = np.zeros((5, self._teams))
        """By team: returns and number of ended episodes, the running one, information, steps."""

    def grant(self, env_steps: int, share: float) -> int:
        """Return how many steps each team may play now, if others played so many.

        What is left over is kept, so that the share of all steps comes out exactly.
        """
        self._credit += env_steps * share / (1.0 - share)
        unit = self._teams * self._chunk
        steps = int(self._credit // unit) * self._chunk
        self._credit -= steps * self._teams
        return steps

    def play(self, policy: TeamPolicy, probes: Probes, steps: int) -> Batch:
        """Set the size of the cloud by how teams behave, and let them play."""
        crowd = self._fitted(policy, probes)
        batch, _ = self._collector.collect(crowd, steps)
        self.steps += batch.env_steps
        return batch

    def _fitted(self, policy: TeamPolicy, probes: Probes) -> Crowd:
        """Return teams whose median is as far away as wanted, and none of them too far."""
        config = self._config
        for _ in range(ROUNDS):
            crowd = self.space.crowd(policy, self.shifts)
            found = divergences(crowd, *probes)
            factor = rescaling(float(np.median(found)), config.cem_kl, self.shifts)
            if abs(factor - 1.0) < 0.05:
                break
            self.shifts = factor * self.shifts
            self.search.resize(factor)
        crowd = self.space.crowd(policy, self.shifts)
        found = divergences(crowd, *probes)
        far = found > config.cem_max_kl
        self.pulled_back = int(far.sum())
        while (found > config.cem_max_kl).any():
            self.shifts = np.where((found > config.cem_max_kl)[:, None], 0.7, 1.0) * self.shifts
            crowd = self.space.crowd(policy, self.shifts)
            found = divergences(crowd, *probes)
        self.kl = float(np.median(found))
        return crowd

    def score(self, batch: Batch, information: FloatArray) -> None:
        """Take in how a window went and what it said, ``[T, E]``."""
        returns, count, running, said, steps = self._scores
        for rewards, ended in zip(batch.rewards[TEAM], batch.ended, strict=True):
            running += rewards
            returns[ended] += running[ended]
            running[ended] = 0.0
            count += ended
        said += information.sum(axis=0)
        steps += len(batch.ended)

    def grow_older(self, policy: TeamPolicy, probes: Probes) -> bool:
        """Count an iteration; return whether the generation is over and another one has begun."""
        self._age += 1
        _, ended, _, _, steps = self._scores
        young = self._age < self._config.evolution_frequency
        if young or not steps.any() or ended.mean() < self._config.cem_episodes:
            return False
        scores = self.mean_returns()
        fitness = self.fitness(policy, probes)
        best = self.search.elites(fitness)
        self.last = Generation(
            self.search.generation,
            float(scores.mean()),
            float(scores[best].mean() - scores.mean()),
            int(self._scores[1].sum()),
        )
        self.judged = Judged(self.shifts, best)
        self.search.tell(self.shifts, fitness)
        self._begin()
        return True

    def mean_returns(self) -> FloatArray:
        """Return each team's mean return; of the running episode, if none has ended."""
        returns, count, running, _, _ = self._scores
        found: FloatArray = np.where(count > 0, returns / np.maximum(count, 1.0), running)
        return found

    def fitness(self, policy: TeamPolicy, probes: Probes) -> FloatArray:
        """Return one number a team, from the ranks of its scores."""
        config = self._config
        weights = (
            config.cem_return_weight,
            config.cem_information_weight,
            config.cem_diversity_weight,
        )
        return by_ranks(weights, self.scores(policy, probes))

    def scores(self, policy: TeamPolicy, probes: Probes) -> tuple[FloatArray, ...]:
        """Return what each team won, what its steps said, and how unlike the next one it is."""
        apart = distances(self.space.crowd(policy, self.shifts), *probes)
        self.jsd = float(apart.sum() / (self._teams * (self._teams - 1)))
        return self.mean_returns(), self._scores[3], self._nearest(apart)

    @staticmethod
    def _nearest(apart: FloatArray) -> FloatArray:
        """Return how far each team is from the one that is most like it."""
        return np.asarray((apart + np.diag(np.full(len(apart), np.inf))).min(axis=1))

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return all that decides how they go on."""
        played, values = self._collector.state()
        arrays = {f"play/{name}": array for name, array in played.items()}
        arrays |= {f"cem/{name}": array for name, array in self.search.state().items()}
        last = None if self.last is None else list(self._told())
        kept = {"play": values, "age": self._age, "credit": self._credit, "steps": self.steps}
        kept |= {"pulled_back": self.pulled_back, "kl": self.kl, "jsd": self.jsd, "last": last}
        return arrays | {"shifts": self.shifts.copy(), "scores": self._scores.copy()}, kept

    def _told(self) -> tuple[int, float, float, int]:
        assert self.last is not None
        return self.last.number, self.last.mean_return, self.last.elite_gain, self.last.episodes

    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Go on where others stood."""
        self._collector.restore(under("play/", arrays), values["play"])
        self.search.restore(under("cem/", arrays))
        self.shifts, self._scores = arrays["shifts"].copy(), arrays["scores"].copy()
        self._age, self._credit, self.steps = values["age"], values["credit"], values["steps"]
        self.pulled_back, self.kl, self.jsd = values["pulled_back"], values["kl"], values["jsd"]
        self.last = None if values["last"] is None else Generation(*values["last"])
