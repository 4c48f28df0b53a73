"""The agent ``oracle/filter``: it knows the law of a market, and sees only what agents see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, Ref, register
from agent_gym.core.types import (
    ActionSpec,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Step,
)
from agent_gym.evaluation.oracle.plan import LARGEST_COST_BP, plan_of, solved
from agent_gym.evaluation.oracle.solution import Solution, resized

NAME = "oracle/filter"


class OracleFilterConfig(Config):
    """Which law the agent takes for true, and what it takes a trade to cost."""

    market: Ref = Field(
        default=Ref(use="known/m1"), description="known market, by name or with its parameters"
    )
    cost_bp: float = Field(
        default=5.0, ge=0.0, le=LARGEST_COST_BP, description="cost of a trade it reckons with"
    )

    @field_validator("market", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value


class OracleFilter:
    """Follows the hidden state by the exact filter and acts by the best policy for that market.

    It may short where the world lets it, and reckons with that. It never learns: on a market with
    another law it is simply wrong. Implements Agent and SeriesAgent.
    """

    def __init__(self, config: OracleFilterConfig) -> None:
        self.name = NAME
        self._config = config
        self._filter = plan_of(config.market).filter
        self.needs = (self._filter.column,)
        self._column = -1
        self._actions = ActionSpec()
        self._best: Solution | None = None
        self._memory, self._held = self._filter.begin(), np.zeros(1)
        self._bar = 0

    def reset(self, start: EpisodeStart) -> None:
        """Forget everything and find the column that the filter reads."""
        try:
            self._column = start.column(self.needs[0])
        except LookupError as error:
            raise AgentError(
                "the world does not show what this agent reads",
                where=f"{NAME} for {self._config.market.use}",
                found=", ".join(start.feature_names),
                expected=self.needs[0],
            ) from error
        self._best = self._policy(start.actions)
        self._actions = start.actions
        self._memory, self._held = self._filter.begin(), np.zeros(1)
        self._bar = 0

    def act(self, obs: Observation) -> Decision:
        """Take in one bar and return the target, with the state it was decided in."""
        if self._best is None:
            raise AgentError("an agent acts after reset()", where=NAME)
        seen = obs.features[self._column : self._column + 1].astype(np.float64)
        xs, ys = self._filter.states(seen, self._memory)
        wished = resized(self._best.targets(xs, ys, self._held), self._bar)
        self._bar += 1
        return Decision(self._actions.encode(float(wished[0])), {"state": float(xs[0])})

    def observe(self, step: Step) -> None:
        """Ignore the outcome: an account tells nothing of the market."""

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the target at every moment of a series, as the world would hold it."""
        if self.needs[0] not in columns:
            raise AgentError("a column is missing", where=NAME, expected=self.needs[0])
        column = np.array(columns[self.needs[0]], dtype=np.float64)
        xs, ys = self._filter.states(column, self._filter.begin())
        wished = self._policy(start.actions).targets(xs, ys, np.zeros(1))
        return start.actions.held(resized(wished))

    def _policy(self, actions: ActionSpec) -> Solution:
        if actions.n is not None and actions.levels is None:
            raise AgentError(
                "this world's actions are not target positions",
                where=NAME,
                found=f"{actions.n} actions without levels",
                expected="a number between bounds, or levels",
            )
        lowest = actions.low if actions.levels is None else min(actions.levels)
        config = self._config
        return solved(config.market, config.cost_bp, allow_short=lowest < 0.0).best


@register("agent", NAME, OracleFilterConfig)
def oracle_filter(config: OracleFilterConfig) -> OracleFilter:
    """Follow the hidden state of a known market exactly and trade its best policy.

    The yardstick of the known markets: no agent that sees the same can do better in the long run.
    """
    return OracleFilter(config)
