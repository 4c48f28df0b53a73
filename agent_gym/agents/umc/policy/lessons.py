"""What the actor learns from, as arrays; nothing in them can be changed by learning."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

WHERE = "umc/policy"
LEAST_LEFT = 0.01
"""A bar that would leave less of the equity than that counts as leaving that."""


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """One row a bar, all of it but the return ahead known at the close of that bar.

    Attributes:
        states: What the actor sees besides its own position, (bar, column).
        worth: Nats of holding each level from now on, before the cost of getting there.
        unit_cost: Nats that one unit of traded position costs.
        returns_ahead: Simple return of the next bar; NaN for the last.
        cost: Of a unit of trade, as a fraction.
        levels: Positions as fractions of equity, rising; one of them is 0.

    Raises:
        DataError: If shapes do not fit together or a number is not what it should be.
    """

    states: FloatArray
    worth: FloatArray
    unit_cost: FloatArray
    returns_ahead: FloatArray
    cost: float
    levels: FloatArray

    def __post_init__(self) -> None:
        check_levels(self.levels)
        bars = len(self)
        check_shape("states", self.states, (bars, self.states.shape[-1] if self.states.ndim else 0))
        check_shape("worth", self.worth, (bars, self.levels.size))
        check_shape("unit_cost", self.unit_cost, (bars,))
        known = np.isfinite(self.returns_ahead)
        known[-1:] = True
        for what, right in (
            ("a state is not a number", np.isfinite(self.states).all(axis=1)),
            ("the worth of a level is not a number", np.isfinite(self.worth).all(axis=1)),
            ("a cost is below 0", np.isfinite(self.unit_cost) & (self.unit_cost >= 0.0)),
            ("a return ahead is not a number", known),
        ):
            if not right.all():
                raise DataError(what, where=f"{WHERE}, bar {int(np.argmin(right))} of the lessons")
        if not (math.isfinite(self.cost) and 0.0 <= self.cost < 1.0):
            raise DataError(
                "the cost of a trade is no fraction",
                where=WHERE,
                found=self.cost,
                expected="at least 0 and below 1",
            )

    def __len__(self) -> int:
        return int(self.returns_ahead.size)

    def distances(self) -> FloatArray:
        """Return how far each level is from each, (held, level)."""
        apart: FloatArray = np.abs(self.levels - self.levels[:, None])
        return apart

    def free_energy(self) -> FloatArray:
        """Return expected free energy of each level for each level held, (bar, held, level).

        It is counted from the most that any level is worth at that bar; the difference between
        levels is all that a decision can change.
        """
        lost = self.worth.max(axis=1, keepdims=True) - self.worth
        total: FloatArray = self.unit_cost[:, None, None] * self.distances() + lost[:, None, :]
        return total

    def growth(self) -> FloatArray:
        """Return realised log growth of each level for each level held, 0 where not known yet."""
        ahead = np.nan_to_num(self.returns_ahead, nan=0.0, posinf=0.0, neginf=0.0)
        left = 1.0 + ahead[:, None, None] * self.levels - self.cost * self.distances()
        grown: FloatArray = np.log(np.maximum(left, LEAST_LEFT))
        return grown

    def growth_of(self, targets: FloatArray) -> FloatArray:
        """Return the realised log growth of each bar for one path of positions, from none."""
        traded = np.abs(np.diff(targets, prepend=0.0))
        ahead = np.nan_to_num(self.returns_ahead, nan=0.0, posinf=0.0, neginf=0.0)
        left = 1.0 + targets * ahead - self.cost * traded
        grown: FloatArray = np.log(np.maximum(left, LEAST_LEFT))
        return grown

    def arrays(self) -> list[FloatArray]:
        """Return all numbers, in the order of the fields."""
        return [np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)]


def check_levels(levels: FloatArray) -> None:
    """Refuse levels that do not rise, or that have no way out of the market."""
    right = (
        levels.ndim == 1
        and levels.size >= 2
        and bool(np.isfinite(levels).all())
        and bool((np.diff(levels) > 0.0).all())
        and 0.0 in levels
    )
    if not right:
        raise DataError(
            "these are no levels to choose from",
            where=WHERE,
            found=levels.tolist(),
            expected="at least two rising positions, one of them 0",
        )


def check_shape(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise DataError(
            "an array has another shape than the rest",
            where=f"{WHERE}, {name}",
            found=f"shape {array.shape}",
            expected=f"shape {shape}",
        )
