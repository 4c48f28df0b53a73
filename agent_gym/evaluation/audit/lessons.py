"""How an agent is taught the planted bandit, and what is kept of its way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import Agent, Inspectable, Learner
from agent_gym.evaluation.audit.changed_bars import lesson
from agent_gym.evaluation.audit.stream import Deaf, Stream, record, targets_of
from agent_gym.evaluation.audit.subject import (
    Greedy,
    Subject,
    moves_after,
    next_returns,
    teach,
    weights_of,
)
from agent_gym.markets.bars import Bars
from agent_gym.rollouts.play import attempt

Weights = Mapping[str, NDArray[Any]]
EXAM = 1_000_003  # a lesson that nobody was taught


@dataclass
class Taught:
    """An agent after its lessons, and what was seen on the way.

    A score is the share of bars on whose right side it was: 0.5 knows nothing, 1 knows all.
    """

    agent: Agent
    before: Weights = field(default_factory=dict)
    after: Weights = field(default_factory=dict)
    twin: Weights = field(default_factory=dict)
    losses: list[dict[str, float]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    untrained: float | None = None
    score: float = 0.5


def give_lessons(subject: Subject, n_bars: int) -> Taught:
    """Teach a fresh agent by fit(), or else by letting it play, and examine it on other bars."""
    taught = Taught(subject.agent())
    bars = _lesson(subject, n_bars, 0)
    taught.before = _initial(subject, bars)
    taught.untrained = _examined(subject, subject.agent(), n_bars)
    if isinstance(taught.agent, Learner):
        _fit(subject, taught, n_bars)
    else:
        _play(subject, taught, n_bars)
    taught.after = weights_of(taught.agent)
    if isinstance(taught.agent, Greedy):
        taught.agent.act_greedily()
    taught.score = _score(subject, taught.agent, n_bars)
    return taught


def _fit(subject: Subject, taught: Taught, n_bars: int) -> None:
    """Fit one agent, and a twin on other bars: what is the same in both has not learned."""
    twin = subject.agent()
    for number, agent in enumerate((twin, taught.agent)):
        if isinstance(agent, Learner):
            teach(agent, subject.watch(_lesson(subject, n_bars, number)))
            _note_losses(agent, taught)
    taught.twin = weights_of(twin)


def _play(subject: Subject, taught: Taught, n_bars: int) -> None:
    for number in range(subject.lessons):
        world = subject.world(_lesson(subject, n_bars, number))
        stream = record(world, taught.agent, subject.seed)
        taught.rewards.append(float(np.mean([step.after.reward for step in stream.steps])))
        _note_losses(taught.agent, taught)


def _note_losses(agent: Agent, taught: Taught) -> None:
    if isinstance(agent, Inspectable):
        taught.losses.append({name: float(value) for name, value in agent.losses().items()})


def _lesson(subject: Subject, n_bars: int, number: int) -> Bars:
    return lesson(subject.bars, n_bars, subject.seed + number)


def _initial(subject: Subject, bars: Bars) -> Weights:
    """Return the weights of an agent that has been announced an episode and seen nothing."""
    agent = subject.agent()
    found: dict[str, NDArray[Any]] = {}

    def look() -> None:
        agent.reset(subject.watch(bars).start)
        found.update(weights_of(agent))

    attempt(look)  # one that must be fitted first shows nothing yet
    return found


def _examined(subject: Subject, agent: Agent, n_bars: int) -> float | None:
    """Return the score of an agent that was taught nothing, None if it cannot act so."""
    scores: list[float] = []
    attempt(lambda: scores.append(_score(subject, agent, n_bars)))
    return scores[0] if scores else None


def _score(subject: Subject, agent: Agent, n_bars: int) -> float:
    bars = _lesson(subject, n_bars, EXAM)
    stream = record(subject.world(bars), Deaf(agent), subject.seed)
    return _right_side(stream, bars)


def _right_side(stream: Stream, bars: Bars) -> float:
    spec, moves = stream.start.actions, moves_after(stream, next_returns(bars))
    low, high = (spec.low, spec.high) if spec.levels is None else _ends(spec.levels)
    held = np.clip((targets_of(stream) - low) / (high - low), 0.0, 1.0)
    return float(np.where(moves > 0.0, held, 1.0 - held).mean())


def _ends(levels: tuple[float, ...]) -> tuple[float, float]:
    return min(levels), max(levels)
