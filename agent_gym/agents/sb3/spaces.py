"""What a model sees and does, as plain values that fit into a card."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config


class ObservationSpec(Config):
    """A row of numbers; its bounds decide nothing, so they are not kept."""

    width: int
    dtype: Literal["float32", "float64"]

    def space(self) -> spaces.Box:
        """Return it as Gymnasium says it."""
        return spaces.Box(-np.inf, np.inf, (self.width,), np.dtype(self.dtype).type)


class ActionsSpec(Config):
    """Pick one of ``n``, or give numbers between the bounds."""

    n: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    dtype: Literal["float32", "float64"] = "float32"

    def space(self) -> spaces.Space[Any]:
        """Return it as Gymnasium says it."""
        if self.n is not None:
            return spaces.Discrete(self.n)
        low, high = self.bounds()
        return spaces.Box(low, high, dtype=np.dtype(self.dtype).type)

    def bounds(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the least and the largest of each number."""
        return np.array(self.low, self.dtype), np.array(self.high, self.dtype)


def observation_spec(space: spaces.Space[Any]) -> ObservationSpec:
    """Return what a model sees."""
    check_observations(space)
    return ObservationSpec.model_validate(
        {"width": (space.shape or (0,))[0], "dtype": _type(space)}
    )


def actions_spec(space: spaces.Space[Any]) -> ActionsSpec:
    """Return what a model does."""
    if isinstance(space, spaces.Discrete) and space.start == 0:
        return ActionsSpec(n=int(space.n))
    if _is_row(space) and isinstance(space, spaces.Box) and space.is_bounded():
        fields = {"low": space.low.tolist(), "high": space.high.tolist(), "dtype": _type(space)}
        return ActionsSpec.model_validate(fields)
    raise ConfigError(
        "no algorithm here acts in such a space",
        where="action space",
        found=space,
        expected="Discrete from 0, or a flat Box of floats with bounds",
        remedy="Wrap the environment so that its actions are of that kind",
    )


def check_observations(space: spaces.Space[Any]) -> None:
    """Refuse observations that are not one row of floats."""
    if not _is_row(space):
        raise ConfigError(
            "observations must be one row of floats",
            where="observation space",
            found=space,
            expected="a flat Box of float32 or float64",
            remedy="Wrap the environment, for instance with gymnasium.wrappers.FlattenObservation",
        )


def _is_row(space: spaces.Space[Any]) -> bool:
    return (
        isinstance(space, spaces.Box)
        and len(space.shape) == 1
        and _type(space) in ("float32", "float64")
    )


def _type(space: spaces.Space[Any]) -> str:
    return str(np.dtype(space.dtype))
