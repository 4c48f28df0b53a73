"""Where blobs stand: a folder here, or something far away that can do the same six things."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_gym.core.files import atomic_path


@dataclass(frozen=True, slots=True)
class Entry:
    """A file on a shelf: its name seen from there, its size, and when it was put or moved."""

    name: str
    n_bytes: int
    changed_ns: int


class Shelf(Protocol):
    """Keeps files by name; nobody ever sees half of one.

    Attributes:
        where: The place in words, without any secret.
    """

    where: str

    def upload(self, source: Path, name: str) -> None:
        """Put a copy of a local file here, in the place of what was there."""

    def download(self, name: str, target: Path) -> None:
        """Copy a file into a local one, a part at a time; FileNotFoundError if it is not here."""

    def entry(self, name: str) -> Entry | None:
        """Return what is known of a file, None if it is not here."""

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """Yield all files at or below a folder, hidden ones too."""

    def move(self, name: str, to: str) -> None:
        """Give a file another name; from now on it counts as changed."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""


class LocalShelf:
    """A folder. Links are neither followed nor listed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.where = folder, str(folder)

    def path(self, name: str) -> Path:
        """Return where a file lies or would lie."""
        return self.folder / name

    def upload(self, source: Path, name: str) -> None:
        """Put a copy of a local file here, in the place of what was there."""
        with atomic_path(self.path(name)) as temporary:
            shutil.copyfile(source, temporary)

    def download(self, name: str, target: Path) -> None:
        """Copy a file into a local one; FileNotFoundError if it is not here."""
        if self.entry(name) is None:
            raise FileNotFoundError(name)
        shutil.copyfile(self.path(name), target, follow_symlinks=False)

    def entry(self, name: str) -> Entry | None:
        """Return what is known of a file, None if it is not here."""
        path = self.path(name)
        if path.is_symlink() or not path.is_file():
            return None
        found = path.stat()
        return Entry(name, found.st_size, found.st_mtime_ns)

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """Yield all files at or below a folder, hidden ones too."""
        for parent, _, names in os.walk(self.folder / folder):
            for name in sorted(names):
                found = self.entry(Path(parent, name).relative_to(self.folder).as_posix())
                if found is not None:
                    yield found

    def move(self, name: str, to: str) -> None:
        """Give a file another name; from now on it counts as changed."""
        os.utime(self.path(name))  # first: a kill in between makes it look younger, never older
        self.path(to).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).replace(self.path(to))

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        self.path(name).unlink(missing_ok=True)
