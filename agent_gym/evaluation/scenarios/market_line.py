"""The line between a market and an agent: what it is shown, what it asked for, what is sent on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    SeriesAgent,
    Step,
)
from agent_gym.evaluation.scenarios.shocks import Shock
from agent_gym.exchange.faults import DisconnectRule, FaultInjector, FaultPlan
from agent_gym.markets.bars import PRICE_COLUMNS, Bars

Feed: TypeAlias = Literal["missing", "stale", "stale_as_fresh"]
Flags: TypeAlias = NDArray[np.bool_]


class Wiring(Struct, frozen=True):
    """How the line is laid; all but ``feed`` are faults.

    Attributes:
        feed: What the agent gets while the data are down: nothing, the last row with its old
            time, or the last row with the present time.
        sign: Factor on what is sent on.
        peek: Shows the prices of the bar that comes next.
    """

    feed: Feed = "missing"
    sign: float = 1.0
    peek: bool = False


def outages(bars: Bars, shocks: tuple[Shock, ...], seeds: Seeds) -> Flags:
    """Return for each close whether the data feed is down, as the venue's fault plan says."""
    closes = bars.ts + bars.period_ns
    windows = tuple((int(closes[start]), int(closes[end])) for start, end, _ in shocks)
    rule = DisconnectRule(on=("data",), windows=windows)
    line = FaultInjector(FaultPlan(bar_ns=bars.period_ns, rules=(rule,)), seeds)
    answers = [line.on_request("data", f"bar {t}", ts) for t, ts in enumerate(closes.tolist())]
    return np.array([fault is not None for fault in answers])


class Line:
    """An agent behind a line; ``asked`` holds what it asked for at each close.

    A number that is none is refused: the target before it stands, and ``refused`` counts it. So are
    counted those beyond the bounds, which the venue cuts down. While the feed is down the agent
    learns of no step; the first it sees again is the one that begins after the outage.
    """

    def __init__(self, agent: Agent, bars: Bars, down: Flags, wiring: Wiring) -> None:
        self.name = agent.name
        self.asked: list[float] = []
        self.refused = 0
        self._agent, self._bars, self._down, self._wiring = agent, bars, down, wiring
        self._low, self._high = -math.inf, math.inf
        self._columns: list[int] = []
        self._seen: Observation | None = None
        self._made = Decision(0.0)

    def reset(self, start: EpisodeStart) -> None:
        """Begin the run."""
        self.asked, self.refused, self._seen, self._made = [], 0, None, Decision(0.0)
        self._low, self._high = start.actions.low, start.actions.high
        self._columns = [start.column(name) for name in PRICE_COLUMNS]
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Show the agent what the feed gives, note what it asks for and send it on."""
        t = len(self.asked)
        shown = self._shown(obs, t)
        if shown is not None:
            self._made = self._agent.act(shown)
        last = self.asked[-1] if self.asked else 0.0
        asked = last if shown is None else self._checked(self._made.action, last)
        self.asked.append(asked)
        return Decision(asked * self._wiring.sign, self._made.signals, self._made.rationale)

    def observe(self, step: Step) -> None:
        """Tell the agent of a step that it saw both ends of."""
        t = len(self.asked)
        if not (self._down[t - 1] or self._down[t]):
            self._agent.observe(step)

    def _shown(self, obs: Observation, t: int) -> Observation | None:
        if self._wiring.peek:
            row = min(t + 1, len(self._bars) - 1)
            features = obs.features.copy()
            for column, name in zip(self._columns, PRICE_COLUMNS, strict=True):
                features[column] = getattr(self._bars, name)[row]
            obs = Observation(obs.ts, features, obs.legal, obs.text)
        if not self._down[t]:
            self._seen = obs
            return obs
        if self._seen is None or self._wiring.feed == "missing":
            return None
        if self._wiring.feed == "stale":
            return self._seen
        return Observation(obs.ts, self._seen.features, self._seen.legal, self._seen.text)

    def _checked(self, action: Action, last: float) -> float:
        value = float(action.item(0)) if isinstance(action, np.ndarray) else float(action)
        if not math.isfinite(value):
            self.refused += 1
            return last
        self.refused += not self._low <= value <= self._high
        return value


class SeriesLine(Line):
    """The same for an agent that decides a whole series at once."""

    def __init__(self, agent: Agent, bars: Bars, down: Flags, wiring: Wiring) -> None:
        if not isinstance(agent, SeriesAgent):
            raise AgentError("only a series agent decides a whole series", found=agent.name)
        super().__init__(agent, bars, down, wiring)
        self._series: SeriesAgent = agent

    @property
    def needs(self) -> tuple[str, ...]:
        """Return what the agent reads."""
        return self._series.needs

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return what is sent on at each close; the first call for all bars is kept."""
        n = min((len(column) for column in columns.values()), default=0)
        up = ~self._down[:n]
        if self._wiring.feed == "missing":
            place = np.cumsum(up) - 1
            shown = {name: np.ascontiguousarray(column[up]) for name, column in columns.items()}
            asked = np.asarray(self._series.targets(start, shown), dtype=np.float64)
            asked = np.where(place >= 0, asked[place], 0.0)
        else:
            place = np.maximum.accumulate(np.where(up, np.arange(n), 0))
            shown = {name: np.ascontiguousarray(column[place]) for name, column in columns.items()}
            asked = np.asarray(self._series.targets(start, shown), dtype=np.float64)
        asked, refused = _held(asked, start.actions.low, start.actions.high)
        if n == len(self._bars) and not self.asked:
            self.asked, self.refused = asked.tolist(), refused
        return asked * self._wiring.sign


def _held(asked: FloatArray, low: float, high: float) -> tuple[FloatArray, int]:
    """Return the targets with the one before in the place of what is no number, and the count."""
    finite = np.isfinite(asked)
    place = np.maximum.accumulate(np.where(finite, np.arange(asked.size), -1))
    held = np.where(place >= 0, asked[place], 0.0)
    beyond = finite & ((asked < low) | (asked > high))
    return held, int(np.count_nonzero(~finite) + np.count_nonzero(beyond))


def lay_line(agent: Agent, bars: Bars, down: Flags, wiring: Wiring) -> Line:
    """Return the line for an agent; a series agent stays one, unless it is shown the future."""
    kind = SeriesLine if isinstance(agent, SeriesAgent) and not wiring.peek else Line
    return kind(agent, bars, down, wiring)
