"""Checkpoints on disk: whole, hashed, nothing pickled; a bad one is named and passed over."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agent_gym.agents.sb3.folder import atomic_folder
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.training.rl.run_records import FRESH
from agent_gym.training.rl.snapshot import Snapshot, state_hash

FORMAT = "agent_gym.checkpoint/1"
NAME = re.compile(r"^step_(\d{12})$")
ARRAYS, VALUES, HASHES = "arrays.npz", "values.json", "hashes.json"


class Checkpoint(NamedTuple):
    """One that was read back; ``extra`` is what the trainer keeps beside the state."""

    step: int
    snapshot: Snapshot
    extra: dict[str, Any]


class CheckpointStore:
    """The last checkpoints of one run, newest first.

    Args:
        folder: Where they lie, a folder each.
        keep: How many of the last are kept.
        say: Who is told of a bad one; without, it is a warning.
    """

    def __init__(
        self, folder: Path, keep: int = 2, say: Callable[[str], None] | None = None
    ) -> None:
        self.folder = folder
        self._keep = keep
        self._say = say or _warn
        self._bad: set[int] = set()

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints that lie there, good or bad, oldest first."""
        if not self.folder.is_dir():
            return []
        found = (NAME.match(path.name) for path in self.folder.iterdir() if path.is_dir())
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """Return the folder of the checkpoint at a step."""
        return self.folder / f"step_{step:012d}"

    def save(self, step: int, snapshot: Snapshot, extra: dict[str, Any]) -> None:
        """Write one, whole or not at all, then remove those that are too many."""
        values = {
            "format": FORMAT,
            "step": step,
            "state_hash": state_hash(snapshot),
            "values": snapshot.values,
            "extra": extra,
        }
        if self.path(step).is_file():  # of somebody else's making; a checkpoint is a folder
            self.path(step).unlink()
        with atomic_folder(self.path(step)) as folder:
            np.savez(folder / ARRAYS, allow_pickle=False, **snapshot.arrays)
            (folder / VALUES).write_text(to_json(values), encoding="utf-8")
            hashes = {name: _sha256(folder / name) for name in (ARRAYS, VALUES)}
            (folder / HASHES).write_text(to_json(hashes), encoding="utf-8")
        self._bad.discard(step)
        self._prune()

    def latest(self) -> Checkpoint | None:
        """Return the newest good one; None if there is none at all, an error if all are bad."""
        steps, found = self.steps()[::-1], []
        for step in steps:
            try:
                return self.load(step)
            except DataError as error:
                self._bad.add(step)
                found.append(f"{self.path(step).name}: {error.what}")
                self._say(f"passing over a bad checkpoint: {error}")
        if not found:
            return None
        raise DataError(
            "no checkpoint of this run can be read",
            where=str(self.folder),
            found="; ".join(found),
            remedy=FRESH,
        )

    def load(self, step: int) -> Checkpoint:
        """Read one and check every byte of it; a DataError says which file is wrong, and how."""
        folder = self.path(step)
        _check_hashes(folder)
        values = json.loads((folder / VALUES).read_text(encoding="utf-8"))
        if values.get("format") != FORMAT or values.get("step") != step:
            raise DataError(
                "a checkpoint is of another format or step",
                where=str(folder / VALUES),
                found=f"{values.get('format')}, step {values.get('step')}",
                expected=f"{FORMAT}, step {step}",
            )
        with np.load(folder / ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        snapshot = Snapshot(arrays, values["values"])
        if state_hash(snapshot) != values["state_hash"]:
            raise DataError("a checkpoint is not what was saved", where=str(folder))
        return Checkpoint(step, snapshot, values["extra"])

    def clean(self) -> None:
        """Remove what a process that was killed while it wrote has left."""
        if self.folder.is_dir():
            for path in self.folder.glob(".step_*.tmp"):
                shutil.rmtree(path, ignore_errors=True)

    def _prune(self) -> None:
        good = [step for step in self.steps() if step not in self._bad]
        for step in {*self._bad, *good[: -self._keep]}:
            shutil.rmtree(self.path(step), ignore_errors=True)
            self._bad.discard(step)


def _check_hashes(folder: Path) -> None:
    where = folder / HASHES
    try:
        hashes = json.loads(where.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError("a file of a checkpoint cannot be read", where=str(where)) from error
    if not isinstance(hashes, dict) or set(hashes) != {ARRAYS, VALUES}:
        raise DataError("a file of a checkpoint is damaged", where=str(where))
    for name, expected in hashes.items():
        path = folder / name
        try:
            found = _sha256(path)
        except OSError as error:
            raise DataError(
                "a file of a checkpoint cannot be read", where=str(path), found=error.strerror
            ) from error
        if found != expected:
            raise DataError(
                "a file of a checkpoint is damaged",
                where=str(path),
                found=f"sha256 {found[:12]}",
                expected=f"sha256 {str(expected)[:12]}",
            )


def _sha256(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
