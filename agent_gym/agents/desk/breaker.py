"""The circuit breaker: after too many failures nobody is asked for a while, then one is tried.

A breaker counts failures in a sliding window. It opens at the failure that makes the count full;
after its rest it is half open: one request goes through, and its result closes or opens it again.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias

from pydantic import Field

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.registry import Config

BreakerState: TypeAlias = Literal["closed", "open", "half_open"]


class BreakerPolicy(Config):
    """When a breaker opens and how long it rests."""

    failures: int = Field(default=5, ge=1, description="failures within the window that open it")
    window_s: float = Field(default=60.0, gt=0.0)
    open_s: float = Field(default=30.0, gt=0.0)


class CircuitBreaker:
    """One breaker, for one agent or one route.

    A failure exactly ``window_s`` old no longer counts. A request let through half open that never
    reports back does not lock the breaker: after another ``open_s`` the next one is let through.

    Example:
        >>> breaker = CircuitBreaker(failures=2, window_s=60, open_s=30)
        >>> breaker.failure(0); breaker.failure(1)
        >>> breaker.state, breaker.allows(2)
        ('open', False)
        >>> breaker.allows(30 * SECOND_NS + 1), breaker.allows(30 * SECOND_NS + 2)
        (True, False)
    """

    def __init__(self, failures: int = 5, window_s: float = 60.0, open_s: float = 30.0) -> None:
        self.opened_ns: list[int] = []
        self._limit = failures
        self._window_ns = round(window_s * SECOND_NS)
        self._open_ns = round(open_s * SECOND_NS)
        self._recent: deque[int] = deque()
        self._state: BreakerState = "closed"
        self._since_ns = 0

    @classmethod
    def by(cls, policy: BreakerPolicy) -> CircuitBreaker:
        """Return a breaker as a policy has it."""
        return cls(policy.failures, policy.window_s, policy.open_s)

    @property
    def state(self) -> BreakerState:
        """Return where it stands; an open one turns half open only when asked to let through."""
        return self._state

    def allows(self, now_ns: int) -> bool:
        """Return whether a request may go now; half open, the first to ask is the one that may."""
        if self._state == "closed":
            return True
        if now_ns - self._since_ns < self._open_ns:
            return False
        self._state = "half_open"
        self._since_ns = now_ns
        return True

    def ready_ns(self) -> int | None:
        """Return when it will next let one through, None if it is closed."""
        return None if self._state == "closed" else self._since_ns + self._open_ns

    def success(self, now_ns: int) -> None:
        """Note that a request went well; one that was let through half open closes it."""
        if self._state == "half_open":
            self._state = "closed"
            self._recent.clear()

    def failure(self, now_ns: int) -> None:
        """Note that a request failed."""
        if self._state == "half_open":
            self._open(now_ns)
            return
        recent = self._recent
        while recent and recent[0] <= now_ns - self._window_ns:
            recent.popleft()
        recent.append(now_ns)
        if self._state == "closed" and len(recent) >= self._limit:
            self._open(now_ns)

    def _open(self, now_ns: int) -> None:
        self._state = "open"
        self._since_ns = now_ns
        self._recent.clear()
        self.opened_ns.append(now_ns)
