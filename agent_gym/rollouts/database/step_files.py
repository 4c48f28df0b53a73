"""Files of steps, each a blob: named by the hash of its bytes, so a changed one gives itself away.

A file is an Arrow IPC file (zstd) that holds one or many trajectories, one after the other; the
database says which rows are whose. It is never written to again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from agent_gym.core.errors import StoreError
from agent_gym.core.types import FloatArray
from agent_gym.rollouts.blobs import BlobStore
from agent_gym.rollouts.blobs.shelf import LocalShelf
from agent_gym.rollouts.database.step_columns import StepColumns, step_columns
from agent_gym.rollouts.database.tables import FileState

FORMAT = "agent_gym.steps/1"
BATCH_ROWS = 8192
SUFFIX = ".arrow"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that lies in its place: what it is called and how large it is."""

    file_hash: str
    n_rows: int
    n_bytes: int


class StepFiles:
    """The step files of a store, each a blob."""

    def __init__(self, blobs: BlobStore) -> None:
        self.blobs = blobs

    @classmethod
    def within(cls, folder: Path) -> StepFiles:
        """Return the step files of a folder, whatever address blobs have elsewhere."""
        return cls(BlobStore(LocalShelf(folder), folder, SUFFIX))

    @property
    def folder(self) -> Path:
        """Where they lie on this machine; a cache if the blobs are remote."""
        return self.blobs.folder

    def write(
        self, trajectories: Sequence[tuple[str, int]], blocks: Sequence[Any], schema: Any
    ) -> WrittenFile:
        """Put the steps of some trajectories into one file and sync it.

        Args:
            trajectories: Id and number of steps of each, in the order of the rows.
            blocks: The rows.
            schema: Their Arrow schema.
        """
        table = pa.Table.from_batches(blocks, schema).unify_dictionaries().combine_chunks()
        said = {"format": FORMAT, "trajectories": json.dumps(trajectories)}
        named = table.replace_schema_metadata(said)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
        with pa.ipc.new_file(sink, named.schema, options=options) as writer:
            writer.write_table(named, max_chunksize=BATCH_ROWS)
        content = sink.getvalue()
        return WrittenFile(self.blobs.put(content, patient=True), table.num_rows, content.size)

    def read(self, file_hash: str, ranges: Iterable[tuple[int, int]]) -> Iterator[StepColumns]:
        """Yield the steps of each (first row, number of rows), once the file has been checked."""
        path = self.believe(file_hash)
        try:
            with pa.memory_map(str(path)) as source:
                reader = pa.ipc.open_file(source)
                batches: dict[int, Any] = {}
                for first, n in ranges:
                    wanted = range(first // BATCH_ROWS, (first + max(n, 1) - 1) // BATCH_ROWS + 1)
                    batches = {i: batches.get(i) or reader.get_batch(i) for i in wanted}
                    table = pa.Table.from_batches(list(batches.values()))
                    rows = table.slice(first - wanted.start * BATCH_ROWS, n)
                    if rows.num_rows != n:
                        raise _unreadable(path, f"{rows.num_rows} of {n} rows from {first} on")
                    yield step_columns(rows)
        except (OSError, pa.ArrowException, IndexError, ValueError) as error:
            raise _unreadable(path, str(error)) from error

    def numbers(self, file_hash: str, name: str, first: int, n: int) -> FloatArray:
        """Return one column of numbers of some rows; the others are not unpacked."""
        path = self.believe(file_hash)
        try:
            with pa.memory_map(str(path)) as source:
                place = pa.ipc.open_file(source).schema.get_field_index(name)
                options = pa.ipc.IpcReadOptions(included_fields=[place])
                reader = pa.ipc.open_file(source, options=options)
                wanted = range(first // BATCH_ROWS, (first + max(n, 1) - 1) // BATCH_ROWS + 1)
                table = pa.Table.from_batches([reader.get_batch(i) for i in wanted])
                rows = table.slice(first - wanted.start * BATCH_ROWS, n)
                found: FloatArray = rows.column(0).to_numpy()
        except (OSError, pa.ArrowException, IndexError, ValueError) as error:
            raise _unreadable(path, str(error)) from error
        if found.size != n:
            raise _unreadable(path, f"{found.size} of {n} rows from {first} on")
        return found

    def state(self, file_hash: str) -> FileState:
        """Say whether a file is what was written."""
        return self.blobs.state(file_hash)

    def set_aside(self, file_hash: str) -> str:
        """Move a file to where nobody takes it for a good one."""
        return self.blobs.set_aside(file_hash)

    def names(self) -> set[str]:
        """Return the hashes by which the files here are called."""
        return set(self.blobs.digests())

    def path(self, file_hash: str) -> Path:
        """Return where a file lies on this machine; what is no hash never becomes a path."""
        return self.blobs.path(file_hash)

    def believe(self, file_hash: str) -> Path:
        """Return where a file lies, its hash checked the first time and whenever it was touched."""
        return self.blobs.fetch(file_hash)


def _unreadable(path: Path, found: str) -> StoreError:
    return StoreError(
        "a step file is not what was written",
        where=str(path),
        found=found,
        remedy="TrajectoryStore.check() sets it aside and says which trajectories it held",
    )
