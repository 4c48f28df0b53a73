"""Which faults a venue has: each rule names a kind, how often it happens, and to which requests.

Rates are conditional. A request travels along PATH (line, rate limit, network, book, answer), and
the rate of a rule is the share of those that come as far as it. So a new rule changes nothing for
those that stand before it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias, get_args

from pydantic import Field, model_validator

from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.core.registry import Config

RequestKind: TypeAlias = Literal["submit", "cancel", "positions", "data"]
FaultKind: TypeAlias = Literal[
    "disconnect",
    "rate_limit",
    "timeout",
    "reject",
    "partial",
    "stale_data",
    "delayed_ack",
    "duplicate_ack",
]
PATH: tuple[FaultKind, ...] = get_args(FaultKind)
EVERY_REQUEST: tuple[RequestKind, ...] = get_args(RequestKind)


class _Drawn(Config):
    """A fault that is drawn for each request, and certain for those that are listed."""

    rate: float = Field(default=0.0, ge=0.0, le=1.0, description="share of requests it befalls")
    at: tuple[str, ...] = Field(default=(), description="request ids that it befalls for certain")


class TimeoutRule(_Drawn):
    """No answer comes; a share of such requests reaches the venue all the same."""

    kind: Literal["timeout"] = "timeout"
    on: tuple[RequestKind, ...] = EVERY_REQUEST
    reached_share: float = Field(default=0.5, ge=0.0, le=1.0)


class RejectRule(_Drawn):
    """The venue refuses, for one of the reasons."""

    kind: Literal["reject"] = "reject"
    on: tuple[Literal["submit", "cancel"], ...] = ("submit",)
    reasons: tuple[str, ...] = Field(
        default=("insufficient funds", "price out of band"), min_length=1
    )


class PartialRule(_Drawn):
    """Only a part of the order is taken, between the two shares."""

    kind: Literal["partial"] = "partial"
    on: tuple[Literal["submit"], ...] = ("submit",)
    smallest: float = Field(default=0.1, gt=0.0, lt=1.0)
    largest: float = Field(default=0.9, gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.smallest > self.largest:
            raise ValueError(f"smallest {self.smallest} is above largest {self.largest}")
        return self


class DisconnectRule(Config):
    """The line is down for some bars; drawn for each bar, whoever asks, or listed as windows."""

    kind: Literal["disconnect"] = "disconnect"
    on: tuple[RequestKind, ...] = EVERY_REQUEST
    rate: float = Field(
        default=0.0, ge=0.0, le=1.0, description="share of bars an outage begins in"
    )
    bars: int = Field(default=1, ge=1, description="bars an outage lasts")
    windows: tuple[tuple[int, int], ...] = Field(
        default=(), description="outages as start and end in UTC nanoseconds, end not included"
    )

    @model_validator(mode="after")
    def _forward(self) -> Self:
        for start, end in self.windows:
            if end <= start:
                raise ValueError(f"an outage ends after it begins, found {start} to {end}")
        return self


class RateLimitRule(_Drawn):
    """At most so many requests in a sliding window of simulated time; also drawn at a rate."""

    kind: Literal["rate_limit"] = "rate_limit"
    on: tuple[RequestKind, ...] = EVERY_REQUEST
    max_requests: int | None = Field(default=None, ge=1)
    window_ns: int = Field(default=SECOND_NS, ge=1)


class StaleDataRule(_Drawn):
    """The answer is so many bars old."""

    kind: Literal["stale_data"] = "stale_data"
    on: tuple[Literal["positions", "data"], ...] = ("positions", "data")
    bars: int = Field(default=2, ge=1)


class DelayedAckRule(_Drawn):
    """The answer comes late."""

    kind: Literal["delayed_ack"] = "delayed_ack"
    on: tuple[Literal["submit", "cancel"], ...] = ("submit", "cancel")
    delay_ns: int = Field(default=SECOND_NS, ge=1)


class DuplicateAckRule(_Drawn):
    """The answer comes twice, the second time after a delay."""

    kind: Literal["duplicate_ack"] = "duplicate_ack"
    on: tuple[Literal["submit", "cancel"], ...] = ("submit", "cancel")
    delay_ns: int = Field(default=0, ge=0)


FaultRule: TypeAlias = Annotated[
    TimeoutRule
    | RejectRule
    | PartialRule
    | DisconnectRule
    | RateLimitRule
    | StaleDataRule
    | DelayedAckRule
    | DuplicateAckRule,
    Field(discriminator="kind"),
]


class FaultPlan(Config):
    """The faults of one venue; no rules means none.

    Example:
        >>> FaultPlan.from_rates({"timeout": 0.1, "reject": 0.05}).rules[1].rate
        0.05
    """

    bar_ns: int = Field(default=MINUTE_NS, ge=1, description="length of the bars that rules count")
    rules: tuple[FaultRule, ...] = ()

    @classmethod
    def from_rates(cls, rates: dict[FaultKind, float], *, bar_ns: int = MINUTE_NS) -> Self:
        """Return a plan with one rule a kind and its usual details."""
        rules = [{"kind": kind, "rate": rate} for kind, rate in rates.items()]
        return cls.model_validate({"bar_ns": bar_ns, "rules": rules})
