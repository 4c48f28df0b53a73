"""Decides which request meets which fault, the same way whatever else is asked for.

A draw is a hash of the seed, the rule and the request id (for outages: of the bar), so neither the
order of requests nor a retry of another one changes it. Only a rate limit looks at the past.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults.plan import (
    PATH,
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    FaultKind,
    FaultPlan,
    FaultRule,
    PartialRule,
    RateLimitRule,
    RejectRule,
    RequestKind,
    StaleDataRule,
    TimeoutRule,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that befell one request: the truth, of which a client sees only a part.

    Attributes:
        kind: What went wrong.
        request: What was asked for.
        request_id: The request.
        ts: When it was made.
        reached: Whether the request had its effect at the venue.
        reason: Why the venue refused, if it did.
        fraction: The share of the order that was taken.
        wait_ns: Time to the end of an outage or rate limit, delay of an answer, age of data.
    """

    kind: FaultKind
    request: RequestKind
    request_id: str
    ts: int
    reached: bool
    reason: str | None = None
    fraction: float = 1.0
    wait_ns: int = 0


class FaultInjector:
    """Applies a plan; ``log`` and ``counts`` hold what was injected.

    Example:
        >>> plan = FaultPlan.from_rates({"reject": 1.0})
        >>> fault = FaultInjector(plan, Seeds(7)).on_request("submit", "order-1", ts=0)
        >>> fault.kind, fault.reached
        ('reject', False)
    """

    def __init__(self, plan: FaultPlan, seeds: Seeds) -> None:
        self.plan = plan
        self.log: list[Fault] = []
        self.counts: dict[FaultKind, int] = dict.fromkeys(PATH, 0)
        self.requests: dict[RequestKind, int] = {}
        self._key = seeds.child("faults").as_uint64().to_bytes(8, "big")
        self._rules = _along_the_path(plan)
        self._recent: dict[str, deque[int]] = {salt: deque() for salt, _ in self._rules}
        self._last_ts: int | None = None

    def on_request(self, kind: RequestKind, request_id: str, ts: int) -> Fault | None:
        """Return the first fault that the request meets on its way, None if it meets none."""
        if self._last_ts is not None and ts < self._last_ts:
            raise VenueError(
                "time cannot go back",
                where=f"request {request_id}",
                found=ts,
                expected=self._last_ts,
            )
        self._last_ts = ts
        self.requests[kind] = self.requests.get(kind, 0) + 1
        for salt, rule in self._rules:
            if kind not in rule.on:
                continue
            details = self._details(salt, rule, request_id, ts)
            if details is not None:
                fault = Fault(rule.kind, kind, request_id, ts, **details)
                self.log.append(fault)
                self.counts[rule.kind] += 1
                return fault
        return None

    def report(self) -> dict[str, Any]:
        """Return counts and log as plain values."""
        return {
            "requests": dict(sorted(self.requests.items())),
            "faults": dict(self.counts),
            "log": [asdict(fault) for fault in self.log],
        }

    def _details(self, salt: str, rule: FaultRule, name: str, ts: int) -> dict[str, Any] | None:
        """Return the particulars of the fault if the rule strikes, None if it does not."""
        if isinstance(rule, DisconnectRule):
            end = self._outage_end(salt, rule, ts)
            return None if end is None else {"reached": False, "wait_ns": end - ts}
        struck = name in rule.at or self._draw(salt, name) < rule.rate
        if isinstance(rule, RateLimitRule):
            wait_ns = rule.window_ns if struck else self._over_limit(salt, rule, ts)
            return None if wait_ns is None else {"reached": False, "wait_ns": wait_ns}
        if not struck:
            return None
        detail = self._draw(salt, name, "detail")
        match rule:
            case TimeoutRule():
                return {"reached": detail < rule.reached_share}
            case RejectRule():
                return {"reached": False, "reason": rule.reasons[int(detail * len(rule.reasons))]}
            case PartialRule():
                share = rule.smallest + detail * (rule.largest - rule.smallest)
                return {"reached": True, "fraction": share}
            case StaleDataRule():
                return {"reached": True, "wait_ns": rule.bars * self.plan.bar_ns}
            case DelayedAckRule() | DuplicateAckRule():
                return {"reached": True, "wait_ns": rule.delay_ns}

    def _outage_end(self, salt: str, rule: DisconnectRule, ts: int) -> int | None:
        ends = [end for start, end in rule.windows if start <= ts < end]
        bar = ts // self.plan.bar_ns
        if rule.rate > 0.0:
            for begun in range(bar, bar - rule.bars, -1):
                if self._draw(salt, f"bar {begun}") < rule.rate:
                    ends.append((begun + rule.bars) * self.plan.bar_ns)
                    break
        return max(ends, default=None)

    def _over_limit(self, salt: str, rule: RateLimitRule, ts: int) -> int | None:
        if rule.max_requests is None:
            return None
        recent = self._recent[salt]
        while recent and recent[0] <= ts - rule.window_ns:
            recent.popleft()
        if len(recent) >= rule.max_requests:
            return recent[0] + rule.window_ns - ts
        recent.append(ts)
        return None

    def _draw(self, *words: str) -> float:
        """Return a number in [0, 1) that depends on the seed and the words alone."""
        digest = blake2b("\x1f".join(words).encode(), key=self._key, digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def _along_the_path(plan: FaultPlan) -> list[tuple[str, FaultRule]]:
    """Return the rules in the order in which a request meets them, each with its own salt."""
    ordered: list[tuple[str, FaultRule]] = []
    for kind in PATH:
        alike = [rule for rule in plan.rules if rule.kind == kind]
        ordered.extend((f"{kind} {i}", rule) for i, rule in enumerate(alike))
    return ordered
