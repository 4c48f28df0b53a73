"""The parts of a run's state that are neither tensors nor generators: noise, memory, averages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.noise import (
    ActionNoise,
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.training.rl.torch_state import Arrays

REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
KEPT = (
    ReplayBuffer,
    NStepReplayBuffer,
)  # the second sums rewards when it is read, and keeps no more


def _noises(noise: ActionNoise | None) -> list[OrnsteinUhlenbeckActionNoise]:
    """Return the parts of an action noise that remember; one that is not known is refused."""
    if noise is None or isinstance(noise, NormalActionNoise):
        return []
    if isinstance(noise, OrnsteinUhlenbeckActionNoise):
        return [noise]
    if isinstance(noise, VectorizedActionNoise):
        return [part for each in noise.noises for part in _noises(each)]
    raise ConfigError("what this action noise remembers is not known", found=type(noise).__name__)


def capture_noise(noise: ActionNoise | None, arrays: Arrays) -> int:
    """Keep what an action noise remembers; return how many parts remember."""
    parts = _noises(noise)
    for i, part in enumerate(parts):
        arrays[f"noise/{i}"] = np.array(part.noise_prev, copy=True)
    return len(parts)


def restore_noise(noise: ActionNoise | None, arrays: Arrays, count: int) -> None:
    """Put back what an action noise remembers."""
    parts = _noises(noise)
    if len(parts) != count:
        raise DataError("the checkpoint has another action noise", found=count, expected=len(parts))
    for i, part in enumerate(parts):
        part.noise_prev = arrays[f"noise/{i}"].copy()


def _replay_of(model: BaseAlgorithm) -> ReplayBuffer | None:
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None or type(buffer) in KEPT:
        return buffer
    raise ConfigError("how to keep this replay buffer is not known", found=type(buffer).__name__)


def capture_replay(model: BaseAlgorithm, arrays: Arrays) -> dict[str, Any] | None:
    """Keep the filled part of the replay buffer, if the model has one."""
    buffer = _replay_of(model)
    if buffer is None:
        return None
    for name in REPLAY:
        filled: NDArray[Any] = getattr(buffer, name)[: buffer.size()]
        arrays[f"replay/{name}"] = filled.copy()
    return {"pos": int(buffer.pos), "full": bool(buffer.full), "size": int(buffer.buffer_size)}


def restore_replay(model: BaseAlgorithm, arrays: Arrays, values: dict[str, Any] | None) -> None:
    """Fill the replay buffer again."""
    buffer = _replay_of(model)
    size = None if buffer is None else int(buffer.buffer_size)
    if (None if values is None else values["size"]) != size:
        raise DataError("the checkpoint has another replay buffer", found=values, expected=size)
    if buffer is None or values is None:
        return
    for name in REPLAY:
        kept = arrays[f"replay/{name}"]
        getattr(buffer, name)[: len(kept)] = kept
    buffer.pos, buffer.full = values["pos"], values["full"]


def _averages(normalizer: VecNormalize) -> dict[str, RunningMeanStd]:
    found = {"ret_rms": normalizer.ret_rms}
    own = getattr(normalizer, "obs_rms", None)
    return found | ({} if own is None else {"obs_rms": own})


def capture_normalizer(model: BaseAlgorithm, arrays: Arrays) -> dict[str, float] | None:
    """Keep the running means and deviations, and what they were fed last."""
    normalizer = model.get_vec_normalize_env()
    if normalizer is None:
        return None
    for name, average in _averages(normalizer).items():
        arrays[f"normalizer/{name}/mean"] = np.array(average.mean, copy=True)
        arrays[f"normalizer/{name}/var"] = np.array(average.var, copy=True)
    for name in ("returns", "old_obs", "old_reward"):
        arrays[f"normalizer/{name}"] = np.array(getattr(normalizer, name), copy=True)
    return {name: float(average.count) for name, average in _averages(normalizer).items()}


def restore_normalizer(
    model: BaseAlgorithm, arrays: Arrays, counts: dict[str, float] | None
) -> None:
    """Put the running means and deviations back."""
    normalizer = model.get_vec_normalize_env()
    if (counts is None) != (normalizer is None):
        raise DataError("the checkpoint and the run differ in whether they normalise")
    if normalizer is None or counts is None:
        return
    for name, average in _averages(normalizer).items():
        average.mean = arrays[f"normalizer/{name}/mean"].copy()
        average.var = arrays[f"normalizer/{name}/var"].copy()
        average.count = counts[name]
    for name in ("returns", "old_obs", "old_reward"):
        setattr(normalizer, name, arrays[f"normalizer/{name}"].copy())
