"""Whole greedy episodes, one at a time, each decided by the policy and its seed alone.

They are played without batches on purpose. A matrix product of sixteen rows has other last bits
than sixteen products of one row, so an episode of a batch could not be played again alone, which
videos, exports and audits do. No generator of training is touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.envs.gym_vec import SingleEnv
from agent_gym.envs.training_env import EnvRecipe, make_single_env
from agent_gym.training.rl.result import Episode


class Greedy(Protocol):
    """What plays: a Policy, or anything that maps rows of raw observations to actions."""

    def predict(self, obs: NDArray[Any]) -> NDArray[Any]: ...


def play_episodes(
    policy: Greedy, recipe: EnvRecipe, seeds: Sequence[int], *, step: int = 0
) -> list[Episode]:
    """Play one greedy episode a seed and return them in the order of the seeds.

    Args:
        policy: Who acts.
        recipe: The environment; one is made for all episodes and closed afterwards.
        seeds: What each episode begins from.
        step: How many steps of training the policy has had; noted in the episodes.
    """
    env = make_single_env(recipe)
    try:
        return [_play(policy, env, seed, step) for seed in seeds]
    finally:
        env.close()


def mean_reward(episodes: Sequence[Episode]) -> float:
    """Return the mean return; one that is not a number is an error, never a result."""
    mean = math.fsum(episode.reward for episode in episodes) / len(episodes)
    if not math.isfinite(mean):
        bad = next(episode for episode in episodes if not math.isfinite(episode.reward))
        raise DataError(
            "the environment paid a reward that is not a number",
            where=f"episode of seed {bad.seed}",
            found=bad.reward,
            remedy="Look at the environment's rewards; the run goes on from its last checkpoint",
        )
    return mean


def _play(policy: Greedy, env: SingleEnv, seed: int, step: int) -> Episode:
    seen, _ = env.reset(seed=seed)
    total, length, over = 0.0, 0, False
    while not over:
        action = policy.predict(np.asarray(seen)[None])[0]
        seen, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        length += 1
        over = terminated or truncated
    return Episode(step, seed, total, length)
