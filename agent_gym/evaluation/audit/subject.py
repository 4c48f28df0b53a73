"""What is audited: an agent that can be made anew at will, the bars and the world it plays in.

A check sees nothing but a ``Subject``. What else an agent can do it says by the protocols of
``core.types``: SeriesAgent (a series door), Learner (fit), Inspectable (weights and losses),
Saveable (save and load), and ``Greedy`` below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.registry import Config, Ref, configure, entry
from agent_gym.core.types import Agent, FloatArray, Inspectable, Learner, Role, World
from agent_gym.envs.config import ContinuousTargets, MarketConfig
from agent_gym.envs.world import MarketWorld
from agent_gym.evaluation.audit.stream import Dice, Still, Stream, record
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.markets.bars import Bars


@runtime_checkable
class Greedy(Protocol):
    """An agent that explores unless it is told to act as well as it can, from then on."""

    def act_greedily(self) -> None: ...


@runtime_checkable
class Books(Protocol):
    """A world that opens its books.

    The record of a role has ``cash``, ``pos`` (units held) and ``eq`` (equity at the last close),
    and running totals of what was paid: ``fees``, ``slip`` and ``fund``.
    """

    def ledger(self, role: Role) -> Any: ...


def market_world(bars: Bars) -> World:
    """Return the world of an audit: all bars, any target from short to long, the usual costs."""
    return MarketWorld(
        MarketConfig(
            actions=ContinuousTargets(),
            episode_bars=None,
            random_start=False,
            warmup_bars=0,
            costs=Costs(missing_funding="zero"),
            account=AccountRules(allow_short=True),
        ),
        bars,
    )


@dataclass(frozen=True)
class Subject:
    """An agent, the market it is watched in, and how much work an audit may make of it.

    Attributes:
        name: What the report calls it.
        bars: The market.
        factory: Makes a fresh agent from ``config``, or from nothing without one; None if a world
            is audited on its own.
        config: What the agent was configured with.
        world: Makes a world that plays all bars it is given, from the first to the last; checks
            give it bars of their own as well, 2 or more.
        seed: Seed of the episodes.
        lessons: Episodes in which an agent may learn the planted bandit.

    Example:
        >>> from agent_gym.core.seeds import Seeds
        >>> from agent_gym.markets.source import open_market
        >>> bars = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 50}), Seeds(0))
        >>> len(Subject.named(Ref(use="rules/flat"), bars).stream.steps)
        49
    """

    name: str
    bars: Bars
    factory: Callable[..., Agent] | None = None
    config: Config | None = None
    world: Callable[[Bars], World] = market_world
    seed: int = 0
    lessons: int = 10

    @classmethod
    def named(cls, ref: Ref, bars: Bars, **choices: Any) -> Subject:
        """Return the subject for an agent of the registry."""
        found = entry("agent", ref.use)
        config = configure(found.config, ref.params, where=f"agent {ref.use}")
        factory = cast("Callable[..., Agent]", found.factory)
        return cls(ref.use, bars, factory, config, **choices)

    def agent(self, config: Config | None = None) -> Agent:
        """Return a fresh agent, under another config if one is given."""
        if self.factory is None:
            raise TypeError(f"{self.name} has no agent")
        chosen = config or self.config
        return self.factory() if chosen is None else self.factory(chosen)

    def ready(self, config: Config | None = None, bars: Bars | None = None) -> Agent:
        """Return a fresh agent that acts as well as it can: fitted on the first half if it fits."""
        agent = self.agent(config)
        if isinstance(agent, Learner):
            past = self.bars if bars is None else bars
            teach(agent, self.watch(past.rows(0, max(2, len(past) // 2))))
        if isinstance(agent, Greedy):
            agent.act_greedily()
        return agent

    def player(self, bars: Bars | None = None) -> Agent:
        """Return a ready agent, or one that throws dice where a world is audited on its own."""
        return Dice() if self.factory is None else self.ready(bars=bars)

    def play(self, bars: Bars | None = None, agent: Agent | None = None) -> Stream:
        """Return an episode on these bars."""
        bars = self.bars if bars is None else bars
        return record(self.world(bars), agent or self.player(bars), self.seed)

    def watch(self, bars: Bars) -> Stream:
        """Return an episode in which nobody does anything."""
        return record(self.world(bars), Still(), self.seed)

    @cached_property
    def stream(self) -> Stream:
        """Return the episode of a ready agent on the bars of the subject."""
        return self.play()

    @cached_property
    def next_returns(self) -> Mapping[int, float]:
        """Return the return of the bar after each moment, by the time of the moment."""
        return next_returns(self.bars)


def teach(agent: Learner, past: Stream) -> None:
    """Let an agent fit the columns that it needs; it gets copies and sees nothing else."""
    agent.fit(past.start, past.columns(agent.needs))


def next_returns(bars: Bars) -> dict[int, float]:
    """Return the return of the bar after each moment, by the time of the moment."""
    moves = bars.close[1:] / bars.close[:-1] - 1.0
    times = (bars.ts + bars.period_ns).tolist()
    return dict(zip(times, moves.tolist(), strict=False))


def weights_of(agent: object) -> dict[str, NDArray[Any]]:
    """Return copies of what an agent can learn by; nothing if it does not show it."""
    if not isinstance(agent, Inspectable):
        return {}
    return {name: np.array(value) for name, value in agent.weights().items()}


def moves_after(stream: Stream, following: Mapping[int, float]) -> FloatArray:
    """Return the return that followed each decision."""
    return np.array([following.get(step.before.ts, 0.0) for step in stream.steps])
