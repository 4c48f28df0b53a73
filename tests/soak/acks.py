"""What was acknowledged, a line each: written by those who were told, read by the observer."""

import json
import os
from pathlib import Path
from typing import Any

from tests.soak.look import Acknowledged


class Acks:
    """A file to which lines are added, whole ones only."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(self, kind: str, **fields: Any) -> None:
        """Add a line; it is there when this returns, even if we are killed then."""
        os.write(self._handle, (json.dumps({"kind": kind, **fields}) + "\n").encode())


class Heard:
    """Reads on in all files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._read = folder, dict[Path, int]()
        self.acknowledged = Acknowledged()

    def catch_up(self) -> Acknowledged:
        """Take in the lines that are new."""
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                fresh = file.read()
            whole = fresh.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            for line in fresh[:whole].splitlines():
                self._take(json.loads(line))
        return self.acknowledged

    def _take(self, said: dict[str, Any]) -> None:
        found, kind = self.acknowledged, said["kind"]
        if kind == "trajectory":
            found.trajectories[said["id"]] = said["steps"]
        elif kind == "tick":
            found.ticks.add((said["agent"], said["tick"]))
        elif kind in ("asked", "granted"):
            sums = found.asked if kind == "asked" else found.granted
            sums[said["agent"]] = sums.get(said["agent"], 0) + said["points"]
        elif kind == "answer":
            name = str(said["status"])
            found.answers[name] = found.answers.get(name, 0) + 1
            if said.get("wrong"):
                found.wrong.append(said["wrong"])
