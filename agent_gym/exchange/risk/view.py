"""What a risk part is shown, and what it answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from agent_gym.core.errors import VenueError

WhenUnknown: TypeAlias = Literal["pass", "flat", "error"]


class TailRisk(NamedTuple):
    """One-day losses per unit of exposure, as fractions: VaR and ES of a long and of a short."""

    var_long: float
    var_short: float
    es_long: float
    es_short: float


@dataclass(slots=True)
class RiskView:
    """The account and the market at one moment; a number that is not finite is refused.

    Attributes:
        ts: Simulated time in UTC nanoseconds.
        equity: Cash and positions at the mark.
        peak_equity: Highest mark-to-market equity of the episode so far.
        mark: Price at which the position is valued.
        position_fraction: Position value as a signed fraction of equity.
        sigma: Volatility of one bar.
        expected_return: The agent's forecast for one bar, if it gives one.
        expected_return_se: Standard error of that forecast; given if and only if the forecast is.
        tail: One-day tail losses, None while too little history is known.
    """

    ts: int
    equity: float
    peak_equity: float
    mark: float
    position_fraction: float
    sigma: float
    expected_return: float | None = None
    expected_return_se: float | None = None
    tail: TailRisk | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        if (self.expected_return is None) != (self.expected_return_se is None):
            raise VenueError(
                "a forecast and its standard error come together",
                where=f"risk view at {self.ts}",
                found=f"{self.expected_return} and {self.expected_return_se}",
                remedy="Give both or neither",
            )
        if not (self.mark > 0.0 and self.sigma >= 0.0 and self.peak_equity > 0.0):
            raise VenueError(
                "mark and peak equity are above 0, sigma is not negative",
                where=f"risk view at {self.ts}",
                found=f"mark {self.mark}, peak {self.peak_equity}, sigma {self.sigma}",
            )
        if self.equity > self.peak_equity:
            raise VenueError(
                "equity is above its own peak",
                where=f"risk view at {self.ts}",
                found=self.equity,
                expected=f"at most {self.peak_equity}",
            )

    def _check_numbers(self) -> None:
        plain = (self.equity, self.peak_equity, self.mark, self.position_fraction, self.sigma)
        mean, error = self.expected_return or 0.0, self.expected_return_se or 0.0
        total = sum(plain) + mean + error + (sum(self.tail) if self.tail is not None else 0.0)
        # One infinite or undefined number makes the sum so; a finite sum clears all of them.
        if not isfinite(total):
            raise VenueError(
                "a risk input is not a finite number",
                where=f"risk view at {self.ts}",
                found={name: value for name, value in asdict(self).items() if name != "ts"},
            )
        if error < 0.0 or (self.tail is not None and min(self.tail) < 0.0):
            raise VenueError(
                "a standard error and a tail loss are not negative",
                where=f"risk view at {self.ts}",
                found=f"error {error}, tail {self.tail}",
            )


@dataclass(slots=True)
class Cap:
    """What one risk part did to a target: the bound that it set, and why.

    An infinite bound means that the part asked for nothing.
    """

    part: str
    before: float
    after: float
    bound: float
    reason: str

    @property
    def binding(self) -> bool:
        """Return whether this part changed the target."""
        return self.after != self.before

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a log; no bound is None."""
        bound = self.bound if isfinite(self.bound) else None
        return {**asdict(self), "bound": bound, "binding": self.binding}


class RiskModel(Protocol):
    """One part of a risk chain: it may bring a target nearer to 0 and nothing else."""

    @property
    def name(self) -> str: ...
    def cap(self, target: float, view: RiskView) -> Cap: ...


@runtime_checkable
class StatefulRisk(Protocol):
    """A risk part with memory: reset() begins an episode, state() and restore() carry it over."""

    def reset(self) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class Rearmable(Protocol):
    """A risk part that stays shut until someone says otherwise."""

    def re_arm(self, view: RiskView) -> None: ...


def limited(part: str, target: float, bound: float, reason: str) -> Cap:
    """Return the target with its size held to ``bound``, which may be infinite."""
    if not isfinite(target) or not bound >= 0.0:
        raise VenueError(
            "a target is a finite number and a bound is not negative",
            where=f"risk part {part}",
            found=f"target {target}, bound {bound}",
        )
    if abs(target) <= bound:
        return Cap(part, target, target, bound, reason)
    return Cap(part, target, bound if target > 0.0 else 0.0 - bound, bound, reason)


def unknown(part: str, target: float, rule: WhenUnknown, reason: str) -> Cap:
    """Return what a part does that lacks the numbers it needs."""
    if rule == "error":
        raise VenueError(reason, where=f"risk part {part}", remedy="Give it, or set pass or flat")
    return limited(part, target, 0.0 if rule == "flat" else float("inf"), reason)
