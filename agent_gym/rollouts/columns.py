"""Steps as columns: the schema of a step store and the one place that turns records into it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from agent_gym.core.errors import StoreError
from agent_gym.core.types import FloatArray, Signals, Step

SCHEMA_VERSION = 1
NAMED = ("episode", "role", "agent")
ROW = np.dtype([("t", "<i8"), ("ts", "<i8"), ("action", "<f8"), ("reward", "<f8")])
ROW_BYTES = ROW.itemsize
_pack = struct.Struct("<qqdd").pack_into

_NAME = pa.dictionary(pa.int32(), pa.string())
_SIGNALS = pa.map_(pa.string(), pa.float64())


def step_schema(
    action: Any = None, observation_width: int | None = None, *, infos: bool = False
) -> Any:
    """Return the Arrow schema of steps.

    Args:
        action: The Arrow type of the action: float64 (the default), or a list for vectors.
        observation_width: Number of features, if observations are kept.
        infos: What the world said beside is kept, as JSON.
    """
    fields = [
        ("episode", _NAME),
        ("t", pa.int64()),
        ("ts", pa.int64()),
        ("role", _NAME),
        ("agent", _NAME),
        ("action", pa.float64() if action is None else action),
        ("reward", pa.float64()),
        ("terminated", pa.bool_()),
        ("truncated", pa.bool_()),
        ("signals", _SIGNALS),
        ("rationale", pa.string()),
    ]
    if observation_width is not None:
        fields.append(("observation", pa.list_(pa.float64(), observation_width)))
    if infos:
        fields.append(("info", pa.string()))
    return pa.schema(fields)


class _Copies(NamedTuple):
    """What a step holds beyond its row of bytes."""

    action: FloatArray | None
    features: FloatArray | None
    signals: list[tuple[str, float]] | None
    rationale: str | None
    info: str | None


class StepEncoder:
    """Turns steps into Arrow batches that share one schema.

    A step is packed into a row of bytes as it comes, and what does not fit a row is copied: an
    agent or a world that fills the same buffer again must not change what was recorded. The first
    step decides whether an action is a number or a vector, and how many features an observation
    has; a later one that differs is an error. Names become codes that are given out in order of
    appearance, so equal runs have equal bytes.

    Args:
        on_block: Takes each finished batch.
        block_steps: Steps in a batch.
        observations: Keep the features of the observation before the decision.
        infos: Keep what the world said beside.
    """

    def __init__(
        self,
        on_block: Callable[[Any], None],
        block_steps: int,
        *,
        observations: bool = False,
        infos: bool = False,
    ) -> None:
        self._on_block = on_block
        self._rows = bytearray(block_steps * ROW_BYTES)
        self._room, self._used = len(self._rows), 0
        self._runs: list[tuple[int, str, str, str]] = []
        self._ends: list[tuple[int, bool, bool]] = []
        self._copied: list[tuple[int, _Copies]] = []
        self._observations, self._infos = observations, infos
        self._bulky = observations or infos
        self._vectors = False
        self._episode = self._role = self._agent = ""
        self._codes: dict[str, dict[str, int]] = {name: {} for name in NAMED}
        self.schema: Any = None

    def write(self, step: Step) -> None:
        """Take one step."""
        decision, after, used = step.decision, step.after, self._used
        if (
            step.episode is not self._episode
            or step.role is not self._role
            or step.agent is not self._agent
            or not used
        ):
            self._begin_run(step)
        copies = None
        if self._bulky or decision.signals is not None or decision.rationale is not None:
            copies = self._copies(step)
        action = 0.0 if self._vectors else decision.action
        try:
            _pack(self._rows, used, step.t, step.before.ts, action, after.reward)
        except struct.error as error:  # nothing of the step has been kept yet
            raise _misfit(f"episode {step.episode}, step {step.t}", error) from error
        if copies is not None:
            self._copied.append((used // ROW_BYTES, copies))
        if after.terminated or after.truncated:
            self._ends.append((used // ROW_BYTES, after.terminated, after.truncated))
        self._used = used = used + ROW_BYTES
        if used == self._room:
            self.flush()

    def _copies(self, step: Step) -> _Copies:
        """Return what does not fit a row of bytes, as it is now."""
        made = step.decision
        try:
            return _Copies(
                np.array(made.action, dtype=np.float64) if self._vectors else None,
                step.before.features.copy() if self._observations else None,
                _pairs(made.signals),
                made.rationale,
                _info(step) if self._infos else None,
            )
        except (TypeError, ValueError, AttributeError) as error:
            raise _misfit(f"episode {step.episode}, step {step.t}", error) from error

    def flush(self) -> None:
        """Hand on what has been taken since the last batch."""
        if not self._used:
            return
        rows, runs = np.frombuffer(self._rows, ROW, self._used // ROW_BYTES), self._runs
        try:
            batch = self._encode(rows, runs)
        except (TypeError, ValueError, pa.ArrowException) as error:
            place = f"episode {runs[0][1]}, steps {rows['t'][0]} to {rows['t'][-1]}"
            raise _misfit(place, error) from error
        finally:
            self._used, self._runs, self._ends, self._copied = 0, [], [], []
        self._on_block(batch)

    def _begin_run(self, step: Step) -> None:
        """Note that from here on the names are those of this step; the first step says more."""
        if self.schema is None and not self._used:
            self._vectors = np.ndim(step.decision.action) > 0
            self._bulky = self._observations or self._infos or self._vectors
            width = step.before.features.size if self._observations else None
            action = pa.list_(pa.float64()) if self._vectors else None
            self.schema = step_schema(action, width, infos=self._infos)
        self._episode, self._role, self._agent = step.episode, step.role, step.agent
        self._runs.append((self._used // ROW_BYTES, step.episode, step.role, step.agent))

    def _encode(self, rows: Any, runs: list[tuple[int, str, str, str]]) -> Any:
        n = len(rows)
        lasts = np.zeros((2, n), dtype=np.bool_)
        for row, *flags in self._ends:
            lasts[:, row] = flags
        lengths = np.diff([run[0] for run in runs], append=n)
        episode, role, agent = (
            self._names(name, [run[i] for run in runs], lengths)
            for i, name in enumerate(NAMED, start=1)
        )
        signals = [(row, kept.signals) for row, kept in self._copied if kept.signals is not None]
        rationales = [(row, kept.rationale) for row, kept in self._copied]
        rationales = [(row, said) for row, said in rationales if said is not None]
        columns = [
            episode,
            _column(rows, "t"),
            _column(rows, "ts"),
            role,
            agent,
            _actions(self._copied) if self._vectors else _column(rows, "action"),
            _column(rows, "reward"),
            pa.array(lasts[0]),
            pa.array(lasts[1]),
            _spread(n, signals, _SIGNALS),
            _spread(n, rationales, pa.string()),
        ]
        if self._observations:
            columns.append(self._features())
        if self._infos:
            infos = [(row, kept.info) for row, kept in self._copied if kept.info is not None]
            columns.append(_spread(n, infos, pa.string()))
        return pa.record_batch(columns, schema=self.schema)

    def _names(self, column: str, values: list[Any], lengths: Any) -> Any:
        codes = self._codes[column]
        for value in values:
            codes.setdefault(value, len(codes))
        indices = np.repeat(np.array([codes[value] for value in values], dtype=np.int32), lengths)
        return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(list(codes), pa.string()))

    def _features(self) -> Any:
        width = self.schema.field("observation").type.list_size
        rows = np.stack([kept.features for _, kept in self._copied if kept.features is not None])
        if rows.shape[1:] != (width,):
            raise ValueError(f"an observation of shape {rows.shape[1:]}, after some of {width}")
        flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1)
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), width)


def to_numpy(table: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the flat columns of a table as numpy arrays; names are arrays of str."""
    chosen = table.column_names if names is None else list(names)
    columns = {}
    for name in chosen:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if pa.types.is_fixed_size_list(column.type):
            flat = column.combine_chunks().flatten().to_numpy()
            columns[name] = flat.reshape(-1, column.type.list_size)
        elif not pa.types.is_map(column.type):
            columns[name] = column.to_numpy()
    return columns


