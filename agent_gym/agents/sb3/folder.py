"""A folder of files that is written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_gym.core.errors import StoreError
from agent_gym.core.files import sync


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``; on success it is synced and takes its place.

    If the body raises, nothing is left of it and the old folder stays as it was. A process that
    is killed between the two renames leaves the old folder aside, where ``settled`` finds it.
    Of several processes that write the same folder the last one wins.
    """
    aside = _aside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent):
            if not target.exists() and aside.exists():
                aside.rename(target)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        )
    except OSError as error:
        raise StoreError("cannot write here", where=str(target), found=error.strerror) from error
    try:
        yield temporary
        _sync_tree(temporary)
        temporary.chmod(0o755)
        with _alone(target.parent):
            _swap(temporary, target, aside)
    except OSError as error:
        raise StoreError(
            "cannot write here",
            where=str(target),
            found=error.strerror or str(error),
            remedy="Look at the free space and the rights of this folder",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def settled(target: Path) -> Path:
    """Return where the last whole version of a folder lies."""
    aside = _aside(target)
    return aside if not target.exists() and aside.exists() else target


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.before")


def _swap(fresh: Path, target: Path, aside: Path) -> None:
    if target.exists():
        if aside.exists():
            shutil.rmtree(aside)
        target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        if aside.exists():
            aside.rename(target)
        raise
    sync(target.parent)
    if aside.exists():
        shutil.rmtree(aside)


@contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """Wait until no other process moves folders here; the lock goes with the process."""
    handle = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)
