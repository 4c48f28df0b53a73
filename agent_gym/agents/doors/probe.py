"""The isolation that this machine really gives: a program in a cage tries to get out."""

from __future__ import annotations

import json
import socket
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError
from typing import get_args

from agent_gym.agents.doors.isolation import Isolation, Level, Limits, start_caged
from agent_gym.agents.doors.words import DoorError

PROBE = Path(__file__).with_name("probe_program.py")
START_S = 60.0
SECRET_NAME = "AGENT_GYM_PROBE_SECRET"
MOST_PROCESSES, MOST_MEMORY_MB, MOST_DISK_MB = 8, 512, 4
NEEDS: dict[Level, tuple[str, ...]] = {
    "limits": ("memory", "processes", "environment"),
    "no-network": ("loopback", "interfaces"),
    "sealed": ("writing", "reading", "signals", "tracing", "disk"),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """The level that held, and each attempt to get out: "held", or what succeeded."""

    level: Level | None
    attempts: dict[str, str]

    @property
    def escapes(self) -> dict[str, str]:
        """Return the attempts that succeeded."""
        return {name: what for name, what in self.attempts.items() if what != "held"}


def probe(*, namespaces: bool = True) -> Reached:
    """Run the prober in a cage and return what held.

    Args:
        namespaces: Whether the cage may leave the namespaces of this machine.
    """
    most = Limits(processes=MOST_PROCESSES, memory_mb=MOST_MEMORY_MB, disk_mb=MOST_DISK_MB)
    with (
        tempfile.TemporaryDirectory(prefix="agent-gym-probe-") as outside,
        closing(socket.create_server(("127.0.0.1", 0))) as server,
    ):
        secret = Path(outside) / "secret"
        secret.write_text("secret", encoding="utf-8")
        port = server.getsockname()[1]
        argv = ("python", str(PROBE), *probe_words(port, outside))
        held = Isolation(require="limits", limits=most)
        try:
            caged = start_caged(argv, held, START_S, namespaces=namespaces)
        except DoorError as error:
            return Reached(None, {"start": str(error)})
        try:
            text, _ = caged.process.communicate(timeout=60)
            attempts: dict[str, str] = json.loads(text)
        except (ValueError, OSError, SubprocessError) as error:
            return Reached(None, {"probe": f"{type(error).__name__}: {error}"})
        finally:
            caged.end()
    return Reached(reached_level(attempts), attempts)


def probe_words(port: int, outside: str) -> tuple[str, ...]:
    """Return what the prober is told: where to knock and write, and what it may not get."""
    most = (MOST_PROCESSES, MOST_MEMORY_MB, MOST_DISK_MB)
    return (str(port), outside, *map(str, most))


def reached_level(attempts: dict[str, str]) -> Level | None:
    """Return the highest level of which no attempt succeeded, nor any of those below it.

    Example:
        >>> held = dict.fromkeys(("memory", "processes", "environment", "loopback"), "held")
        >>> reached_level(held | {"interfaces": "eth0"})
        'limits'
    """
    reached: Level | None = None
    for level in get_args(Level):
        if any(attempts.get(name) != "held" for name in NEEDS[level]):
            break
        reached = level
    return reached
