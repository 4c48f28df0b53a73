"""What an agent was given and what it decided: recorded once, then given again with a change."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

import numpy as np
from typing_extensions import override

from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Outcome,
    Role,
    Step,
    World,
)
from agent_gym.rollouts.play import play
from agent_gym.rollouts.sinks import MemorySink

EPISODE = "audit"


@dataclass(frozen=True)
class Stream:
    """One role's episode: how it was announced, and every step."""

    start: EpisodeStart
    steps: tuple[Step, ...]

    @cached_property
    def matrix(self) -> FloatArray:
        """Return the features, one row a moment; the last row saw no decision."""
        rows = [step.before.features for step in self.steps]
        return np.array([*rows, self.steps[-1].after.observation.features])

    @property
    def decisions(self) -> list[Decision]:
        """Return what was decided."""
        return [step.decision for step in self.steps]

    def column(self, name: str) -> FloatArray:
        """Return one feature over time."""
        values: FloatArray = self.matrix[:, self.start.column(name)]
        return values

    def columns(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the named features, one value a decision, as a series agent takes them."""
        return {name: self.column(name)[:-1].copy() for name in names}

    def first(self, n: int) -> Stream:
        """Return the first steps alone."""
        return Stream(self.start, self.steps[:n])

    def showing(self, matrix: FloatArray) -> Stream:
        """Return the same episode with other features."""
        seen = [step.before for step in self.steps] + [self.steps[-1].after.observation]
        shown = [
            Observation(obs.ts, row.copy(), obs.legal, obs.text)
            for obs, row in zip(seen, matrix, strict=True)
        ]
        steps = [
            _step(step, before, after)
            for step, before, after in zip(self.steps, shown, shown[1:], strict=False)
        ]
        return Stream(self.start, tuple(steps))


def _step(step: Step, before: Observation, after: Observation) -> Step:
    got = step.after
    outcome = Outcome(after, got.reward, got.terminated, got.truncated, got.info)
    return Step(step.episode, step.t, step.role, step.agent, before, step.decision, outcome)


def record(world: World, agent: Agent, seed: int) -> Stream:
    """Let an agent play the first role of a world; the other roles stand still."""
    role = world.roles[0]
    others = {other: Still() for other in world.roles[1:]}
    sink = MemorySink()
    play(world, Independent({role: agent, **others}), EPISODE, Seeds(seed), (sink,))
    start = world.start(role, Seeds(seed).child(EPISODE, "agent", role))
    return Stream(start, tuple(step for step in sink.steps if step.role == role))


def replay(agent: Agent, stream: Stream) -> list[Decision]:
    """Give an agent a recorded episode from the start and return what it decides."""
    agent.reset(stream.start)
    return list(walk(agent, stream))


def walk(agent: Agent, stream: Stream) -> Iterator[Decision]:
    """Yield decision by decision; the agent has been reset before."""
    for step in stream.steps:
        made = agent.act(step.before)
        told = Step(step.episode, step.t, step.role, step.agent, step.before, made, step.after)
        agent.observe(told)
        yield made


def bits(decision: Decision) -> bytes:
    """Return action and signals as bytes: equal bytes, equal decision."""
    action = np.atleast_1d(np.asarray(decision.action, dtype=np.float64))
    signals = sorted((decision.signals or {}).items())
    values = struct.pack(f"<{len(signals)}d", *(float(value) for _, value in signals))
    return action.tobytes() + "\0".join(name for name, _ in signals).encode() + values


def differing(first: Sequence[Decision], second: Sequence[Decision]) -> list[int]:
    """Return the moments at which two runs decided differently; a missing end counts."""
    return [
        t
        for t, (a, b) in enumerate(zip_longest(first, second))
        if a is None or b is None or bits(a) != bits(b)
    ]


def are_targets(spec: ActionSpec) -> bool:
    """Say whether an action stands for a target position."""
    return spec.n is None or spec.levels is not None


def target_of(action: Action, spec: ActionSpec) -> float:
    """Return the position that an action asks for."""
    value = action.item(0) if isinstance(action, np.ndarray) else action
    return float(value) if spec.levels is None else spec.levels[int(value)]


def targets_of(stream: Stream) -> FloatArray:
    """Return the target of every decision."""
    spec = stream.start.actions
    return np.array([target_of(step.decision.action, spec) for step in stream.steps])


class Still:
    """An agent that keeps out of it; implements Agent."""

    name = "audit/still"

    def reset(self, start: EpisodeStart) -> None:
        """Find the action that comes nearest to holding nothing."""
        self._made = Decision(start.actions.encode(0.0) if are_targets(start.actions) else 0)

    def act(self, obs: Observation) -> Decision:
        """Hold nothing."""
        return self._made

    def observe(self, step: Step) -> None:
        """Learn nothing."""


class Dice(Still):
    """An agent that does anything it may, and keeps it for a few bars; implements Agent.

    Args:
        reach: Share of the bounds that a continuous action makes use of.
    """

    name = "audit/dice"
    hold = 3

    def __init__(self, reach: float = 1.0) -> None:
        self._reach = reach

    @override
    def reset(self, start: EpisodeStart) -> None:
        self._spec = start.actions
        self._rng = start.seeds.child("dice").rng()
        self._t = 0

    @override
    def act(self, obs: Observation) -> Decision:
        if self._t % self.hold == 0:
            self._made = Decision(self._throw(obs))
        self._t += 1
        return self._made

    def _throw(self, obs: Observation) -> Action:
        spec, rng = self._spec, self._rng
        if spec.n is None:
            return float(self._reach * rng.uniform(spec.low, spec.high))
        legal = np.arange(spec.n) if obs.legal is None else np.flatnonzero(obs.legal)
        return int(rng.choice(legal))


class Deaf:
    """An agent that is told nothing of what came of its decisions; implements Agent."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self._agent = agent

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Ask the agent."""
        return self._agent.act(obs)

    def observe(self, step: Step) -> None:
        """Keep it to ourselves."""


class WithColumn:
    """A world that shows one column more; implements World.

    Args:
        world: The world that is played.
        name: The name of the column.
        values: One value a moment, by time.
    """

    def __init__(self, world: World, name: str, values: Mapping[int, float]) -> None:
        self.roles = world.roles
        self._world, self._name, self._values = world, name, values

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Announce the column after all others."""
        start = self._world.start(role, seeds)
        return replace(start, feature_names=(*start.feature_names, self._name))

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Begin an episode."""
        return {role: self._widen(obs) for role, obs in self._world.reset(seeds).items()}

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let the roles act."""
        return {
            role: Outcome(
                self._widen(out.observation), out.reward, out.terminated, out.truncated, out.info
            )
            for role, out in self._world.step(actions).items()
        }

    def _widen(self, obs: Observation) -> Observation:
        row = np.append(obs.features, self._values.get(obs.ts, 0.0))
        return Observation(obs.ts, row, obs.legal, obs.text)
