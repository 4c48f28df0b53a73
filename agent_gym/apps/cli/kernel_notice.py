"""What a first run says while it compiles its kernels, which takes a minute and is done once."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import typer
from typing_extensions import override

from agent_gym.core.clock import Clock, SystemClock

KERNELS = "agent_gym.core.kernels"  # by its name: whoever imports it loads the compiler
QUIET_S = 10.0
FIRST = (
    "Compiling the kernels for this machine. It is done once after an installation or an update "
    "and takes about a minute."
)


class KernelNotice(logging.Handler):
    """Says once that kernels are being compiled, and every ten seconds that it goes on.

    Args:
        say: Takes a line.
        clock: Knows how long it has been quiet.
    """

    def __init__(self, say: Callable[[str], None], clock: Clock) -> None:
        super().__init__(logging.INFO)
        self._say, self._clock = say, clock
        self._count, self._said_s = 0, 0.0

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._count += 1
        now = self._clock.monotonic_s()
        if self._count > 1 and now - self._said_s < QUIET_S:
            return
        self._said_s = now
        self._say(FIRST if self._count == 1 else f"Still compiling, kernel {self._count} ...")


def listen() -> None:
    """Let a person know of kernels that are compiled; whoever wants JSON gets nothing else."""
    log = logging.getLogger(KERNELS)
    if "--json" in sys.argv or any(isinstance(each, KernelNotice) for each in log.handlers):
        return
    log.setLevel(logging.INFO)
    log.addHandler(KernelNotice(_on_stderr, SystemClock()))


def _on_stderr(line: str) -> None:
    typer.echo(line, err=True)
