"""Reads the files of a workspace as a stranger would, and names those that are not whole."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

from prometheus_client.parser import text_string_to_metric_families

from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.nightly.baseline import load_baseline
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.pipeline.registry.artifacts import ArtifactStore
from agent_gym.pipeline.registry.keys import KeyRing

ROOMS = ("reports", "metrics", "jobs", "models")
TRACE = "Traceback (most recent call last)"


def _html(text: str) -> None:
    if not text.rstrip().endswith("</html>"):
        raise ValueError("the page has no end")


def _metrics(text: str) -> None:
    if not list(text_string_to_metric_families(text)) or not text.endswith("\n"):
        raise ValueError("no figures, or the last one is cut off")


PARSERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".html": _html,
    ".prom": _metrics,
    ".xml": ElementTree.fromstring,
}


class Files:
    """The files of one workspace; what was whole once and has not changed is not read again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known: dict[Path, tuple[int, int]] = {}

    def broken(self) -> list[str]:
        """Return what is not whole, in words."""
        return [*self._texts(), *self._steps()]

    def broken_baseline(self) -> list[str]:
        """Return what is wrong with the approved baseline; there has to be one."""
        try:
            load_baseline(Workspace(self._home))
        except AgentGymError as error:
            return [str(error)]
        return []

    def broken_databases(self) -> list[str]:
        """Return the SQLite files that are damaged."""
        found = []
        for path in (*self._home.glob("*.db"), *(self._home / "trajectories").glob("*.db")):
            with closing(sqlite3.connect(path, 20.0)) as connection:
                said = connection.execute("pragma quick_check(1)").fetchone()[0]
            if said != "ok":
                found.append(f"{path.name}: {said}")
        return found

    def unsigned(self, models: list[str]) -> list[str]:
        """Return the models that are not what was signed."""
        place = self._home / "models"
        if not (place / "keys" / "signing.key").exists():
            return [f"{len(models)} models are known and the key is gone"] if models else []
        store, found = ArtifactStore(place / "artifacts", KeyRing.open(place / "keys")), []
        for model in models:
            try:
                store.load(model)
            except AgentGymError as error:
                found.append(f"{model[:12]}: {error.found}")
        return found

    def _texts(self) -> Iterator[str]:
        for room in ROOMS:
            for path in self._fresh(self._home / room, PARSERS):
                try:
                    PARSERS[path.suffix](path.read_text(encoding="utf-8"))
                except (FileNotFoundError, NotADirectoryError):
                    continue  # it has just been moved
                except (ValueError, ElementTree.ParseError) as error:
                    self._known.pop(path, None)
                    yield f"{path.relative_to(self._home)}: {error}"

    def _steps(self) -> Iterator[str]:
        for path in self._fresh(self._home / "trajectories", {".arrow": None}):
            try:
                digest = sha256(path.read_bytes()).hexdigest()
            except FileNotFoundError:
                continue
            if digest != path.stem:
                self._known.pop(path, None)
                yield f"{path.relative_to(self._home)}: its hash is {digest[:12]}"

    def _fresh(self, folder: Path, suffixes: dict[str, object]) -> Iterator[Path]:
        """Yield the files with a final name that are new or were replaced."""
        for path in folder.rglob("*"):
            inside = path.relative_to(self._home).parts
            if path.suffix not in suffixes or any(part.startswith(".") for part in inside):
                continue
            if "code" in inside:  # frozen sources; they belong to the baseline's hashes
                continue
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            mark = (found.st_ino, found.st_mtime_ns)
            if self._known.get(path) != mark:
                self._known[path] = mark
                yield path


def half_written(home: Path) -> int:
    """Return how many unfinished files kills have left beside the finished ones."""
    return sum(
        1 for path in home.rglob(".*") if path.name.endswith(".tmp") or "incoming" in path.name
    )


def traces(folder: Path, seen: dict[Path, int]) -> list[str]:
    """Return the logs in which a trace was written since they were last read."""
    found = []
    for path in sorted(folder.glob("*.log")):
        with path.open("rb") as file:
            file.seek(seen.get(path, 0))
            fresh = file.read()
        whole = fresh.rfind(b"\n") + 1
        seen[path] = seen.get(path, 0) + whole
        if TRACE.encode() in fresh[:whole]:
            found.append(f"{path.name} has a trace: {_last_words(fresh[:whole])}")
    return found


def _last_words(text: bytes) -> str:
    after = text.decode("utf-8", "replace").partition(TRACE)[2].splitlines()[1:]
    ends = [n for n, line in enumerate(after) if line and not line.startswith((" ", "\t"))]
    if not ends:
        return "?"
    places = [line.strip() for line in after[: ends[0]] if line.startswith("  File")]
    return f"{after[ends[0]][:200]} ({places[-1] if places else 'nowhere'})"
