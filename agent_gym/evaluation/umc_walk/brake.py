"""An agent behind a drawdown breaker, for worlds that know no risk parts."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.errors import AgentError
from agent_gym.core.types import Agent, Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.exchange.risk import DrawdownBreaker, DrawdownConfig, RiskView

SOFT_SHARE = 1.0 / 3.0  # of the limit, as in a backtest with max_drawdown


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


def drawdowns(equity: FloatArray) -> tuple[float, float]:
    """Return the deepest drawdown, and the most that one bar took, as shares of the peak.

    Example:
        >>> drawdowns(np.array([1.0, 2.0, 1.5, 1.8]))
        (0.25, 0.25)
    """
    peak = np.maximum.accumulate(equity)
    deepest = float((1.0 - equity / peak).max())
    lost = float((-np.diff(equity) / peak[:-1]).max(initial=0.0))
    return deepest, max(0.0, lost)
