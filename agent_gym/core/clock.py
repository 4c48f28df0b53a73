"""The only place where wall time is read; simulated time is integer UTC nanoseconds."""

from __future__ import annotations

import time
from typing import Protocol

from agent_gym.core.types import Nanos

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS


class Clock(Protocol):
    """Tells the time and waits."""

    def now_ns(self) -> Nanos: ...
    def monotonic_s(self) -> float: ...
    def sleep_s(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> Nanos:
        """Return UTC nanoseconds since 1970."""
        return Nanos(time.time_ns())

    def monotonic_s(self) -> float:
        """Return seconds for measuring durations; never goes back."""
        return time.perf_counter()

    def sleep_s(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told; waiting advances it at once.

    Example:
        >>> clock = ManualClock(5)
        >>> clock.sleep_s(1e-9)
        >>> clock.now_ns()
        6
    """

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns
        self._elapsed_ns = 0

    def now_ns(self) -> Nanos:
        """Return the simulated time."""
        return Nanos(self._now_ns)

    def monotonic_s(self) -> float:
        """Return simulated seconds since the start."""
        return self._elapsed_ns / SECOND_NS

    def sleep_s(self, seconds: float) -> None:
        """Advance by the given time without waiting."""
        self.advance_ns(round(seconds * SECOND_NS))

    def advance_ns(self, nanos: int) -> None:
        """Move forward; going back is an error."""
        if nanos < 0:
            raise ValueError(f"time cannot go back by {-nanos} ns")
        self._now_ns += nanos
        self._elapsed_ns += nanos
