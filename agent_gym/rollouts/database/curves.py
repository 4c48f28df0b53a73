"""Long trajectories as short curves: what is drawn of a million steps is chosen here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.rollouts.database.step_files import StepFiles
from agent_gym.rollouts.database.tables import Trajectory

POINTS = 2_000
KEPT = 32


@dataclass(frozen=True, slots=True, eq=False)
class RewardCurve:
    """The reward so far at some steps: the first, the last, and the extremes in between."""

    t: NDArray[np.int64]
    total: FloatArray


def reward_curve(files: StepFiles, row: Trajectory, points: int = POINTS) -> RewardCurve:
    """Return the sum of rewards after each step, thinned to about so many points."""
    if row.step_file is None or row.n_steps == 0:
        raise ConfigError("a trajectory has no steps", where=row.trajectory_id, found=row.status)
    files.believe(row.step_file)
    return _kept(files, row.step_file, row.first_row or 0, row.n_steps, points)


@lru_cache(maxsize=KEPT)
def _kept(files: StepFiles, file_hash: str, first: int, n: int, points: int) -> RewardCurve:
    """Return a curve; who walks through a trajectory asks for the same one at every step."""
    rewards = files.numbers(file_hash, "reward", first, n)
    total = np.cumsum(np.nan_to_num(rewards))
    places = extremes(total, points)
    t, values = places.astype(np.int64), total[places]
    for column in (t, values):
        column.setflags(write=False)
    return RewardCurve(t, values)


def extremes(values: FloatArray, points: int) -> NDArray[np.intp]:
    """Return places that keep the look of a curve: lowest and highest of equal stretches, and ends.

    Example:
        >>> extremes(np.array([0.0, 5.0, 1.0, 1.0, -3.0, 0.0, 2.0, 2.0]), 4).tolist()
        [0, 1, 4, 6, 7]
    """
    if values.size <= points:
        return np.arange(values.size)
    size = -(-values.size // max(points // 2, 1))
    whole = values.size // size * size
    table = values[:whole].reshape(-1, size)
    starts = np.arange(table.shape[0]) * size
    chosen = [starts + table.argmin(axis=1), starts + table.argmax(axis=1)]
    rest = values[whole:]
    if rest.size:
        chosen.append(np.array([whole + rest.argmin(), whole + rest.argmax()]))
    return np.unique(np.concatenate([*chosen, np.array([0, values.size - 1])]))
