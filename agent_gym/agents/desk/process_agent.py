"""An agent in a process of its own, spoken to in JSON lines over its pipes.

One question, one line back. A process that hangs, dies, floods or says nonsense is killed with all
that it began, and the next question starts a new one. This keeps a bad agent from harming the desk
by accident; it is no prison for a hostile one.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent_gym.agents.desk.answers import (
    MAX_PAYLOAD_BYTES,
    AgentTimedOut,
    AgentUnreachable,
    AnswerBroken,
    question,
    read_answer,
)
from agent_gym.agents.desk.schemas import AgentRequest
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError

INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")
CHUNK = 65_536


class ProcessAgent:
    """Talks to a program that reads questions from stdin and writes answers to stdout.

    A question is ``{"ask": "answer", "request": {...}}``, an answer ``{"status": "ok", "payload":
    {...}}``. With ``has_state`` it is also asked ``state`` (answer ``{"status": "unseen"}`` if it
    never got the order) and ``cancel``. Deadlines are the wall's: a process does not wait on a
    simulated clock.

    Args:
        argv: The program and its arguments.
        env: Its environment besides PATH and the language; it inherits nothing else.
        has_state: Whether it can say what became of an order, and take it back.
        max_line_bytes: The longest answer.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        has_state: bool = False,
        max_line_bytes: int = 2 * MAX_PAYLOAD_BYTES,
    ) -> None:
        if not argv:
            raise ConfigError("a process agent needs a program")
        self.verbs = ("answer", "state", "cancel") if has_state else ("answer",)
        self.starts = 0
        self._argv = tuple(argv)
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._env = kept | dict(env or {})
        self._max_bytes = max_line_bytes
        self._wall = SystemClock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def answer(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Ask; the process is killed if it does not answer in time."""
        answer = self._ask("answer", request)
        assert answer is not None
        return answer

    def state(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any] | None:
        """Ask what became of an order."""
        return self._ask("state", request)

    def cancel(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Ask it to take an order back."""
        answer = self._ask("cancel", request)
        assert answer is not None
        return answer

    def close(self) -> None:
        """Kill the process and all that it began."""
        if self._end is not None:
            self._end()
        self._process = self._end = None

    def _ask(self, verb: str, request: AgentRequest) -> Mapping[str, Any] | None:
        until_s = self._wall.monotonic_s() + request.deadline_ms / 1e3
        process = self._running()
        try:
            line = self._exchange(process, question(verb, request) + b"\n", until_s)
            return read_answer(line, verb)
        except (AgentTimedOut, AgentUnreachable, AnswerBroken):
            self.close()  # what it says from now on would answer an older question
            raise

    def _exchange(self, process: subprocess.Popen[bytes], text: bytes, until_s: float) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        got = bytearray()
        with selectors.DefaultSelector() as waiter:
            waiter.register(process.stdout, selectors.EVENT_READ)
            if waiter.select(0):
                raise self._unasked(process)
            waiter.register(process.stdin, selectors.EVENT_WRITE)
            while True:
                left_s = until_s - self._wall.monotonic_s()
                ready = waiter.select(left_s) if left_s > 0.0 else []
                if not ready:
                    raise AgentTimedOut("the process did not answer in time")
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        text = text[_written(process.stdin.fileno(), text) :]
                        if not text:
                            waiter.unregister(process.stdin)
                    elif self._is_whole(process, got):
                        return bytes(got[:-1])

    def _is_whole(self, process: subprocess.Popen[bytes], got: bytearray) -> bool:
        assert process.stdout is not None
        chunk = os.read(process.stdout.fileno(), CHUNK)
        if not chunk:
            raise AgentUnreachable("the process ended", found=self._end_of(process))
        got += chunk
        end = got.find(b"\n")
        if len(got) > self._max_bytes:
            raise AnswerBroken("the answer is too long", expected=f"{self._max_bytes} bytes")
        if end >= 0 and end + 1 < len(got):
            raise AnswerBroken("more than one line for one question")
        return end >= 0

    def _unasked(self, process: subprocess.Popen[bytes]) -> AnswerBroken | AgentUnreachable:
        assert process.stdout is not None
        if os.read(process.stdout.fileno(), 1):
            return AnswerBroken("the process speaks without being asked")
        return AgentUnreachable("the process ended", found=self._end_of(process))

    def _end_of(self, process: subprocess.Popen[bytes]) -> str:
        for _ in range(20):
            if (end := _ended(process)) is not None:
                return end
            self._wall.sleep_s(0.01)
        return "it closed its output"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and _ended(self._process) is None:
            return self._process
        self.close()
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._env,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise AgentUnreachable("the program cannot be started", found=error.strerror) from error
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        self._end = weakref.finalize(self, _kill, process)
        self.starts += 1
        return process


def _written(handle: int, text: bytes) -> int:
    try:
        return os.write(handle, text)
    except BlockingIOError:
        return 0
    except BrokenPipeError as error:
        raise AgentUnreachable("the process no longer listens") from error


def _ended(process: subprocess.Popen[bytes]) -> str | None:
    """Return how a process ended, None if it runs; it is left unreaped, so its id stays its own."""
    if process.returncode is not None:
        return f"exit status {process.returncode}"
    seen = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if seen is None:
        return None
    return f"{'exit status' if seen.si_code == os.CLD_EXITED else 'signal'} {seen.si_status}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group, and fetch its status so that no zombie stays."""
    with suppress(ProcessLookupError):  # it and all its children may have gone already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
