"""JSON lines over the pipes of a process: in time, not too long, one for one."""

from __future__ import annotations

import os
import selectors
import subprocess
from typing import IO

from agent_gym.agents.doors.words import DoorError
from agent_gym.core.clock import SystemClock

CHUNK = 65_536
LONGEST_NOTE = 500


class Line:
    """Asks a process; what it says on standard error is kept for the words of a failure.

    Args:
        process: With three pipes.
        max_bytes: The longest answer.
    """

    def __init__(self, process: subprocess.Popen[bytes], max_bytes: int) -> None:
        self._in, self._out = _pipe(process.stdin), _pipe(process.stdout)
        self._notes_from = _pipe(process.stderr)
        self._max_bytes, self._wall, self._notes = max_bytes, SystemClock(), b""
        for handle in (self._in, self._out, self._notes_from):
            os.set_blocking(handle, False)

    def exchange(self, text: bytes, limit_s: float) -> bytes:
        """Send one line and return the one that comes back."""
        until_s = self._wall.monotonic_s() + limit_s
        got, text = bytearray(), text + b"\n"
        with selectors.DefaultSelector() as waiter:
            waiter.register(self._out, selectors.EVENT_READ)
            waiter.register(self._notes_from, selectors.EVENT_READ)
            waiter.register(self._in, selectors.EVENT_WRITE)
            while True:
                left_s = until_s - self._wall.monotonic_s()
                ready = waiter.select(left_s) if left_s > 0.0 else []
                if not ready:
                    raise DoorError(
                        "the agent did not answer in time",
                        found=self.notes() or None,
                        expected=f"at most {limit_s:g} s",
                    )
                for key, _ in ready:
                    if key.fd == self._in:
                        text = text[self._written(text) :]
                        if not text:
                            waiter.unregister(self._in)
                    elif key.fd == self._notes_from:
                        if not self._note():
                            waiter.unregister(self._notes_from)
                    elif self._whole(got, sent=not text):
                        return bytes(got[:-1])

    def notes(self) -> str:
        """Return the end of what it said on standard error."""
        while self._note():
            pass
        return self._notes.decode("utf-8", "replace").strip()

    def _whole(self, got: bytearray, *, sent: bool) -> bool:
        chunk = os.read(self._out, CHUNK)
        if not chunk:
            raise DoorError("the agent's process ended", found=self.notes() or None)
        got += chunk
        if not sent:
            raise DoorError("the agent speaks before it has been asked", found=repr(chunk[:80]))
        if len(got) > self._max_bytes:
            raise DoorError("an answer is too long", expected=f"at most {self._max_bytes:,} bytes")
        end = got.find(b"\n")
        if 0 <= end < len(got) - 1:
            raise DoorError(
                "the agent says more than it was asked", found=repr(got[end + 1 :][:80])
            )
        return end >= 0

    def _note(self) -> bool:
        """Read a piece of standard error; False if there is none now, or nobody writes there."""
        try:
            chunk = os.read(self._notes_from, CHUNK)
        except BlockingIOError:
            return False
        self._notes = (self._notes + chunk)[-LONGEST_NOTE:]
        return bool(chunk)

    def _written(self, text: bytes) -> int:
        try:
            return os.write(self._in, text)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise DoorError("the agent no longer listens", found=self.notes() or None) from None


def _pipe(pipe: IO[bytes] | None) -> int:
    assert pipe is not None  # the cage asks for all three
    return pipe.fileno()
