"""Looks at a policy: one greedy episode from each of many starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import Interval, wilson
from agent_gym.training.marl.worlds import TeamWorlds


@dataclass(frozen=True, slots=True)
class Look:
    """How greedy episodes went; returns and lengths are means."""

    episodes: int
    wins: int
    mean_return: float
    mean_length: float

    @property
    def win_rate(self) -> float:
        """Return the share that was won."""
        return self.wins / self.episodes

    @property
    def interval(self) -> Interval:
        """Return Wilson's interval of that share, of 95 %."""
        return wilson(self.wins, self.episodes)


def look_at(policy: TeamPolicy, worlds: TeamWorlds, seeds: Seeds) -> Look:
    """Play the first episode under a seed in every environment, doing what is likeliest.

    The same seeds give the same starts, so looks at one policy after another compare.
    """
    senses = worlds.reset(seeds)
    n = worlds.n_envs
    memory, actions = policy.memory(n), np.zeros((n, worlds.n_agents), np.int64)
    going, won = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    returns, lengths = np.zeros(n), np.zeros(n)
    while going.any():
        choice = policy.act(senses.observations[going], senses.legal[going], memory[going])
        actions[going], memory[going] = choice.actions, choice.memory
        results = worlds.step(actions)
        returns[going] += results.rewards[going]
        lengths[going] += 1
        won |= going & results.ended & results.won
        going &= ~results.ended
    return Look(n, int(won.sum()), float(returns.mean()), float(lengths.mean()))
