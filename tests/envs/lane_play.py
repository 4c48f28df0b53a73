"""Playing vector environments with random actions, and keeping their state in files."""

import io
import json

import gymnasium as gym
import numpy as np

from agent_gym.core import Seeds
from agent_gym.envs.exact import EnvState


def draw(env, count, seed=0):
    """Return random actions of all lanes, a batch a step."""
    dice = Seeds(seed).rng()
    space = env.action_space
    if isinstance(space, gym.spaces.Discrete):
        return dice.integers(space.n, size=(count, env.num_envs))
    size = (count, env.num_envs, *space.shape)
    return dice.uniform(space.low, space.high, size=size).astype(np.float32)


def through_files(state):
    """Return the state as it comes back from an npz and a JSON file."""
    file = io.BytesIO()
    np.savez(file, **state.arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        arrays = dict(loaded)
    return EnvState(arrays, json.loads(json.dumps(state.values, allow_nan=False)))


def play(env, batches):
    """Return everything that a learner sees."""
    seen = []
    for actions in batches:
        obs, rewards, dones, infos = env.step(actions)
        ends = [
            (
                k,
                info["terminal_observation"].tobytes(),
                info["TimeLimit.truncated"],
                info["episode"],
            )
            for k, info in enumerate(infos)
            if dones[k]
        ]
        seen.append((obs.tobytes(), rewards.tobytes(), dones.tobytes(), ends))
    return seen
