"""Where acceptors are kept: immutable folders, one pointer to the champion, a chained log.

- ``models/<version>/{model.npz, manifest.json}``
- ``champion.json``: who is in office, and whom it followed
- ``state.json``: what the loop has done last
- ``actions.jsonl``: every training action, each sealed with the hash of the one before
- ``lock``: held by the one loop that runs
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.core.files import home, write_json
from agent_gym.evaluation.protocol.journal import Journal, Record
from agent_gym.training.desk.model import MANIFEST_FILE, DeskModel, load_model


def default_root() -> Path:
    """Return where acceptors are kept unless told otherwise."""
    return home() / "models" / "desk"


class Shadow(Struct, frozen=True):
    """A challenger that watches: signals after ``since`` are its trial.

    It was trained on nothing from ``unseen_from`` on.
    """

    version: str
    since: float
    unseen_from: float


class LoopState(Struct, frozen=True):
    """What the loop has done last."""

    attempted_at: float | None = None
    trained_at: float | None = None
    dataset_hash: str | None = None
    shadow: Shadow | None = None


class ModelStore:
    """Keeps acceptors in a folder.

    Args:
        root: The folder; it comes into being with the first thing that is written.
        clock: Tells when an action was logged.
    """

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.root = root
        self._journal = Journal(root / "actions.jsonl", clock or SystemClock())
        self._pointer = root / "champion.json"
        self._state = root / "state.json"
        self._hold = root / "hold.json"

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Yield whether this is the only loop at work; the system frees the lock after a crash."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise StoreError(
                "cannot write here", where=str(self.root), found=error.strerror
            ) from error
        try:
            yield _taken(handle)
        finally:
            os.close(handle)

    def add(self, model: DeskModel, manifest: Mapping[str, Any]) -> str:
        """Keep a model; one that is there already is left as it is."""
        folder = self.folder(model.version)
        if not (folder / MANIFEST_FILE).exists():
            model.save(folder, manifest)
        return model.version

    def folder(self, version: str) -> Path:
        """Return where a version is kept."""
        return self.root / "models" / version

    def model(self, version: str) -> DeskModel:
        """Return a kept model."""
        return load_model(self.folder(version))

    def champion(self) -> DeskModel | None:
        """Return the acceptor in office, None if there is none."""
        said = self._read(self._pointer)
        if said is None:
            return None
        return self.model(said["version"]).held(self._hold.exists())

    def promote(self, version: str) -> None:
        """Put a kept model into office; the pointer is the only file that changes."""
        self.model(version)
        before = self._read(self._pointer)
        write_json(self._pointer, {"version": version, "previous": before})
        self._hold.unlink(missing_ok=True)

    def rollback(self) -> str | None:
        """Put the last champion back into office and return it; None if there was none before.

        Going back again goes one further back.
        """
        said = self._read(self._pointer)
        if said is None:
            raise StoreError(
                "there is no champion to roll back from",
                where=str(self._pointer),
                remedy="A model must be promoted first",
            )
        before = said["previous"]
        if before is None:
            self._pointer.unlink()
        else:
            self.model(before["version"])
            write_json(self._pointer, before)
        self._hold.unlink(missing_ok=True)
        back_to = None if before is None else str(before["version"])
        self.log("rolled_back", {"from": said["version"], "to": back_to})
        return back_to

    def hold(self, reason: str) -> None:
        """Let the champion hold every signal from now on."""
        write_json(self._hold, {"reason": reason})

    def state(self) -> LoopState:
        """Return what the loop has done last."""
        said = self._read(self._state)
        try:
            return LoopState() if said is None else convert(said, LoopState)
        except ValidationError as error:
            raise _unreadable(self._state, error) from error

    def remember(self, state: LoopState) -> None:
        """Write down what the loop has done."""
        write_json(self._state, to_builtins(state))

    def log(self, kind: str, body: dict[str, Any]) -> None:
        """Seal an action onto the log."""
        with self._journal.writing() as pen:
            pen.add(kind, body)

    def actions(self) -> list[Record]:
        """Return all logged actions; a log that was tampered with is a StoreError."""
        return self._journal.records()

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        if not isinstance(said, dict):
            raise _unreadable(path, said)
        return said


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unreadable(path: Path, found: object) -> StoreError:
    return StoreError(
        "a file of the model store cannot be read",
        where=str(path),
        found=found,
        remedy="Restore it from a copy, or remove it to begin anew without a champion",
    )
