"""CSV files that grow row by row and can be cut back to where a checkpoint saw them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import NamedTuple, TypeAlias

from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import write_text
from agent_gym.training.rl.run_records import FRESH

Cell: TypeAlias = int | float | str | None
BLOCK = 1 << 20


class Seen(NamedTuple):
    """How many bytes a file had, and their hash; none was kept by checkpoints of old."""

    size: int
    sha256: str | None


class Table:
    """One CSV file: a header, then whole rows. Floats are written with all their digits.

    A row that does not fit on the disk is taken back, so that the file ends with a whole one.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)

    def begin(self) -> None:
        """Write the header, in the place of what was there."""
        write_text(self.path, self._line(self.columns))

    def replace(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Write header and rows, in the place of what was there."""
        write_text(self.path, self._line(self.columns) + "".join(map(self._line, rows)))

    def append(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Add rows at the end, all of them or none."""
        content = "".join(map(self._line, rows)).encode()
        if not content:
            return
        with self._open() as file:
            size = file.seek(0, os.SEEK_END)
            try:
                written = file.write(content)
                if written != len(content):
                    raise OSError(f"{written} of {len(content)} bytes written")
            except OSError as error:
                file.truncate(size)
                raise StoreError(
                    "cannot write here", where=str(self.path), found=error.strerror or str(error)
                ) from error

    def sync(self) -> Seen:
        """Make sure that all rows are on the disk and return what they are."""
        with self._open() as file:
            os.fsync(file.fileno())
            size = file.seek(0, os.SEEK_END)
            return Seen(size, _sha256(file, size))

    def cut(self, seen: Seen) -> None:
        """Drop all rows that came after those a checkpoint has seen; these must be as they were."""
        with self._open() as file:
            found = file.seek(0, os.SEEK_END)
            if found < seen.size:
                raise DataError(
                    "rows that a checkpoint has seen are gone",
                    where=str(self.path),
                    found=f"{found} bytes",
                    expected=f"{seen.size} bytes at least",
                    remedy=FRESH,
                )
            if seen.sha256 is not None and _sha256(file, seen.size) != seen.sha256:
                raise DataError(
                    "rows that a checkpoint has seen were changed since",
                    where=str(self.path),
                    found=f"other bytes among the first {seen.size:,}",
                    remedy=FRESH,
                )
            file.truncate(seen.size)

    def _open(self) -> FileIO:
        try:
            return FileIO(self.path, "r+")
        except OSError as error:
            raise StoreError(
                "cannot write here", where=str(self.path), found=error.strerror
            ) from error

    def _line(self, row: Sequence[Cell]) -> str:
        if len(row) != len(self.columns):
            raise ValueError(f"a row has {len(row)} cells, not {len(self.columns)}")
        return ",".join(map(_text, row)) + "\n"


def _sha256(file: FileIO, size: int) -> str:
    """Return the hash of the first bytes of a file."""
    digest = sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)
