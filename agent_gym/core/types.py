"""The words every room speaks: who decides, what happened, what it meant.

The records that are made once a step (Observation, Decision, Outcome, Step) are frozen structs:
they are made in C, four times as fast as a dataclass, and the garbage collector leaves them alone
(they hold no way back to themselves).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NewType, Protocol, TypeAlias, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds

Role = NewType("Role", str)
Nanos = NewType("Nanos", int)
FloatArray: TypeAlias = NDArray[np.float64]
Action: TypeAlias = int | float | FloatArray
Signals: TypeAlias = Mapping[str, float]


class Observation(Struct, frozen=True, gc=False):
    """What one role sees at one moment; text is the same view in words."""

    ts: Nanos
    features: FloatArray
    legal: NDArray[np.bool_] | None = None
    text: str | None = None


class Decision(Struct, frozen=True, gc=False):
    """An action and what the agent can say about it."""

    action: Action
    signals: Signals | None = None
    rationale: str | None = None


class Outcome(Struct, frozen=True, gc=False):
    """What the world gave back to one role."""

    observation: Observation
    reward: float
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] | None = None


class Step(Struct, frozen=True, gc=False):
    """One row of a trajectory: one role, one decision, one outcome."""

    episode: str
    t: int
    role: Role
    agent: str
    before: Observation
    decision: Decision
    after: Outcome


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """What a role may do: pick one of ``n`` actions, or give a number between the bounds.

    In a market, ``levels[i]`` is the target position (as a fraction of equity) that action ``i``
    asks for; a continuous action is that fraction itself.
    """

    n: int | None = None
    levels: tuple[float, ...] | None = None
    low: float = -1.0
    high: float = 1.0

    def encode(self, target: float) -> Action:
        """Return the action that comes nearest to a target position.

        Example:
            >>> ActionSpec(n=3, levels=(-1.0, 0.0, 1.0)).encode(0.7)
            2
        """
        levels = self.levels
        if levels is None:
            return min(max(target, self.low), self.high)
        return min(range(len(levels)), key=lambda i: abs(levels[i] - target))

    def held(self, targets: FloatArray) -> FloatArray:
        """Return what a world would hold for each target: the nearest level, or within bounds.

        Example:
            >>> ActionSpec(low=0.0).held(np.array([-1.0, 0.5])).tolist()
            [0.0, 0.5]
        """
        if self.levels is None:
            return np.clip(targets, self.low, self.high)
        asked, place = np.unique(targets, return_inverse=True)
        nearest = [self.levels[int(np.asarray(self.encode(float(each))))] for each in asked]
        held: FloatArray = np.array(nearest, dtype=np.float64)[place]
        return held


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """All an agent may know before the first observation.

    ``period_ns`` is the time from one observation to the next; None where a world keeps no pace.
    """

    role: Role
    feature_names: tuple[str, ...]
    actions: ActionSpec
    seeds: Seeds
    period_ns: Nanos | None = None

    def column(self, name: str) -> int:
        """Return where a named feature stands in an observation."""
        try:
            return self.feature_names.index(name)
        except ValueError:
            known = ", ".join(self.feature_names)
            raise LookupError(f"this world shows no feature {name!r}; it shows: {known}") from None


class Agent(Protocol):
    """Decides for one role. Learning while acting happens in observe()."""

    @property
    def name(self) -> str: ...
    def reset(self, start: EpisodeStart) -> None: ...
    def act(self, obs: Observation) -> Decision: ...
    def observe(self, step: Step) -> None: ...


@runtime_checkable
class SeriesAgent(Protocol):
    """An agent whose targets do not depend on its account: a whole series is decided at once.

    ``columns`` holds the features it ``needs``, one value a moment. The result holds one target a
    moment, decided with values up to and including that one, bit for bit what act() gives.
    """

    @property
    def needs(self) -> tuple[str, ...]: ...
    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray: ...


@runtime_checkable
class Learner(Protocol):
    """An agent that learns from a past before it is judged on what follows.

    ``columns`` holds the features it ``needs`` over the training span, one value a moment.
    """

    @property
    def needs(self) -> tuple[str, ...]: ...
    def fit(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None: ...


@runtime_checkable
class Tuned(Learner, Protocol):
    """A learner that chooses something by the span after the one it learned from.

    tune() comes once, after fit(), with the columns of the validation span: when to have stopped,
    which threshold, which of several models. Without a validation span it does not come.
    """

    def tune(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None: ...


@runtime_checkable
class Successor(Learner, Protocol):
    """A learner that can go on from one of its kind that has learned an earlier past.

    In a walk forward succeed() comes before fit(), with the agent of the fold before. What that one
    knows is older than the rows to learn from, so nothing is seen too early.
    """

    def succeed(self, earlier: Any) -> None: ...


@runtime_checkable
class Inspectable(Protocol):
    """An agent whose trainable numbers and last losses can be looked at, by name."""

    def weights(self) -> Mapping[str, NDArray[Any]]: ...
    def losses(self) -> Mapping[str, float]: ...


@runtime_checkable
class Saveable(Protocol):
    """An agent that can be put into a folder and read back; nothing in there is ever unpickled."""

    def save(self, folder: Path) -> None: ...
    def load(self, folder: Path) -> None: ...


class Team(Protocol):
    """Decides for several roles at once."""

    @property
    def names(self) -> Mapping[Role, str]: ...
    def reset(self, starts: Mapping[Role, EpisodeStart]) -> None: ...
    def act(self, obs: Mapping[Role, Observation]) -> Mapping[Role, Decision]: ...
    def observe(self, steps: Mapping[Role, Step]) -> None: ...


@runtime_checkable
class SeparateTeam(Team, Protocol):
    """A team whose members decide apart; the loop may ask a member itself."""

    @property
    def agents(self) -> Mapping[Role, Agent]: ...


class World(Protocol):
    """A market place with one or more roles; a single agent is a world with one role."""

    @property
    def roles(self) -> tuple[Role, ...]: ...
    def start(self, role: Role, seeds: Seeds) -> EpisodeStart: ...
    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]: ...
    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]: ...


@runtime_checkable
class SoloWorld(World, Protocol):
    """A world that can be stepped without naming the role, while it has only one."""

    def advance(self, action: Action) -> Outcome: ...


class Sink(Protocol):
    """Takes steps as they happen; close() makes them last."""

    def write(self, step: Step) -> None: ...
    def close(self) -> None: ...
