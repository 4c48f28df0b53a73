"""Why something must stay: it is in office, referred to, or at work."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import DataError
from agent_gym.pipeline.cleanup.findings import Item, is_file, is_folder, tree
from agent_gym.pipeline.nightly.baseline import read_pointer
from agent_gym.pipeline.nightly.workspace import Workspace

PAGES = (".html", ".md", ".json", ".txt", ".yaml", ".yml", ".csv", ".xml")
_PLACE = re.compile(r"(?:experiments|videos|runs)/[^\s\"'<>()\[\]{}|\\,;]+")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_BASELINE = re.compile(r"(^|[^a-z])(baselines?|champions?)([^a-z]|$)", re.IGNORECASE)
QUIET_NS = HOUR_NS  # what was changed since then is taken to be at work


class Protection:
    """Knows why a thing must stay.

    Args:
        root: The folder of results.
        pages: Folders and files elsewhere that may refer to results, such as ``docs/results``.
        now_ns: The present.
        own_lock: The lock of the workspace is held by whoever asks.
    """

    def __init__(
        self, root: Path, pages: Iterable[Path], now_ns: int, *, own_lock: bool = False
    ) -> None:
        self._root, self._now_ns = root, now_ns
        self._workspace = Workspace(root)
        self._night = not own_lock and is_held(self._workspace.lock)
        self._places: dict[str, str] = {}
        self._words: dict[str, str] = {}
        for page in self._own_pages():
            self._read(page, page.relative_to(root).as_posix())
        for page in pages:
            for file in tree(page):
                if is_file(file) and file.suffix in PAGES:
                    self._read(file, str(file))
        pointers = (read_pointer(self._workspace, which) for which in ("current", "anchor"))
        self._in_office = {said["id"] for said in pointers if said is not None}

    def reason(self, item: Item) -> str | None:
        """Return why a thing must stay, None if nothing keeps it."""
        if item.kind in ("nightly run", "frozen code", "leftover") and self._night:
            return "a night is under way"
        if item.kind == "frozen code":
            name = item.path.rpartition("/")[2]
            return "the baseline in office uses it" if name in self._in_office else None
        if item.kind in ("experiment", "checkpoints"):
            return self._of_experiment(item)
        if item.kind in ("nightly run", "video"):
            return self._mention(item.path)
        return None

    def _of_experiment(self, item: Item) -> str | None:
        place = "/".join(item.path.split("/")[:2])
        if _BASELINE.search(place):
            return "a baseline"
        folder = self._root / item.path
        working = at_work(folder if item.kind == "experiment" else folder.parent, self._now_ns)
        if working is not None:
            return working
        if any(is_file(path) and path.name == "champion.json" for path in tree(folder)):
            return "a champion"
        return self._mention(place)

    def _mention(self, place: str) -> str | None:
        name = place.rpartition("/")[2]
        page = self._places.get(place) or (
            self._words.get(name) if "/runs/" in place or place.startswith("videos/") else None
        )
        return None if page is None else f"{page} refers to it"

    def _own_pages(self) -> Iterator[Path]:
        """Yield what tells of results: reports, models, and files at the top; not their own."""
        runs = self._root / "reports" / "runs"
        for name in ("reports", "models", "metrics"):
            for path in tree(self._root / name):
                if is_file(path) and path.suffix in PAGES and runs not in path.parents:
                    yield path
        if is_folder(self._root):
            for path in self._root.iterdir():
                if is_file(path) and path.suffix in PAGES:
                    yield path

    def _read(self, file: Path, called: str) -> None:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise DataError(
                "a page that may refer to results cannot be read",
                where=str(file),
                found=error.strerror,
                remedy="Make it readable, or move it away, so that nothing it needs is removed",
            ) from error
        for match in _PLACE.finditer(unquote(text)):
            parts = match[0].split("/")
            if parts[0] == "runs":
                parts = ["reports", *parts]
            for cut in range(2, len(parts) + 1):
                self._places.setdefault("/".join(parts[:cut]).rstrip(".:"), called)
        if file.suffix != ".csv":
            for word in _WORD.finditer(text):
                self._words.setdefault(word[0], called)


def at_work(folder: Path, now_ns: int) -> str | None:
    """Return why a folder of runs is taken to be in use, None if it is not."""
    for path in tree(folder):
        if is_file(path) and (path.name == "lock" or path.suffix in (".lock", ".pid")):
            if is_held(path):
                return f"a run is under way ({path.name} is held)"
            pid = living_pid(path)
            if pid is not None:
                return f"a run is under way (process {pid})"
    changed_ns = max(path.lstat().st_mtime_ns for path in tree(folder))
    return "changed within the hour" if now_ns - changed_ns < QUIET_NS else None


def is_held(lock: Path) -> bool:
    """Say whether a process holds the lock of a file."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def living_pid(file: Path) -> int | None:
    """Return the process that a file names, as a number or in JSON, if it lives."""
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        pid = int(said["pid"] if isinstance(said, dict) else said)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if pid > 0 and _answers(pid) else None


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # it lives, and is somebody else's
        return True
    except (OSError, OverflowError):
        return False
    return True
