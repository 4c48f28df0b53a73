"""A figure that a scenario measures, and how much worse it may get before that counts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config

LARGEST_REL = 1.0
Direction: TypeAlias = Literal["up", "down"]


class Tolerance(Config):
    """A loss counts only beyond both: the share of the baseline, and the absolute amount.

    A suite that asks for a share above ``LARGEST_REL`` is refused: a figure could vanish unseen.
    """

    rel: float = Field(default=0.05, ge=0.0)
    abs: float = Field(default=0.0, ge=0.0)


class Metric(Config):
    """One figure of a scenario.

    ``direction`` says which way is better. ``must_be_zero`` marks a figure of which a single event
    is a failure. ``floor`` is the size of the baseline below which the relative tolerance says
    nothing and only the absolute one counts.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    unit: str
    direction: Direction
    meaning: str
    tolerance: Tolerance = Tolerance()
    must_be_zero: bool = False
    gates: bool = True
    floor: float = Field(default=0.0, ge=0.0)

    @property
    def sign(self) -> float:
        """Return +1 if more is better, -1 if less is."""
        return 1.0 if self.direction == "up" else -1.0