def _misfit(place: str, error: Exception) -> StoreError:
    return StoreError(
        "a step does not fit the columns of the store",
        where=place,
        found=str(error),
        expected="numbers, and one kind of action and observation throughout",
    )


def _column(rows: Any, name: str) -> Any:
    return pa.array(np.ascontiguousarray(rows[name]))


def _actions(copied: list[tuple[int, _Copies]]) -> Any:
    vectors = [kept.action for _, kept in copied if kept.action is not None]
    if any(vector.ndim != 1 for vector in vectors):
        raise ValueError("an action that is not a flat vector, among vectors")
    ends = np.cumsum([0, *(vector.size for vector in vectors)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(vectors)))


def _info(step: Step) -> str | None:
    info = step.after.info
    return None if info is None else json.dumps(info, allow_nan=False, sort_keys=True)


def _pairs(signals: Signals | None) -> list[tuple[str, float]] | None:
    if signals is None:
        return None
    return sorted((name, float(value)) for name, value in signals.items())


def _spread(n: int, values: list[tuple[int, Any]], kind: Any) -> Any:
    """Return a column of n rows with the given values, and null elsewhere."""
    if not values:
        return pa.nulls(n, kind)
    column: list[Any] = [None] * n
    for row, value in values:
        column[row] = value
    return pa.array(column, kind)
