"""The running statistics of training, as they are used when a model acts."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from agent_gym.agents.tensor_file import check_archive
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray

STATISTICS = ("obs_mean", "obs_var", "obs_count", "ret_mean", "ret_var", "ret_count")


@dataclass(frozen=True, slots=True, eq=False)
class Normalizer:
    """What VecNormalize has learned of observations and rewards, and where it cuts them off."""

    settings: dict[str, Any]
    statistics: dict[str, FloatArray]

    @classmethod
    def of(cls, env: VecNormalize) -> Normalizer:
        """Copy the state of a running one."""
        seen, paid = env.obs_rms if env.norm_obs else RunningMeanStd(shape=()), env.ret_rms
        if not isinstance(seen, RunningMeanStd):
            raise ConfigError("observations in parts cannot be normalised", found=type(seen))
        values = (seen.mean, seen.var, seen.count, paid.mean, paid.var, paid.count)
        settings = {
            "observations": bool(env.norm_obs),
            "rewards": bool(env.norm_reward),
            "clip_obs": float(env.clip_obs),
            "clip_reward": float(env.clip_reward),
            "gamma": float(env.gamma),
            "epsilon": float(env.epsilon),
        }
        arrays = [np.array(value, dtype=np.float64) for value in values]
        return cls(settings, dict(zip(STATISTICS, arrays, strict=True)))

    @classmethod
    def from_bytes(cls, settings: dict[str, Any], content: bytes) -> Normalizer:
        """Read the statistics; nothing is unpickled."""
        check_archive(BytesIO(content))
        with np.load(BytesIO(content), allow_pickle=False) as stored:
            return cls(settings, {name: stored[name] for name in STATISTICS})

    def to_bytes(self) -> bytes:
        """Return the statistics as the content of a file."""
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **self.statistics)
        return buffer.getvalue()

    def scale(self) -> tuple[FloatArray, FloatArray, float] | None:
        """Return mean, deviation and cut of observations; None if they are left as they are."""
        if not self.settings["observations"]:
            return None
        deviation = np.sqrt(self.statistics["obs_var"] + self.settings["epsilon"])
        return self.statistics["obs_mean"], deviation, self.settings["clip_obs"]


def normalized(
    obs: NDArray[Any], scale: tuple[FloatArray, FloatArray, float] | None
) -> NDArray[np.float32]:
    """Return observations as the network sees them, bit for bit what VecNormalize makes of them."""
    if scale is None:
        return obs.astype(np.float32)
    mean, deviation, cut = scale
    return np.minimum(np.maximum((obs - mean) / deviation, -cut), cut).astype(np.float32)
