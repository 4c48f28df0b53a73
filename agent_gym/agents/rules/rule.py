"""A rule: one compiled step function behind three doors.

The step function of a rule reads one bar and returns a target position as a fraction of equity.
``act`` calls it for one bar, ``targets`` for a whole series, ``lanes`` for many accounts at once.
All three run the same machine code from the same starting state, so they agree bit for bit, and a
target can depend on nothing but the bars up to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.core.errors import AgentError
from agent_gym.core.kernels import direct
from agent_gym.core.registry import Config
from agent_gym.core.types import (
    ActionSpec,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Step,
)

SLOT_BYTES = 8


class RuleConfig(Config):
    """What every rule that takes sides can be told."""

    size: float = Field(
        default=1.0, gt=0, le=1, description="position when on, as a fraction of equity"
    )
    allow_short: bool = Field(default=False, description="go short where the rule would sell")

    @property
    def short(self) -> float:
        """Return the target where the rule sells."""
        return -self.size if self.allow_short else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """What makes one rule different from another.

    Attributes:
        name: The name in the registry.
        needs: The features it reads, one or three, in the order in which the doors take them.
        initial: The state at the start of an episode, parameters included.
        step: Door ``(state, *bar) -> target`` for one bar.
        run: Door ``(state, stride, n, out, columns)`` for ``n`` bars. The state moves on by
            ``stride`` bytes a bar: 0 for a series, the length of a state for lanes. ``columns``
            is the address of a table of column addresses.
        key_slot: The slot that takes the seed, for a rule that throws dice.
        told: Returns the slots that only the world can fill, such as those that need its period.
    """

    name: str
    needs: tuple[str, ...]
    initial: FloatArray
    step: Any
    run: Callable[[int, int, int, int, int], None]
    key_slot: int | None = None
    told: Callable[[EpisodeStart], Mapping[int, float]] | None = None

    def begin(self, state: FloatArray, start: EpisodeStart) -> None:
        """Put a state back to the start of an episode."""
        state[:] = self.initial
        if self.told is not None:
            for slot, value in self.told(start).items():
                state[slot] = value
        if self.key_slot is not None:
            state.view(np.int64)[self.key_slot] = start.seeds.child("rule").as_uint64()


class Rule:
    """An agent that follows a formula; implements Agent and SeriesAgent.

    Example:
        >>> from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
        >>> from agent_gym.core.seeds import Seeds
        >>> rule = sma_cross(SmaCrossConfig(fast=1, slow=2))
        >>> start = EpisodeStart("trader", ("close",), ActionSpec(), Seeds(0))
        >>> rule.targets(start, {"close": np.array([1.0, 2.0, 3.0, 1.0])}).tolist()
        [0.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, formula: Formula) -> None:
        self.name = formula.name
        self.needs = formula.needs
        self._formula = formula
        self._step = direct(formula.step)
        self._state = np.zeros_like(formula.initial)
        self._address = self._state.ctypes.data
        self._columns: tuple[int, ...] = ()
        self._column = -1
        self._actions = ActionSpec()
        self._target = 0.0
        self._decision = Decision(0.0)

    def reset(self, start: EpisodeStart) -> None:
        """Forget everything and find the columns this rule reads."""
        try:
            self._columns = tuple(start.column(name) for name in self.needs)
        except LookupError as error:
            raise AgentError(
                "the world does not show what this rule reads",
                where=self.name,
                found=", ".join(start.feature_names),
                expected=", ".join(self.needs),
            ) from error
        self._column = self._columns[0] if len(self._columns) == 1 else -1
        self._actions = _checked(start.actions, self.name)
        self._formula.begin(self._state, start)
        self._target = 0.0
        self._decision = Decision(self._actions.encode(0.0))

    def act(self, obs: Observation) -> Decision:
        """Take in one bar and return the target; an unchanged target is the same Decision."""
        if self._column >= 0:
            target = self._step(self._address, obs.features.item(self._column))
        else:
            first, second, third = self._columns
            item = obs.features.item
            target = self._step(self._address, item(first), item(second), item(third))
        if target != self._target:
            self._target = target
            self._decision = Decision(self._actions.encode(target))
        return self._decision

    def observe(self, step: Step) -> None:
        """Ignore the outcome: a rule looks at prices alone."""

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the target position at every moment of a series, as the world would hold it.

        Args:
            start: As for reset(); with discrete actions a target is the nearest level.
            columns: The features in ``needs``, one value a moment.
        """
        actions = _checked(start.actions, self.name)
        state = np.empty_like(self._formula.initial)
        self._formula.begin(state, start)
        table, length = _table(self.name, [columns.get(name) for name in self.needs], self.needs)
        out = np.empty(length, dtype=np.float64)
        addresses = np.array([column.ctypes.data for column in table], dtype=np.int64)
        self._formula.run(state.ctypes.data, 0, length, out.ctypes.data, addresses.ctypes.data)
        return actions.held(out)

    def lanes(self, starts: Sequence[EpisodeStart]) -> Lanes:
        """Return the same rule for many accounts at once, one start each."""
        return Lanes(self._formula, starts)

    @override
    def __reduce__(self) -> NoReturn:
        """Refuse to be copied: compiled code holds the address of this very state."""
        raise TypeError(f"{self.name} cannot be copied; make another one from the registry")


class Lanes:
    """One rule for many accounts, each at its own moment.

    Example:
        >>> from agent_gym.agents.rules.baselines import BuyHoldConfig, buy_hold
        >>> from agent_gym.core.seeds import Seeds
        >>> start = EpisodeStart("trader", ("close",), ActionSpec(), Seeds(0))
        >>> lanes = buy_hold(BuyHoldConfig(size=0.5)).lanes([start, start])
        >>> lanes.act_lanes({"close": np.array([1.0, 2.0])}).tolist()
        [0.5, 0.5]
    """

    def __init__(self, formula: Formula, starts: Sequence[EpisodeStart]) -> None:
        if not starts:
            raise AgentError("a rule needs at least one lane", where=formula.name, found=0)
        self.needs = formula.needs
        self._formula = formula
        self._actions = _checked(starts[0].actions, formula.name)
        self._states = np.empty((len(starts), formula.initial.size), dtype=np.float64)
        for lane, start in enumerate(starts):
            self.reset_lane(lane, start)

    def reset_lane(self, lane: int, start: EpisodeStart) -> None:
        """Begin a new episode in one lane."""
        self._formula.begin(self._states[lane], start)

    def act_lanes(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Take in one bar a lane and return one target a lane."""
        name, needs = self._formula.name, self.needs
        table, length = _table(name, [columns.get(need) for need in needs], needs)
        if length != len(self._states):
            raise AgentError(
                "one value a lane is needed", where=name, found=length, expected=len(self._states)
            )
        out = np.empty(length, dtype=np.float64)
        addresses = np.array([column.ctypes.data for column in table], dtype=np.int64)
        stride = self._formula.initial.size * SLOT_BYTES
        self._formula.run(
            self._states.ctypes.data, stride, length, out.ctypes.data, addresses.ctypes.data
        )
        return self._actions.held(out)


def _checked(actions: ActionSpec, name: str) -> ActionSpec:
    if actions.n is not None and actions.levels is None:
        raise AgentError(
            "this world's actions are not target positions",
            where=name,
            found=f"{actions.n} actions without levels",
            expected="a number between bounds, or levels",
        )
    return actions


def _table(
    name: str, columns: Sequence[FloatArray | None], needs: tuple[str, ...]
) -> tuple[list[FloatArray], int]:
    """Return the columns as the compiled code reads them: float64, contiguous, equally long."""
    table = []
    for need, column in zip(needs, columns, strict=True):
        if column is None:
            raise AgentError("a column is missing", where=name, expected=", ".join(needs))
        table.append(np.ascontiguousarray(column, dtype=np.float64))
        if table[-1].shape != (table[0].size,):
            raise AgentError(
                "columns must be flat and equally long",
                where=f"{name}, column {need}",
                found=table[-1].shape,
                expected=(table[0].size,),
            )
    return table, table[0].size
