"""The drawdown breaker: less exposure the deeper the account is down, none beyond the limit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import VenueError
from agent_gym.core.registry import Config
from agent_gym.exchange.risk.view import Cap, RiskView, limited


class DrawdownConfig(Config):
    """Parameters of the drawdown breaker."""

    soft_drawdown: float = Field(default=0.05, ge=0.0, lt=1.0, description="scaling begins here")
    max_drawdown: float = Field(default=0.15, gt=0.0, lt=1.0, description="flat from here on")
    cool_off_days: float = Field(default=5.0, ge=0.0, description="days before it can be re-armed")
    scale_step: float = Field(
        default=0.1, ge=0.0, lt=1.0, description="the scale moves by at least this much, or stays"
    )

    @model_validator(mode="after")
    def _soft_comes_first(self) -> Self:
        check_drawdowns(self.soft_drawdown, self.max_drawdown)
        return self


def check_drawdowns(soft_drawdown: float, max_drawdown: float) -> None:
    """Raise ValueError unless scaling begins at or before the limit."""
    if soft_drawdown > max_drawdown:
        raise ValueError(f"soft_drawdown {soft_drawdown} lies beyond max_drawdown {max_drawdown}")


@dataclass(slots=True)
class BreakerState:
    """All that the breaker remembers.

    Attributes:
        tripped_ts: When it tripped, None while it is armed.
        rearmed_peak: Highest equity seen since the last re-arm, None before the first one.
        trips: How often it has tripped in this episode.
        scale: The share of a target that is let through at the moment.
    """

    tripped_ts: int | None = None
    rearmed_peak: float | None = None
    trips: int = 0
    scale: float = 1.0


class DrawdownBreaker:
    """Scales a target down between the soft and the hard drawdown, and latches flat at the latter.

    The scale falls in a straight line from 1 to 0, but it is followed in steps of at least
    ``scale_step``, down and up alike: each change is a trade, and a scale that moved with every bar
    would trade on every bar. So it stays within one step of the line, and changes at most 1 / step
    times on the way from the soft to the hard drawdown. Back at the soft drawdown it is 1 again.

    Once tripped it stays flat until the cool-off is over and ``re_arm`` is called. The drawdown is
    then counted anew from the equity at that moment, or it would trip again at once.
    """

    name = "drawdown"

    def __init__(self, config: DrawdownConfig) -> None:
        self._config = config
        self._state = BreakerState()

    @property
    def tripped(self) -> bool:
        """Return whether the breaker holds the account flat."""
        return self._state.tripped_ts is not None

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return the target scaled by how much of the allowed drawdown is left."""
        state, config = self._state, self._config
        peak = view.peak_equity
        if state.rearmed_peak is not None:
            peak = state.rearmed_peak = max(state.rearmed_peak, view.equity)
        drawdown = 1.0 - view.equity / peak
        if state.tripped_ts is None and drawdown >= config.max_drawdown:
            state.tripped_ts = view.ts
            state.trips += 1
        if state.tripped_ts is not None:
            return limited(self.name, target, 0.0, "latched until it is re-armed")
        state.scale = self._step(state.scale, self._line(drawdown))
        bound = abs(target) * state.scale
        return limited(self.name, target, bound, "exposure shrinks with the drawdown")

    def re_arm(self, view: RiskView) -> None:
        """Open the breaker again; an error while it is armed or the cool-off is not over."""
        tripped_ts = self._state.tripped_ts
        if tripped_ts is None:
            raise VenueError("the drawdown breaker has not tripped", where=f"time {view.ts}")
        ready_ts = tripped_ts + round(self._config.cool_off_days * DAY_NS)
        if view.ts < ready_ts:
            raise VenueError(
                "the drawdown breaker is still cooling off",
                where=f"time {view.ts}",
                expected=f"time {ready_ts} or later",
                remedy="Re-arm it after the cool-off",
            )
        if view.equity <= 0.0:
            raise VenueError("a ruined account cannot be re-armed", found=f"equity {view.equity}")
        self._state.tripped_ts = None
        self._state.rearmed_peak = view.equity
        self._state.scale = 1.0

    def reset(self) -> None:
        """Begin an episode: armed, nothing remembered."""
        self._state = BreakerState()

    def state(self) -> dict[str, Any]:
        """Return what the breaker remembers as plain values."""
        return asdict(self._state)

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what state() returned."""
        self._state = BreakerState(**state)

    def _step(self, held: float, line: float) -> float:
        """Return the line once it is a step away, or at its upper end; the scale held until then.

        The upper end is followed at once: below the soft drawdown nothing is to be held back.
        """
        if line == 1.0 or abs(line - held) >= self._config.scale_step:
            return line
        return held

    def _line(self, drawdown: float) -> float:
        soft, hard = self._config.soft_drawdown, self._config.max_drawdown
        if drawdown <= soft or soft == hard:
            return 1.0
        return max(0.0, 1.0 - (drawdown - soft) / (hard - soft))
