"""Who decides: the planner by what positions are worth, or an actor by what it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.choice import Outlook, choose_levels, worth_of
from agent_gym.agents.umc.mind import Trace
from agent_gym.agents.umc.planner import Plan
from agent_gym.agents.umc.policy import Actor
from agent_gym.core.types import FloatArray


class Policy(Protocol):
    """Chooses a level at each bar and tells the free energy of all of them."""

    @property
    def levels(self) -> FloatArray: ...
    def choose(
        self, trace: Trace, outlook: Outlook, memory: FloatArray
    ) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """The policy of the planner."""

    plan: Plan
    cost: float

    @property
    def levels(self) -> FloatArray:
        """Return the positions to choose from."""
        return self.plan.levels

    def choose(
        self, trace: Trace, outlook: Outlook, memory: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the place of the chosen level and the free energy of each, bar by bar."""
        return choose_levels(self.plan, outlook, self.cost, memory)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The policy of an actor; the plan still tells what each level would cost."""

    actor: Actor
    plan: Plan
    cost: float

    @property
    def levels(self) -> FloatArray:
        """Return the positions to choose from."""
        return self.plan.levels

    def choose(
        self, trace: Trace, outlook: Outlook, memory: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the place of the likeliest level that is allowed, bar by bar."""
        held = self.levels[[int(memory[0])]]
        places = self._places(states_of(trace), outlook.cap, held).astype(np.float64)
        before = np.concatenate([[memory[0]], places[:-1]]).astype(np.int64)
        moved = np.abs(self.levels[None, :] - self.levels[before][:, None])
        worth = worth_of(self.plan, outlook, self.cost)
        memory[0] = places[-1]
        return places, (self.cost / outlook.sigma)[:, None] * moved - worth

    def _places(self, states: FloatArray, cap: FloatArray, held: FloatArray) -> NDArray[np.int64]:
        """Return the places of the levels taken.

        The actor is told where it may not have what it wants, so it decides in stretches: from such
        a bar on anew. Short ones come first, for such bars lie close together.
        """
        sizes, places = np.abs(self.levels), np.empty(len(states), dtype=np.int64)
        first, length = 0, 1
        while first < len(states):
            rows = slice(first, first + length)
            targets, chances = self.actor.decide(states[rows], held)
            beyond = np.abs(targets) > cap[rows]
            kept = int(np.argmax(beyond)) + 1 if beyond.any() else targets.size
            places[first : first + kept] = np.searchsorted(self.levels, targets[:kept])
            if beyond[kept - 1]:
                allowed = sizes <= cap[first + kept - 1]
                places[first + kept - 1] = np.argmax(np.where(allowed, chances[kept - 1], -1.0))
            length = 1 if beyond[kept - 1] else 2 * length
            first += kept
            held[0] = self.levels[places[first - 1]]
        return places


def states_of(trace: Trace) -> FloatArray:
    """Return what an actor sees of each bar besides what it holds."""
    told, sigma = trace.told, trace.series.sigma
    figures = (trace.edge, told.error / sigma, np.log(sigma), trace.coherence)
    return np.column_stack([*figures, told.chance, trace.regimes])
