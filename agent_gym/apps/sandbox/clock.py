"""The clock of a sandbox: it runs with the wall clock, faster, or only when it is told to."""

from __future__ import annotations

from agent_gym.core.clock import SECOND_NS, Clock
from agent_gym.core.types import Nanos


class SimulatedClock:
    """Simulated time that never goes back.

    Args:
        start_ns: Where it begins.
        speed: Simulated seconds a second; 1 is real time, None stands until ``set`` moves it.
        clock: The machine's clock.

    Example:
        >>> from agent_gym.core.clock import ManualClock
        >>> wall = ManualClock()
        >>> clock = SimulatedClock(1_000, 60.0, wall)
        >>> wall.sleep_s(1.0)
        >>> clock.now_ns()
        60000001000
    """

    def __init__(self, start_ns: int, speed: float | None, clock: Clock) -> None:
        self.speed, self._clock = speed, clock
        self._at, self._since_s = start_ns, clock.monotonic_s()

    def now_ns(self) -> Nanos:
        """Return the simulated time."""
        if self.speed is None:
            return Nanos(self._at)
        passed_s = self._clock.monotonic_s() - self._since_s
        return Nanos(self._at + round(passed_s * self.speed * SECOND_NS))

    def wait_s(self, until_ns: int) -> float | None:
        """Return the real seconds until a simulated time; None if it never comes by itself."""
        if self.speed is None:
            return None
        return max(0.0, (until_ns - self.now_ns()) / (self.speed * SECOND_NS))

    def set(self, at_ns: int, speed: float | None) -> None:
        """Put the clock forward, and say how fast it goes from there."""
        if at_ns < self.now_ns():
            raise ValueError(f"time cannot go back by {self.now_ns() - at_ns} ns")
        self._at, self._since_s, self.speed = at_ns, self._clock.monotonic_s(), speed
