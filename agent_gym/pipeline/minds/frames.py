"""Messages between the service and an agent's process: JSON with its length before it.

Nothing is ever unpickled, nothing longer than agreed is read, and nobody waits beyond a deadline.
"""

from __future__ import annotations

import json
import os
import select
from struct import Struct
from typing import Any

from agent_gym.core.clock import Clock

LARGEST = 1 << 20
_LENGTH = Struct(">I")
_PIECE = 1 << 16


class Overdue(Exception):
    """The other side took too long."""


class TooLong(Exception):
    """The other side wants to say more than was agreed."""


def packed(message: dict[str, Any]) -> bytes:
    """Return a message with its length before it.

    Example:
        >>> len(packed({"n": 1})) - len('{"n":1}')
        4
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def send(handle: int, frame: bytes, deadline_s: float, clock: Clock) -> None:
    """Write a whole frame to a pipe that does not block."""
    left = memoryview(frame)
    while left:
        _wait((), (handle,), deadline_s, clock)
        try:
            left = left[os.write(handle, left[:_PIECE]) :]
        except BlockingIOError:
            continue


def receive(handle: int, deadline_s: float, clock: Clock) -> dict[str, Any]:
    """Read a whole message from a pipe that does not block.

    Raises:
        EOFError: The other side is gone.
        TooLong: It says more than was agreed.
        Overdue: It took too long.
        ValueError: It does not speak JSON.
    """
    length = _LENGTH.unpack(_exactly(handle, _LENGTH.size, deadline_s, clock))[0]
    if length > LARGEST:
        raise TooLong(f"{length:,} bytes, at most {LARGEST:,} are read")
    try:
        found = json.loads(_exactly(handle, length, deadline_s, clock))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not a mapping")
    return found


def receive_patiently(handle: int) -> dict[str, Any]:
    """Read a whole message from a pipe that blocks; for the side that waits for questions."""
    length = _LENGTH.unpack(_patiently(handle, _LENGTH.size))[0]
    found: dict[str, Any] = json.loads(_patiently(handle, length))
    return found


def _exactly(handle: int, count: int, deadline_s: float, clock: Clock) -> bytes:
    found = bytearray()
    while len(found) < count:
        _wait((handle,), (), deadline_s, clock)
        try:
            part = os.read(handle, min(_PIECE, count - len(found)))
        except BlockingIOError:
            continue
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _patiently(handle: int, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = os.read(handle, count - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _wait(
    readable: tuple[int, ...], writable: tuple[int, ...], deadline_s: float, clock: Clock
) -> None:
    left = deadline_s - clock.monotonic_s()
    if left <= 0 or not any(select.select(readable, writable, (), left)):
        raise Overdue
