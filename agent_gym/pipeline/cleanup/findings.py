"""What lies in the folder of results that could go, each with its size and its age.

Only what carries our own marks is found: a folder of somebody else's files is nothing to us, even
if ``AGENT_GYM_HOME`` is somebody's whole home.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_gym.core.errors import StoreError

Kind: TypeAlias = Literal[
    "experiment", "checkpoints", "nightly run", "frozen code", "video", "leftover"
]
FOLDERS = ("experiments", "reports", "models", "metrics", "videos", "logs", "cache")
DEEPEST = 3  # experiments/NAME/ARM/seed_N
UNFINISHED = ".tmp"
ENDED = ("done", "stopped_early")
VIDEOS = (".mp4", ".gif", ".webm")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that could go.

    Attributes:
        kind: What it is.
        path: Where it lies, seen from the folder of results.
        n_bytes: How much room it takes.
        files: How many files it has.
        changed_ns: When something in it was last changed.
        why: Why it goes, or stays.
    """

    kind: Kind
    path: str
    n_bytes: int
    files: int
    changed_ns: int
    why: str = ""


def find_items(root: Path) -> Iterator[Item]:
    """Yield everything in a folder of results that could go, by kind and name."""
    yield from _experiments(root)
    for path in _folders(root / "reports" / "runs"):
        if is_file(path / "samples.json") and is_file(path / "setup.json"):
            yield measured(root, path, "nightly run")
    for path in _folders(root / "cache" / "frozen"):
        yield measured(root, path, "frozen code")
    for path in _entries(root / "videos"):
        if is_file(path) and path.suffix in VIDEOS:
            yield measured(root, path, "video")
    for folder in FOLDERS:
        for path in _leftovers(root / folder):
            yield measured(root, path, "leftover")


def _experiments(root: Path) -> Iterator[Item]:
    """Yield whole experiments first, then the checkpoints of runs that have ended."""
    runs = {path: list(run_folders(path)) for path in _folders(root / "experiments")}
    for path, own in runs.items():
        if own:
            yield measured(root, path, "experiment")
    for run in (run for own in runs.values() for run in own):
        if is_folder(run / "checkpoints") and has_ended(run):
            yield measured(root, run / "checkpoints", "checkpoints")


def run_folders(experiment: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the folders of training runs at or below a folder."""
    if is_file(experiment / "config.json") and (
        is_file(experiment / "result.json") or is_folder(experiment / "checkpoints")
    ):
        yield experiment
    elif depth < DEEPEST:
        for path in _folders(experiment):
            yield from run_folders(path, depth + 1)


def has_ended(run: Path) -> bool:
    """Say whether a run has come to its end; one that was stopped can go on."""
    try:
        said = json.loads((run / "result.json").read_text(encoding="utf-8"))
        return said["status"] in ENDED
    except (OSError, ValueError, KeyError, TypeError):
        return False


def measured(root: Path, path: Path, kind: Kind) -> Item:
    """Return a thing with its size and the last change in it; links count as themselves."""
    n_bytes = files = changed_ns = 0
    for each in tree(path):
        seen = each.lstat()
        changed_ns = max(changed_ns, seen.st_mtime_ns)
        if not stat.S_ISDIR(seen.st_mode):
            n_bytes += seen.st_size
            files += 1
    return Item(kind, path.relative_to(root).as_posix(), n_bytes, files, changed_ns)


def tree(path: Path) -> Iterator[Path]:
    """Yield a path and all below it; a link is yielded and not followed."""
    yield path
    if is_folder(path):
        for each in _entries(path):
            yield from tree(each)


def is_folder(path: Path) -> bool:
    """Say whether this is a folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def is_file(path: Path) -> bool:
    """Say whether this is a file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def _entries(folder: Path) -> list[Path]:
    if not is_folder(folder):
        return []
    try:
        with os.scandir(folder) as found:
            return sorted(folder / each.name for each in found)
    except OSError as error:
        raise StoreError(
            "this folder cannot be read",
            where=str(folder),
            found=error.strerror,
            remedy="Give yourself the right to read it, or clean up as its owner",
        ) from error


def _folders(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        if is_folder(path) and not path.name.startswith("."):
            yield path


def _leftovers(folder: Path) -> Iterator[Path]:
    """Yield what killed runs have left half-written: hidden, and ending in .tmp."""
    for path in _entries(folder):
        if path.name.startswith(".") and path.name.endswith(UNFINISHED):
            if not path.is_symlink():
                yield path
        elif is_folder(path):
            yield from _leftovers(path)
