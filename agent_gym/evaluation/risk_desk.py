"""Risk parts in a stepwise run: what they are shown, and what they leave of a target."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent_gym.core.errors import AgentError
from agent_gym.core.types import Decision, Observation
from agent_gym.envs.world import MarketWorld
from agent_gym.exchange.kernel.layout import BAR_SIGMA
from agent_gym.exchange.risk import (
    RiskChain,
    RiskView,
    TailConfig,
    TailSeries,
    bars_per_day,
    tail_risk,
)

MIN_RECORD = 30  # decisions before a track record says anything
LOOSER = 1.1  # a cap that loosens is followed once it allows a tenth more, or every bar would trade
Forecast: TypeAlias = tuple[float, float]
ForecastSource: TypeAlias = Literal["agent", "track record"]


@dataclass(slots=True)
class TrackRecord:
    """What the agent's own directions earned so far, on paper, for one unit a bar.

    It stands in for the forecast of an agent that makes none. Every decision counts, also one that
    a risk part held back, so that an agent can earn its way in.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, earned: float) -> None:
        """Take in the return of one bar in the direction that was asked for."""
        self.count += 1
        gap = earned - self.mean
        self.mean += gap / self.count
        self.squares += gap * (earned - self.mean)

    def forecast(self, direction: float) -> Forecast | None:
        """Return the mean in a direction and its standard error; None while the record is short."""
        if self.count < MIN_RECORD:
            return None
        error = math.sqrt(self.squares / (self.count - 1) / self.count)
        return math.copysign(self.mean, self.mean * direction), error


@dataclass(slots=True)
class RiskDesk:
    """The risk chain and what it needs to know of the account and the market."""

    chain: RiskChain
    world: MarketWorld
    record: TrackRecord = field(default_factory=TrackRecord)
    sources: dict[ForecastSource, int] = field(default_factory=dict)
    _t: int = 0
    _peak: float = 0.0
    _asked: float = 0.0
    _held: float = 0.0
    _close: list[float] = field(init=False)
    _sigma: list[float] = field(init=False)
    _tails: TailSeries | None = field(init=False)

    def __post_init__(self) -> None:
        tape = self.world.stage.tape
        self._close = tape.bars.close.tolist()
        # The volatility that is known before bar t + 1 opens is the one known at the close of t.
        self._sigma = tape.rows[1:, BAR_SIGMA].tolist()
        self._tails = None
        if {"var", "es"} & set(self.chain.names):
            day = bars_per_day(tape.bars.period_ns)
            self._tails = tail_risk(tape.bars.close, day, TailConfig())

    def hold_back(self, target: float, made: Decision, obs: Observation, equity: float) -> float:
        """Return the target that all risk parts allow."""
        t = self._t
        if t > 0 and self._asked != 0.0:
            change = self._close[t] / self._close[t - 1] - 1.0
            self.record.add(math.copysign(change, change * self._asked))
        self._peak = max(self._peak, equity)
        forecast = self._forecast(target, made)
        view = RiskView(
            ts=int(obs.ts),
            equity=equity,
            peak_equity=self._peak,
            mark=self._close[t],
            position_fraction=self.world.lanes.state["pos"].item(0) * self._close[t] / equity,
            sigma=self._sigma[t],
            expected_return=None if forecast is None else forecast[0],
            expected_return_se=None if forecast is None else forecast[1],
            tail=None if self._tails is None else self._tails.at(t),
        )
        allowed = self.chain.apply(target, view)[0]
        same_wish = target == self._asked and allowed * self._held > 0.0
        if not (same_wish and abs(self._held) <= abs(allowed) < LOOSER * abs(self._held)):
            self._held = allowed
        self._t, self._asked = t + 1, target
        return self._held

    def _forecast(self, target: float, made: Decision) -> Forecast | None:
        if "kelly" not in self.chain.names or target == 0.0:
            return None
        signals = made.signals or {}
        source: ForecastSource = "agent" if "expected_return" in signals else "track record"
        self.sources[source] = self.sources.get(source, 0) + 1
        if source == "track record":
            return self.record.forecast(target)
        if "expected_return_se" not in signals:
            raise AgentError(
                "a forecast and its standard error come together",
                where=f"decision {self._t}",
                expected="signals expected_return and expected_return_se",
            )
        return float(signals["expected_return"]), float(signals["expected_return_se"])

    def summary(self, decisions: int) -> dict[str, Any]:
        """Return how often each part bound, where forecasts came from, when the breaker tripped."""
        breaker = self.chain.state()["parts"].get("drawdown", {})
        return {
            "decisions": decisions,
            "bound": dict(self.chain.bound_counts),
            "forecasts": dict(self.sources),
            "breaker_tripped_ns": breaker.get("tripped_ts"),
        }
