"""A real service over a folder, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = "from agent_gym.apps.cli.main import main; main()"
STOPS_WITHIN_S = 60


@dataclass(frozen=True)
class Served:
    """Where a service listens, the token of its administrator, and its process."""

    url: str
    token: str
    pid: int


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Yield a service that listens on loopback; it is stopped in the end.

    Args:
        folder: One that was never served: only the first start tells a token.
    """
    words = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        [*words, "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"AGENT_GYM_DATABASE": ""},
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] not in ("}\n", ""):
            lines.append(process.stdout.readline())
        try:
            told = json.loads("".join(lines))
            yield Served(told["url"], told["token"], process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOPS_WITHIN_S)
