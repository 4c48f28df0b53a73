"""A backtest step by step: the agent decides, risk parts hold the target back, the world trades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.agents.team import Independent
from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Role,
    Step,
)
from agent_gym.envs.config import ContinuousTargets, MarketConfig
from agent_gym.envs.world import MarketWorld
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.risk_desk import RiskDesk
from agent_gym.exchange.risk import build_chain
from agent_gym.markets.bars import Bars
from agent_gym.rollouts.play import play

EPISODE = "backtest"
TRADER = Role("trader")


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """What came out of a stepwise run: the targets, and the equity at each close that saw one."""

    targets: FloatArray
    equity: FloatArray
    caps: dict[str, Any]


def decide_stepwise(bars: Bars, agent: Agent, config: BacktestConfig, seed: int) -> Decided:
    """Play the whole series in a market world and return the targets that were traded.

    After ruin the episode is over and the target stays at 0.
    """
    world = build_world(bars, config)
    trader = CappedTrader(agent, world, config)
    play(world, Independent({TRADER: trader}), EPISODE, Seeds(seed))
    steps = len(trader.targets)
    targets = np.zeros(len(bars))
    targets[:steps] = trader.targets
    if steps == len(bars) - 1:
        targets = without_last(targets)
    return Decided(targets, np.array(trader.equity), trader.caps())


def without_last(targets: FloatArray) -> FloatArray:
    """Repeat the last target that was traded: after the last close there is no bar to trade."""
    targets[-1] = targets[-2]
    return targets


def build_world(bars: Bars, config: BacktestConfig) -> MarketWorld:
    """Return the world of a backtest: one trader, all bars, targets as actions."""
    spec = config.bounds(bars.instrument)
    return MarketWorld(
        MarketConfig(
            roles=(TRADER,),
            actions=ContinuousTargets(low=spec.low, high=spec.high),
            episode_bars=None,
            random_start=False,
            warmup_bars=0,
            costs=config.costs(),
            account=config.account(),
        ),
        bars,
    )


class CappedTrader:
    """An agent whose targets are scaled and held back before they reach the world."""

    def __init__(self, agent: Agent, world: MarketWorld, config: BacktestConfig) -> None:
        self.name = agent.name
        self.targets: list[float] = []
        self.equity: list[float] = []
        self._agent = agent
        self._account = world.lanes.state
        self._scale = config.position_size
        spec = config.bounds(world.stage.tape.bars.instrument)
        self._low, self._high = spec.low, spec.high
        risk = config.risk()
        self._desk = None if risk is None else RiskDesk(build_chain(risk), world)

    def reset(self, start: EpisodeStart) -> None:
        """Begin the run."""
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Ask the agent, scale, hold back, and keep what is left."""
        made = self._agent.act(obs)
        action = _number(made.action, self.name, len(self.targets))
        target = min(max(action * self._scale, self._low), self._high)
        equity = self._account["eq"].item(0)
        if self._desk is not None:
            target = self._desk.hold_back(target, made, obs, equity)
        self.targets.append(target)
        self.equity.append(equity)
        return made if target == made.action else Decision(target, made.signals, made.rationale)

    def observe(self, step: Step) -> None:
        """Tell the agent what was done and what came of it."""
        self._agent.observe(step)

    def caps(self) -> dict[str, Any]:
        """Return which risk part bound how often; empty without risk parts."""
        return {} if self._desk is None else self._desk.summary(len(self.targets))


def _number(action: Action, agent: str, t: int) -> float:
    value = action.item(0) if isinstance(action, np.ndarray) else float(action)
    if not math.isfinite(value):
        raise AgentError(
            "an action is not a finite number", where=f"{agent}, decision {t}", found=value
        )
    return float(value)
