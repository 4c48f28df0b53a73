"""An agent behind a drawdown breaker, for worlds that know no risk parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agent_gym.core.errors import AgentError
from agent_gym.core.types import Agent, Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.exchange.risk import DrawdownBreaker, DrawdownConfig, RiskView

SOFT_SHARE = 1.0 / 3.0  # of the limit, as in a backtest with max_drawdown
ROUNDING = 1e-9


class Braked:
    """Holds back the targets of an agent by what its account has lost; None: holds back nothing.

    The account is followed by the rewards, so the world must pay in log equity.
    """

    def __init__(self, agent: Agent, max_drawdown: float | None) -> None:
        self.name = agent.name
        self._agent = agent
        self._limit = max_drawdown
        self.equity: list[float] = [1.0]
        self._breaker: DrawdownBreaker | None = None

    @property
    def tripped(self) -> bool:
        """Say whether the breaker has tripped."""
        return self._breaker is not None and self._breaker.state()["tripped_ts"] is not None

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode with a whole account and an armed breaker."""
        if start.actions.n is not None:
            raise AgentError("a breaker needs targets that can be scaled", where=self.name)
        self.equity = [1.0]
        self._close = start.column("close")
        if self._limit is not None:
            soft = SOFT_SHARE * self._limit
            self._breaker = DrawdownBreaker(
                DrawdownConfig(soft_drawdown=soft, max_drawdown=self._limit)
            )
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Ask the agent and hold back."""
        made = self._agent.act(obs)
        if self._breaker is None:
            return made
        view = RiskView(
            ts=int(obs.ts),
            equity=self.equity[-1],
            peak_equity=max(self.equity),
            mark=float(obs.features[self._close]),
            position_fraction=0.0,
            sigma=0.0,
        )
        wished = float(np.asarray(made.action).item())
        allowed = self._breaker.cap(wished, view).after
        return Decision(allowed, made.signals, made.rationale)

    def observe(self, step: Step) -> None:
        """Book what the step brought."""
        self.equity.append(self.equity[-1] * math.exp(step.after.reward))
        self._agent.observe(step)


@dataclass(frozen=True, slots=True)
class Fall:
    """How deep an account fell, in shares of its peak, and what the breaker could not help.

    It is asked at a close and the order to get out is filled at the next open. So beyond the limit
    lie what the bar lost in which the limit was passed, and what getting out costs: the way from
    that close to the next open, fees, spread and funding. After that nothing is held.

    Attributes:
        deepest: The largest drawdown.
        worst_bar: The most that one bar took.
        passing: What the bar lost in which the limit was passed; 0 if it never was.
        leaving: What getting out in the bar after it took.
        after: The most that was lost later still.
    """

    deepest: float
    worst_bar: float
    passing: float = 0.0
    leaving: float = 0.0
    after: float = 0.0

    def held(self, limit: float) -> bool:
        """Say whether nothing was lost beyond the limit that the breaker could have kept."""
        allowed = limit + self.passing + self.leaving
        return self.deepest <= allowed + ROUNDING and self.after <= ROUNDING

    def held_strictly(self, limit: float) -> bool:
        """Say the same where getting out costs nothing: the limit plus the bar that passed it."""
        return self.deepest <= limit + self.passing + ROUNDING and self.after <= ROUNDING


def fall_of(equity: FloatArray, limit: float) -> Fall:
    """Take a path of equity apart at the first close that lies beyond the limit.

    Example:
        >>> fall = fall_of(np.array([100.0, 90.0, 80.0, 78.0, 78.0]), 0.15)
        >>> round(fall.deepest, 6), round(fall.passing, 6), round(fall.leaving, 6), fall.held(0.15)
        (0.22, 0.1, 0.02, True)
    """
    peak = np.maximum.accumulate(equity)
    down = 1.0 - equity / peak
    deepest = float(down.max())
    worst = max(0.0, float((-np.diff(equity) / peak[:-1]).max(initial=0.0)))
    beyond = np.flatnonzero(down >= limit)
    if not beyond.size:
        return Fall(deepest, worst)
    at = int(beyond[0])
    lost = np.append(np.diff(down), 0.0)
    rest = down[at + 1 :] - down[min(at + 1, down.size - 1)]
    return Fall(
        deepest,
        worst,
        passing=float(lost[at - 1]),
        leaving=max(0.0, float(lost[at])),
        after=max(0.0, float(rest.max(initial=0.0))),
    )
