"""Folders that appear whole or not at all, and what kills have left beside them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from agent_gym.core.errors import StoreError
from agent_gym.core.files import sync

UNFINISHED = ".tmp"


@contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside ``target`` to be filled; what is not put in place is removed."""
    new = target.parent / f".{target.name}{UNFINISHED}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        yield new
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def put_in_place(new: Path, target: Path) -> None:
    """Sync a filled folder and rename it onto its name.

    A target that exists with the same content stays as it is; with other content it is an error,
    for a finished folder never changes.
    """
    if target.exists():
        if file_hashes(new) != file_hashes(target):
            raise StoreError(
                "this folder exists and holds something else",
                where=str(target),
                remedy="A finished folder is never changed: move it away and run again",
            )
        return
    for path in sorted(new.rglob("*"), reverse=True):  # what is in a folder before the folder
        sync(path)
    sync(new)
    new.rename(target)
    sync(target.parent)


def file_hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by its path from there.

    A link is never followed: it counts as a file that says where it leads.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path.relative_to(folder).as_posix()] = f"link to {path.readlink()}"
        elif path.is_file():
            found[path.relative_to(folder).as_posix()] = hash_of(path.read_bytes())
    return found


def hash_of(content: bytes) -> str:
    """Return the hash that contents are known by."""
    return blake2b(content, digest_size=32).hexdigest()


def sweep(*folders: Path) -> None:
    """Remove what killed runs have left half-written; only the holder of the lock may do so."""
    for folder in folders:
        for path in folder.glob(f".*{UNFINISHED}"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def cannot_write(target: Path, error: OSError) -> StoreError:
    """Return the error of a place that cannot be written."""
    return StoreError(
        "cannot write here",
        where=str(target),
        found=error.strerror or str(error),
        remedy="Free some space, or choose another workspace with AGENT_GYM_HOME",
    )
