"""Steps of many trajectories as columns, in one go: what is done once for all costs little."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agent_gym.core.errors import StoreError
from agent_gym.core.types import FloatArray, Step
from agent_gym.rollouts.database.raw_steps import FLOAT, FLOAT_BYTES, RawSteps
from agent_gym.rollouts.database.records import storable

LOG_PROB = "log_prob"
NAME = pa.dictionary(pa.int32(), pa.string())
SIGNALS = pa.map_(pa.string(), pa.float64())

_t, _ts = attrgetter("t"), attrgetter("before.ts")
_action, _reward = attrgetter("decision.action"), attrgetter("after.reward")
_terminated, _truncated = attrgetter("after.terminated"), attrgetter("after.truncated")
_rationale, _text = attrgetter("decision.rationale"), attrgetter("before.text")


class Layout(NamedTuple):
    """How wide actions and observations are; an action that is one number has the width 1."""

    action: int
    observation: int | None

    def schema(self) -> Any:
        """Return the Arrow schema of steps like these."""
        fields = [
            ("t", pa.int64()),
            ("ts", pa.int64()),
            ("action", pa.list_(pa.float64(), self.action)),
            ("reward", pa.float64()),
            ("terminated", pa.bool_()),
            ("truncated", pa.bool_()),
            (LOG_PROB, pa.float64()),
            ("policy_version", NAME),
            ("signals", SIGNALS),
            ("rationale", pa.string()),
            ("text", pa.string()),
            ("info", pa.string()),
        ]
        if self.observation is not None:
            fields.append(("observation", pa.list_(pa.float64(), self.observation)))
        return pa.schema(fields)


def layout_of(raw: RawSteps) -> Layout:
    """Learn from the first vector and the first observation what all of them look like."""
    width = next((len(made) // FLOAT_BYTES for _, made in raw.vectors if made), 1)
    return Layout(width, len(raw.features[0]) // FLOAT_BYTES if raw.features else None)


@dataclass(frozen=True, slots=True)
class StepRows:
    """Columns in numpy, one row a step, of one trajectory after the other.

    An action that does not fit (of another width, not a number) is NaN and has lost its
    log-probability, so that nothing is ever learned from it.
    """

    layout: Layout
    numbers: dict[str, NDArray[Any]]
    versions: list[str | None]
    said: dict[str, FloatArray]
    words: dict[str, list[str | None]]

    def digest_of(self, part: slice) -> bytes:
        """Return the bytes that say all there is in some rows, whatever lies around them."""
        pieces = [column[part].tobytes() for column in self.numbers.values()]
        for name in sorted(self.said):
            column = self.said[name][part]
            if not np.isnan(column).all():
                pieces += [json.dumps(name).encode(), column.tobytes()]
        for words in (self.versions, *self.words.values()):
            mine = words[part]
            same = mine.count(mine[0]) == len(mine)
            pieces.append(json.dumps([len(mine), mine[0]] if same else mine).encode())
        return b"\n".join(pieces)

    def batch(self) -> Any:
        """Return the rows as an Arrow record batch."""
        numbers = self.numbers
        arrays = {name: pa.array(column) for name, column in numbers.items() if column.ndim == 1}
        for name in ("action", "observation"):
            if name in numbers:
                flat = pa.array(numbers[name].reshape(-1))
                width = numbers[name].shape[1]
                arrays[name] = pa.FixedSizeListArray.from_arrays(flat, width)
        arrays[LOG_PROB] = pa.array(numbers[LOG_PROB], mask=np.isnan(numbers[LOG_PROB]))
        arrays["policy_version"] = pa.array(self.versions, pa.string()).dictionary_encode()
        arrays["signals"] = self._maps()
        arrays |= {name: pa.array(words, pa.string()) for name, words in self.words.items()}
        schema = self.layout.schema()
        return pa.record_batch([arrays[name] for name in schema.names], schema=schema)

    def _maps(self) -> Any:
        """Return what was said in numbers, row by row; NaN means that nothing was said."""
        n, names = len(self.versions), sorted(self.said)
        matrix = np.column_stack([self.said[name] for name in names]) if names else np.empty((n, 0))
        rows, codes = np.nonzero(~np.isnan(matrix))
        ends = np.searchsorted(rows, np.arange(n + 1)).astype(np.int32)
        keys = pa.array([storable(name) for name in names], pa.string()).take(pa.array(codes))
        return pa.MapArray.from_arrays(pa.array(ends), keys, pa.array(matrix[rows, codes]))


def encode(raws: Sequence[RawSteps], layout: Layout) -> StepRows:
    """Make columns of the steps of some trajectories, one after the other."""
    steps = list(chain.from_iterable(raw.steps for raw in raws))
    starts = [0, *np.cumsum([len(raw.steps) for raw in raws]).tolist()]
    try:
        return _encode(raws, starts, steps, layout)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise StoreError(
            "the steps do not fit the columns of the store",
            where=f"episode {steps[0].episode}, steps {steps[0].t} to {steps[-1].t}",
            found=str(error),
            expected="numbers, and observations of one width",
        ) from error


def _encode(
    raws: Sequence[RawSteps], starts: list[int], steps: list[Step], layout: Layout
) -> StepRows:
    n = len(steps)
    actions = _actions(raws, starts, steps, layout.action)
    said = _said(raws, starts, n)
    numbers: dict[str, NDArray[Any]] = {
        "t": np.fromiter(map(_t, steps), np.int64, n),
        "ts": np.fromiter(map(_ts, steps), np.int64, n),
        "action": actions,
        "reward": np.fromiter(map(_reward, steps), FLOAT, n),
        "terminated": np.fromiter(map(_terminated, steps), np.bool_, n),
        "truncated": np.fromiter(map(_truncated, steps), np.bool_, n),
        LOG_PROB: _usable(said.pop(LOG_PROB, np.full(n, math.nan)), actions),
    }
    if layout.observation is not None:
        numbers["observation"] = _observations(raws, layout.observation)
    infos: list[str | None] = [None] * n
    for raw, start in zip(raws, starts, strict=False):
        for row, info in raw.infos:
            infos[start + row] = info
    words = {
        "rationale": _clean(list(map(_rationale, steps))),
        "text": _clean(list(map(_text, steps))),
        "info": infos,
    }
    return StepRows(layout, numbers, _versions(raws), said, words)


def _observations(raws: Sequence[RawSteps], width: int) -> FloatArray:
    features = list(chain.from_iterable(raw.features for raw in raws))
    if set(map(len, features)) != {width * FLOAT_BYTES}:
        raise ValueError(f"observations of several widths, the first of {width}")
    return np.frombuffer(b"".join(features), FLOAT).reshape(-1, width)


def _actions(
    raws: Sequence[RawSteps], starts: list[int], steps: list[Step], width: int
) -> FloatArray:
    """Return the actions, a row each; NaN where one does not fit."""
    n, wanted = len(steps), width * FLOAT_BYTES
    vectors = list(chain.from_iterable(raw.vectors for raw in raws))
    fitting = [made for _, made in vectors if len(made) == wanted]
    if len(fitting) == n:
        return np.frombuffer(b"".join(fitting), FLOAT).reshape(n, width)
    if not vectors and width == 1:
        numbers = _scalars(steps)
        if numbers is not None:
            return numbers
    column: FloatArray = np.full((n, width), math.nan)
    for raw, start in zip(raws, starts, strict=False):
        for row, made in raw.vectors:
            if len(made) == wanted:
                column[start + row] = np.frombuffer(made, FLOAT)
    if width == 1:
        for row, action in enumerate(map(_action, steps)):
            if isinstance(action, int | float):
                column[row] = action
    return column


def _scalars(steps: list[Step]) -> FloatArray | None:
    """Return actions that are plain numbers; None if one of them is something else."""
    try:
        return np.fromiter(map(_action, steps), FLOAT, len(steps)).reshape(-1, 1)
    except (TypeError, ValueError, OverflowError):
        return None


def _usable(log_probs: FloatArray, actions: FloatArray) -> FloatArray:
    """Return log-probabilities; NaN where there is none, or no action that it could be of."""
    usable = np.isfinite(log_probs) & ~np.isnan(actions).any(axis=1)
    return np.where(usable, log_probs, math.nan)


def _said(raws: Sequence[RawSteps], starts: list[int], n: int) -> dict[str, FloatArray]:
    """Return what agents said in numbers, a column for each name."""
    rows = [
        np.array(raw.said_at, np.int64) + start for raw, start in zip(raws, starts, strict=False)
    ]
    at = np.concatenate(rows)
    columns = {}
    for name, values in said_in_numbers([one for raw in raws for one in raw.said]).items():
        columns[name] = np.full(n, math.nan)
        columns[name][at] = values
    return columns


def said_in_numbers(said: list[dict[str, float]]) -> dict[str, FloatArray]:
    """Return what was said as one column a name; NaN where a name was not said.

    Example:
        >>> said_in_numbers([{"mood": 1.0}, {"mood": 2.0, "age": 3.0}])
        {'mood': array([1., 2.]), 'age': array([nan,  3.])}
    """
    kinds = dict.fromkeys(map(tuple, said))
    if len(kinds) == 1:  # nearly always: the same names in the same order at every step
        (names,) = kinds
        values = chain.from_iterable(map(dict.values, said))
        flat = np.fromiter(values, FLOAT, len(said) * len(names)).reshape(len(said), len(names))
        return {name: flat[:, i] for i, name in enumerate(names)}
    every = dict.fromkeys(chain.from_iterable(kinds))
    return {
        name: np.array([one.get(name, math.nan) for one in said], dtype=FLOAT) for name in every
    }


def _versions(raws: Sequence[RawSteps]) -> list[str | None]:
    """Return the version of the policy that decided, for each row."""
    column: list[str | None] = []
    for raw in raws:
        bounds = [start for start, _ in raw.versions] + [len(raw.steps)]
        for (_, version), (start, stop) in zip(raw.versions, pairwise(bounds), strict=True):
            column += [version] * (stop - start)
    return column


def _clean(column: list[str | None]) -> list[str | None]:
    if column.count(None) == len(column):
        return column
    return [None if said is None else storable(said) for said in column]
