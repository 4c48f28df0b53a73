"""Agents for a market scenario: fresh ones, and where they learn, taught on a calm past."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TypeAlias, cast

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, EpisodeStart, Learner, Nanos
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.stepwise import TRADER
from agent_gym.markets.bars import Bars

Past: TypeAlias = Callable[[Seeds], Bars]


class School:
    """Hands out an agent as often as it is asked for; none knows what another one saw.

    With a past an agent that learns is fitted on it, once, and copies of it are handed out. What
    was learned hangs on the seed alone: on no shock, no fault, and no bar that is played.

    Args:
        agent: Who plays.
        venue: The venue as it is stated.
        seeds: The streams of the scenario.
        past: Draws the past; None: agents are handed out as they are.
    """

    def __init__(
        self, agent: Ref, venue: BacktestConfig, seeds: Seeds, past: Past | None = None
    ) -> None:
        self.venue = venue
        self._agent, self._seeds, self._past = agent, seeds, past
        self._taught: Agent | None = None

    def pupil(self) -> Agent:
        """Return a fresh agent that knows what there was to learn."""
        if self._taught is not None:
            return deepcopy(self._taught)
        agent = cast(Agent, make("agent", self._agent))
        if self._past is None or not isinstance(agent, Learner):
            return agent
        bars = self._past(self._seeds)
        columns = {name: column.copy() for name, column in columns_for(bars, agent.needs).items()}
        spec, period = self.venue.bounds(bars.instrument), Nanos(bars.period_ns)
        agent.fit(
            EpisodeStart(TRADER, tuple(columns), spec, self._seeds.child("fit"), period), columns
        )
        self._taught = agent
        return deepcopy(agent)

    def explained(self, error: AgentError) -> AgentError:
        """Return the error of an agent; one that was not taught is told how it could be."""
        untaught = self._past is None and isinstance(make("agent", self._agent), Learner)
        if not untaught:
            return error
        return AgentError(
            error.what,
            where=error.where,
            found=error.found,
            expected=error.expected,
            remedy="Give the scenario a past to learn from ('train_bars' in its 'params'), or name "
            "an agent that has learned by its folder",
        )
