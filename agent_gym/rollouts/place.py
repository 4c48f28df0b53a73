"""Where a store is written: in its folder if that is free, else in a folder of its own inside it.

A run that replaces a store writes to ``partial-1`` (or the next number) inside the store's folder.
That is a marked partial store from its first moment, so a run that is cut short or killed leaves
the old store as it was and itself under a clear name. Being inside, it is always on the same disk,
and a rename can put it in place. The folder is locked by the system while somebody writes: the lock
ends with the process, so what a killed run has left cannot be mistaken for one under way.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import StoreError

MANIFEST, PARTIAL, SPOOL = "manifest.json", "partial.json", "spool.arrows"
_RUN = re.compile(r"partial-(\d+)")
_BUILT = re.compile(r"(steps|vectors)(-[0-9a-f]{16}\.parquet|\.building)")
_UNSAVED = re.compile(
    r"\.(manifest\.json|partial\.json|steps\.building|vectors\.building)\..*\.tmp"
)


@dataclass(slots=True)
class Place:
    """A claimed folder.

    Attributes:
        target: The folder that becomes the store.
        folder: Where the run writes: the target, or a folder in it if there is a store to keep.
    """

    target: Path
    folder: Path
    _lock: int | None

    @property
    def replaces(self) -> bool:
        """Whether there is an older store that stays until this one is complete."""
        return self.folder != self.target

    def release(self) -> None:
        """Let others write here; a second call does nothing."""
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # even if a forked child still holds a copy
            os.close(self._lock)
            self._lock = None

    def withdraw(self) -> None:
        """Remove what the run has written so far, and let others write here."""
        for name in (SPOOL, PARTIAL):
            (self.folder / name).unlink(missing_ok=True)
        self._drop_own_folder()
        self.release()

    def tidy(self, home: Path, kept: str) -> None:
        """Remove all of ours from a finished store but its manifest and the file that it names.

        What cannot be removed stays until the next run: the store is in place already.
        """
        for path in (home / SPOOL, home / PARTIAL, *_strays(home, kept)):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if home == self.target:
            self._drop_own_folder()

    def _drop_own_folder(self) -> None:
        if self.replaces:
            _remove(self.folder)


def claim(target: Path, *, overwrite: bool) -> Place:
    """Make a folder ours, or refuse: a result is never replaced unless that was asked for."""
    lock = _lock(target)
    place = Place(target, target, lock)
    try:
        found = [name for name in (MANIFEST, PARTIAL, SPOOL) if (target / name).exists()]
        if found and not overwrite:
            raise StoreError(
                "there is a store here already",
                where=str(target),
                found=", ".join(found),
                remedy="Choose another folder, or ask to overwrite",
            )
        if found:
            number = 1 + max((_number(run) for run in _clean(target)), default=0)
            place.folder = target / f"partial-{number}"
            place.folder.mkdir()
        (place.folder / SPOOL).write_bytes(b"")
    except OSError as error:
        place.release()
        raise no_entry(place.folder, error) from error
    except StoreError:
        place.release()
        raise
    return place


def check_idle(target: Path) -> None:
    """Refuse a folder that a run is writing to."""
    os.close(_lock(target))


def partial_runs(target: Path) -> tuple[Path, ...]:
    """Return the runs that were to replace this store and did not end, oldest first.

    Each is a partial store of its own, to be opened like any other, and to be deleted by whoever
    does not want it. One of them may still be under way.
    """
    runs = [path for path in target.glob("partial-*") if _RUN.fullmatch(path.name)]
    held = [run for run in runs if (run / MANIFEST).exists() or (run / PARTIAL).exists()]
    return tuple(sorted(held, key=_number))


def _lock(target: Path) -> int:
    try:
        target.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise no_entry(target, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise StoreError(
            "another run is writing here",
            where=str(target),
            remedy="Close or abandon its sink, wait for it to end, or choose another folder",
        ) from error
    except OSError as error:
        os.close(handle)
        raise no_entry(target, error) from error
    return handle


def no_entry(folder: Path, error: OSError) -> StoreError:
    """Return the error of a folder that cannot be written to."""
    return StoreError(
        "cannot write here",
        where=str(folder),
        found=error.strerror,
        remedy="Choose a folder on a disk that has room and lets you write",
    )


def _clean(target: Path) -> list[Path]:
    """Remove what dead runs have left and nobody can use; return the runs that hold something."""
    kept = []
    for run in target.glob("partial-*"):
        if not _RUN.fullmatch(run.name):
            continue
        if _holds_nothing(run):
            _remove(run)
        if run.exists():
            kept.append(run)
    with suppress(OSError, ValueError, KeyError, TypeError):  # an unreadable store is not tidied
        manifest = target / MANIFEST
        named = json.loads(manifest.read_bytes())["file"] if manifest.exists() else ""
        for path in _strays(target, named):
            path.unlink(missing_ok=True)
    return kept


def _holds_nothing(run: Path) -> bool:
    """Say whether a run was killed before it wrote anything."""
    if run.is_symlink() or (run / MANIFEST).exists():
        return False
    spool = run / SPOOL
    return not spool.exists() or spool.stat().st_size == 0


def _strays(folder: Path, kept: str) -> list[Path]:
    """Return files of ours that no manifest names: left by a kill in the middle of a swap."""
    return [
        path
        for path in folder.iterdir()
        if path.name != kept and (_BUILT.fullmatch(path.name) or _UNSAVED.fullmatch(path.name))
    ]


def _remove(run: Path) -> None:
    """Remove a run's folder; a file that is not ours stays, and the folder with it."""
    with suppress(OSError):
        for path in (run / SPOOL, run / PARTIAL, *_strays(run, "")):
            path.unlink(missing_ok=True)
        run.rmdir()


def _number(run: Path) -> int:
    return int(run.name.removeprefix("partial-"))
