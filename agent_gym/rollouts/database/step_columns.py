"""Steps as they come back from a file: one numpy array or tuple a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The steps of one trajectory, a row each.

    Attributes:
        t: Step of the episode, from 0.
        ts: Time of the observation, UTC nanoseconds.
        observation: What was seen, one row a step; None if it was not recorded.
        action: What was done, one row a step; NaN where it was no action at all.
        log_prob: Log-probability of the action under the policy that took it; NaN if not known.
        policy_version: Which policy that was.
        signals: What else the agent said in numbers, by name; NaN where it said nothing.
        rationale: What it said in words.
        text: What was seen, in words.
        info: What the world added, as JSON.
    """

    t: NDArray[np.int64]
    ts: NDArray[np.int64]
    observation: FloatArray | None
    action: FloatArray
    reward: FloatArray
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    log_prob: FloatArray
    policy_version: tuple[str | None, ...]
    signals: dict[str, FloatArray]
    rationale: tuple[str | None, ...]
    text: tuple[str | None, ...]
    info: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.t)


def step_columns(rows: Any) -> StepColumns:
    """Return the rows of an Arrow table as arrays."""
    flat = {name: rows.column(name).combine_chunks() for name in rows.column_names}
    return StepColumns(
        t=flat["t"].to_numpy(),
        ts=flat["ts"].to_numpy(),
        observation=_matrix(flat["observation"]) if "observation" in flat else None,
        action=_matrix(flat["action"]),
        reward=flat["reward"].to_numpy(),
        terminated=flat["terminated"].to_numpy(zero_copy_only=False),
        truncated=flat["truncated"].to_numpy(zero_copy_only=False),
        log_prob=flat["log_prob"].to_numpy(zero_copy_only=False),
        policy_version=tuple(flat["policy_version"].cast(pa.string()).to_pylist()),
        signals=_signals(flat["signals"]),
        rationale=tuple(flat["rationale"].to_pylist()),
        text=tuple(flat["text"].to_pylist()),
        info=tuple(flat["info"].to_pylist()),
    )


def _matrix(column: Any) -> FloatArray:
    matrix: FloatArray = column.flatten().to_numpy().reshape(-1, column.type.list_size)
    return matrix


def _signals(column: Any) -> dict[str, FloatArray]:
    """Return a column for each name that is said at least once."""
    n = len(column)
    ends = column.offsets.to_numpy()
    first, size = int(ends[0]), int(ends[-1] - ends[0])
    names = pc.dictionary_encode(column.keys.slice(first, size))
    values = column.items.slice(first, size).to_numpy()
    rows, codes = np.repeat(np.arange(n), np.diff(ends)), names.indices.to_numpy()
    signals = {}
    for code, name in enumerate(names.dictionary.to_pylist()):
        signals[name] = np.full(n, math.nan)
        signals[name][rows[codes == code]] = values[codes == code]
    return signals
