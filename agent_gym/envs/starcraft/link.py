"""The worker's process: started, asked line by line, and ended with all that it began.

It leads a process group of its own, in which the game runs too. Whatever goes wrong, the group is
killed whole, so no client of the game is left behind; the worker does the same on its side when
this process goes away.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.envs.starcraft.messages import (
    LONGEST_LINE,
    Closed,
    GameLost,
    question,
    read_answer,
)

WORKER = Path(__file__).with_name("worker.py")
INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
)
"""No PYTHONPATH: the libraries of this interpreter are not those of the other."""
CHUNK = 65_536
CLOSE_S = 10.0
LONGEST_TAIL = 500
T = TypeVar("T")


class Link:
    """One worker.

    Args:
        python: The interpreter that has SMAC.
        game: Folder of the game; it becomes SC2PATH.
    """

    def __init__(self, python: Path, game: Path) -> None:
        self._clock = SystemClock()
        self._asked = 0
        place = TemporaryDirectory(prefix="agent-gym-starcraft-")
        self._errors = Path(place.name) / "stderr.txt"
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # the game leaves files in TMPDIR when it is killed, so it gets one that goes with it
        told = {"SC2PATH": str(game), "TMPDIR": place.name, "PYTHONUNBUFFERED": "1"}
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [str(python), str(WORKER)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=kept | told,
                    cwd=place.name,
                    start_new_session=True,
                    bufsize=0,
                )
        except OSError as error:
            place.cleanup()
            raise ConfigError(
                "the interpreter of the worker cannot be started",
                where=str(python),
                found=error.strerror,
                remedy="`agent-gym doctor` says how to make one",
            ) from error
        self._end = weakref.finalize(self, _end, self._process, place, os.getpid())

    @property
    def pid(self) -> int:
        """Return the number of the process, which is that of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the worker can be asked."""
        return self._end.alive

    def ask(self, ask: str, kind: type[T], timeout_s: float, **fields: Any) -> T:
        """Ask one thing and return the answer.

        Raises:
            ConfigError: The worker says what is missing over there.
            GameLost: There was no good answer in time; in both cases the worker is gone.
        """
        self._asked += 1
        until_s = self._clock.monotonic_s() + timeout_s
        try:
            self._send(question(self._asked, ask, fields), ask)
            return read_answer(self._line(ask, until_s, timeout_s), self._asked, ask, kind)
        except (ConfigError, GameLost):
            self._end()
            raise

    def close(self) -> None:
        """Let the worker close the game, then end whatever is left of both."""
        if self._end.alive:
            with suppress(GameLost, ConfigError):
                self.ask("close", Closed, CLOSE_S)
            self._end()

    def _send(self, line: bytes, ask: str) -> None:
        assert self._process.stdin is not None
        if not self._end.alive:
            raise GameLost("the worker has ended", where=ask, remedy="Call reset()")
        try:
            self._process.stdin.write(line)
        except BrokenPipeError:
            raise self._lost("the worker no longer listens", ask) from None

    def _line(self, ask: str, until_s: float, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        got = bytearray()
        with selectors.DefaultSelector() as waiter:
            waiter.register(self._process.stdout, selectors.EVENT_READ)
            while not got.endswith(b"\n"):
                left_s = until_s - self._clock.monotonic_s()
                if left_s <= 0.0 or not waiter.select(left_s):
                    raise self._lost(
                        "the worker did not answer in time", ask, f"an answer in {timeout_s:g} s"
                    )
                chunk = os.read(self._process.stdout.fileno(), CHUNK)
                if not chunk:
                    raise self._lost("the worker died", ask)
                got += chunk
                if len(got) > LONGEST_LINE:
                    raise self._lost("the worker says too much", ask, f"{LONGEST_LINE} bytes")
        return bytes(got[:-1])

    def _lost(self, what: str, ask: str, expected: str | None = None) -> GameLost:
        said = " ".join(self._errors.read_text("utf-8", "replace").split())[-LONGEST_TAIL:]
        found = "; its last words: ".join(part for part in (self._ending(), said) if part)
        return GameLost(what, where=ask, found=found or None, expected=expected)

    def _ending(self) -> str:
        """Return how the process ended; it is left unreaped, so that its id stays its own."""
        for _ in range(20):
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                word = "exit status" if seen.si_code == os.CLD_EXITED else "signal"
                return f"{word} {seen.si_status}"
            self._clock.sleep_s(0.01)
        return "it still ran"


def _end(process: subprocess.Popen[bytes], place: TemporaryDirectory[str], owner: int) -> None:
    """Kill the group, fetch the status so that no zombie stays, and remove what was left."""
    if os.getpid() != owner:
        return  # a forked child must not end what its parent plays with
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    place.cleanup()
