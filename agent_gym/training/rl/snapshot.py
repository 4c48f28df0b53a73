"""All that decides how a training run goes on, as plain arrays and values.

Taken between two iterations (after learning, before the next steps), where the rollout buffer of
on-policy algorithms is spent and need not be kept.
"""

from __future__ import annotations

import json
from collections import deque
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from agent_gym.envs.exact import EnvState, exact_env, generator_state, set_generator_state
from agent_gym.training.rl.seeding import RngState, rng_state, set_rng_state
from agent_gym.training.rl.state_parts import (
    capture_noise,
    capture_normalizer,
    capture_replay,
    restore_noise,
    restore_normalizer,
    restore_replay,
)
from agent_gym.training.rl.torch_state import Arrays, Values, capture_torch, restore_torch

COUNTERS = (
    "num_timesteps",
    "_total_timesteps",
    "_num_timesteps_at_start",
    "_n_updates",
    "_episode_num",
    "_current_progress_remaining",
    "_n_calls",
    "exploration_rate",
)
LAST_SEEN = ("_last_obs", "_last_original_obs", "_last_episode_starts")
LOGGED = ("r", "l", "t")


class Snapshot(NamedTuple):
    """Arrays for an npz file and values for a JSON file; names are paths, such as ``rng/numpy``."""

    arrays: Arrays
    values: Values


def capture(model: BaseAlgorithm, vec_env: VecEnv) -> Snapshot:
    """Return the state of a run between two iterations; nothing is changed by it."""
    tensors, optimizers = capture_torch(model)
    rng, env = rng_state(), exact_env(vec_env).get_state()
    arrays = {f"torch/{name}": array for name, array in tensors.items()}
    arrays |= {f"rng/{name}": array for name, array in rng.arrays.items()}
    arrays |= {f"env/{name}": array for name, array in env.arrays.items()}
    values: Values = {
        "optimizers": optimizers,
        "rng": rng.values,
        "env": env.values,
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "spaces": {name: _space_state(space) for name, space in _spaces(model).items()},
        "noise": capture_noise(model.action_noise, arrays),
        "replay": capture_replay(model, arrays),
        "normalizer": capture_normalizer(model, arrays),
    }
    for name in LAST_SEEN:
        seen = getattr(model, name)
        if seen is not None:
            arrays[f"last/{name}"] = np.array(seen, copy=True)
    for name in LOGGED:
        entries = [entry[name] for entry in model.ep_info_buffer or ()]
        arrays[f"log/{name}"] = np.array(entries, dtype=np.float64)
    arrays["log/success"] = np.array(list(model.ep_success_buffer or ()), dtype=np.float64)
    return Snapshot(arrays, values)


def restore(model: BaseAlgorithm, vec_env: VecEnv, snapshot: Snapshot) -> None:
    """Put a run back: a model and an environment of the same config, set up to learn.

    The generators come last, because all else may draw from them.
    """
    arrays, values = snapshot
    restore_torch(model, _below(arrays, "torch"), values["optimizers"])
    exact_env(vec_env).set_state(EnvState(_below(arrays, "env"), values["env"]))
    for name, value in values["counters"].items():
        setattr(model, name, value)
    last = _below(arrays, "last")
    for name in LAST_SEEN:
        setattr(model, name, last.get(name))
    restore_noise(model.action_noise, arrays, values["noise"])
    restore_replay(model, arrays, values["replay"])
    restore_normalizer(model, arrays, values["normalizer"])
    _restore_log(model, arrays)
    for name, space in _spaces(model).items():
        _set_space_state(space, values["spaces"][name])
    set_rng_state(RngState(_below(arrays, "rng"), values["rng"]))


def state_hash(snapshot: Snapshot) -> str:
    """Return a SHA-256 over every bit of a snapshot, names and types included."""
    digest = sha256(json.dumps(snapshot.values, sort_keys=True).encode())
    for name in sorted(snapshot.arrays):
        array = np.ascontiguousarray(snapshot.arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _below(arrays: Arrays, folder: str) -> Arrays:
    start = f"{folder}/"
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}


def _spaces(model: BaseAlgorithm) -> dict[str, Any]:
    return {"action": model.action_space, "observation": model.observation_space}


def _space_state(space: Any) -> dict[str, Any] | None:
    """Return the state of a space's generator; None if it has none, for asking would make one."""
    return None if space._np_random is None else generator_state(space._np_random)


def _set_space_state(space: Any, state: dict[str, Any] | None) -> None:
    if state is None:
        space._np_random = None
    else:
        set_generator_state(space.np_random, state)


def _restore_log(model: BaseAlgorithm, arrays: Arrays) -> None:
    rewards, lengths, times = (arrays[f"log/{name}"].tolist() for name in LOGGED)
    window = model._stats_window_size
    model.ep_info_buffer = deque(
        (
            {"r": r, "l": int(length), "t": int(t)}
            for r, length, t in zip(rewards, lengths, times, strict=True)
        ),
        maxlen=window,
    )
    model.ep_success_buffer = deque(arrays["log/success"].tolist(), maxlen=window)
