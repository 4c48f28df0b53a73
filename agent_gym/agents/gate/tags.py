"""Provenance of many rows as three columns: 13 bytes a row, whatever the row holds.

A source is one byte, a run is a number in a table of runs, a time is one integer. The table is
sorted and holds only runs that occur, so a window over an endless stream stays as small as itself.
Combining takes the worse row (see ``Provenance.combine``); order and grouping do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.agents.gate.provenance import Provenance, ProvenanceError, Source

Run: TypeAlias = tuple[str, str]  # run id and parent hash
RowIndex: TypeAlias = slice | NDArray[np.bool_] | NDArray[np.integer[Any]]


def immutable(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy whose memory nobody can write to, not even by asking for it back."""
    return np.ndarray(values.shape, values.dtype, buffer=np.ascontiguousarray(values).tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """One provenance a row.

    Attributes:
        source: Code of the source of each row.
        run: Number of its run in the table.
        t: Its time in that run.
        runs: The table: run id and parent hash, sorted, every one in use.
    """

    source: NDArray[np.uint8]
    run: NDArray[np.int32]
    t: NDArray[np.int64]
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.source.shape == self.run.shape == self.t.shape or self.source.ndim != 1:
            raise ProvenanceError("every row has a source, a run and a time")
        if self.source.size and int(self.source.max()) > max(Source):
            raise ProvenanceError("an unknown source", found=int(self.source.max()))
        if self.run.size and not (self.run.min() >= 0 and self.run.max() < len(self.runs)):
            raise ProvenanceError("a row names a run that is not in the table")
        used, numbers = np.unique(self.run, return_inverse=True)
        kept = tuple(sorted({self.runs[i] for i in used}))
        place = {run: number for number, run in enumerate(kept)}
        places = np.array([place[self.runs[i]] for i in used], np.int32)
        object.__setattr__(self, "runs", kept)
        object.__setattr__(self, "run", immutable(places[numbers]))
        object.__setattr__(self, "source", immutable(self.source.astype(np.uint8)))
        object.__setattr__(self, "t", immutable(self.t.astype(np.int64)))

    @classmethod
    def of(cls, source: Source, run_id: str, t: ArrayLike, parent_hash: str = "") -> Tags:
        """Tag rows of one source and one run.

        Example:
            >>> Tags.of(Source.ECHO, "crowd", [5, 6])[0]
            Provenance(source=<Source.ECHO: 3>, run_id='crowd', t=5, parent_hash='')
        """
        times = np.atleast_1d(np.asarray(t, np.int64))
        Provenance(source, run_id, 0, parent_hash)  # refuses what no record may have
        codes = np.full(times.size, int(source), np.uint8)
        return cls(codes, np.zeros(times.size, np.int32), times, ((run_id, parent_hash),))

    def __len__(self) -> int:
        return int(self.source.size)

    @overload
    def __getitem__(self, row: int) -> Provenance: ...
    @overload
    def __getitem__(self, row: RowIndex) -> Tags: ...
    def __getitem__(self, row: int | RowIndex) -> Provenance | Tags:
        if isinstance(row, int):
            run_id, parent = self.runs[int(self.run[row])]
            return Provenance(Source(int(self.source[row])), run_id, int(self.t[row]), parent)
        return Tags(self.source[row], self.run[row], self.t[row], self.runs)

    @property
    def primary(self) -> NDArray[np.bool_]:
        """Return which rows are primary."""
        mask: NDArray[np.bool_] = self.source == int(Source.PRIMARY)
        return mask

    @property
    def nbytes(self) -> int:
        """Return the memory of the columns."""
        return self.source.nbytes + self.run.nbytes + self.t.nbytes

    def counts(self) -> dict[Source, int]:
        """Return the number of rows of each source that occurs."""
        found, numbers = np.unique(self.source, return_counts=True)
        return {Source(int(s)): int(n) for s, n in zip(found, numbers, strict=True)}

    def at_least(self, source: Source) -> Tags:
        """Return the tags of what this source made from these rows."""
        return Tags(np.maximum(self.source, int(source)), self.run, self.t, self.runs)

    def combine(self, other: Tags) -> Tags:
        """Return the worse tag of each pair of rows; a single row goes with every row."""
        if other is self:
            return self
        if len(self) != len(other) and 1 not in (len(self), len(other)):
            raise ProvenanceError("rows do not pair up", found=f"{len(self)} and {len(other)}")
        both = Tags.concat([self, other])
        first, second = np.arange(len(self)), np.arange(len(self), len(both))
        rank = both._ranks()
        return both[np.where(rank[first] >= rank[second], first, second)]

    def running(self) -> Tags:
        """Return for each row the worst of it and all rows before it."""
        rank = self._ranks()
        holder = np.argsort(rank)
        return self[holder[np.maximum.accumulate(rank)]]

    def worst(self) -> Tags:
        """Return the worst row alone, or none of none."""
        return self[np.argsort(self._ranks())[-1:]]

    @staticmethod
    def concat(parts: Sequence[Tags]) -> Tags:
        """Return the rows of all parts, one after another."""
        runs = tuple(run for part in parts for run in part.runs)
        before = np.cumsum([0, *(len(part.runs) for part in parts)])
        numbers = [part.run + start for part, start in zip(parts, before, strict=False)]
        return Tags(
            np.concatenate([part.source for part in parts]),
            np.concatenate(numbers).astype(np.int32),
            np.concatenate([part.t for part in parts]),
            runs,
        )

    def _ranks(self) -> NDArray[np.int64]:
        """Return the place of each row when sorted from clean to worst."""
        order = np.lexsort((self.run, self.t, self.source))
        ranks: NDArray[np.int64] = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        return ranks
