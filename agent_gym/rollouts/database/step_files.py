"""Files of steps, each named by the hash of its bytes, so that a changed one gives itself away.

A file is an Arrow IPC file (zstd) that holds one or many trajectories, one after the other; the
database says which rows are whose. It is never written to again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path
from agent_gym.core.types import FloatArray
from agent_gym.rollouts.database.step_columns import StepColumns, step_columns
from agent_gym.rollouts.database.tables import FileState

FORMAT = "agent_gym.steps/1"
BATCH_ROWS = 8192
SUFFIX = ".arrow"
DAMAGED = "damaged"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that lies in its place: what it is called and how large it is."""

    file_hash: str
    n_rows: int
    n_bytes: int


class StepFiles:
    """The folder of step files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._checked: set[tuple[str, int, int, int]] = set()

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
        digest = sha256(content).hexdigest()
        path = self.path(digest)
        if path.exists():
            os.utime(path)  # retention leaves alone what was met lately
        else:
            with atomic_path(path) as temporary:
                temporary.write_bytes(content)
        return WrittenFile(digest, table.num_rows, content.size)

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
        path = self.path(file_hash)
        if path.is_symlink() or not path.is_file():
            return "missing"
        return "whole" if _digest(path) == file_hash else "damaged"

    def set_aside(self, file_hash: str) -> Path:
        """Move a file to where nobody takes it for a good one."""
        target = self.folder / DAMAGED / f"{file_hash}{SUFFIX}"
        target.parent.mkdir(parents=True, exist_ok=True)
        return self.path(file_hash).replace(target)

    def names(self) -> set[str]:
        """Return the hashes by which the files here are called."""
        found = self.folder.glob(f"??/*{SUFFIX}")
        return {path.stem for path in found if _HASH.fullmatch(path.stem)}

    def path(self, file_hash: str) -> Path:
        """Return where a file lies; what is no hash never becomes a path."""
        if not _HASH.fullmatch(file_hash):
            raise StoreError("a step file has a name that is no hash", found=repr(file_hash))
        return self.folder / file_hash[:2] / f"{file_hash}{SUFFIX}"

    def believe(self, file_hash: str) -> Path:
        """Return where a file lies, its hash checked the first time and whenever it was touched."""
        path = self.path(file_hash)
        try:
            now = path.lstat()
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        seen = (file_hash, now.st_ino, now.st_size, now.st_mtime_ns)
        if seen in self._checked:
            return path
        state = self.state(file_hash)
        if state != "whole":
            raise _unreadable(path, state)
        self._checked.add(seen)
        return path


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _unreadable(path: Path, found: str) -> StoreError:
    return StoreError(
        "a step file is not what was written",
        where=str(path),
        found=found,
        remedy="TrajectoryStore.check() sets it aside and says which trajectories it held",
    )
