"""What going on exactly where one stopped needs of a vector environment.

A state is plain: arrays for an npz file and values for a JSON file, nothing that would have to be
unpickled. Whole numbers may be larger than 64 bits, as the states of generators are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError, StoreError

ARRAY = "array"


class EnvState(NamedTuple):
    """Everything that decides how a vector environment goes on; ``values`` are JSON."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


@runtime_checkable
class ExactEnv(Protocol):
    """A vector environment that another one of the same recipe can take over from, to the bit."""

    def get_state(self) -> EnvState: ...
    def set_state(self, state: EnvState) -> None: ...


def exact_env(env: object) -> ExactEnv:
    """Return the environment below all wrappers, or say why its state cannot be kept."""
    base = getattr(env, "unwrapped", env)
    if isinstance(base, ExactEnv):
        return base
    raise ConfigError(
        "a run in this environment cannot go on exactly where it stopped",
        found=type(base).__name__,
        expected="an environment whose state can be kept",
        remedy="Use backend: gymnasium, or begin the run anew",
    )


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator as JSON.

    Example:
        >>> from agent_gym.core.seeds import Seeds
        >>> rng = Seeds(7).rng()
        >>> kept, draw = generator_state(rng), rng.random()
        >>> set_generator_state(rng, kept)
        >>> rng.random() == draw
        True
    """
    state: dict[str, Any] = _plain(rng.bit_generator.state)
    return state


def set_generator_state(rng: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Put a generator back to a state that ``generator_state`` returned."""
    known, kept = type(rng.bit_generator).__name__, state.get("bit_generator")
    if known != kept:
        raise StoreError(
            "the state is that of another kind of generator", found=kept, expected=known
        )
    rng.bit_generator.state = _whole(state)


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays are equal to the bit, so that NaN equals NaN."""
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return {ARRAY: value.tolist(), "dtype": value.dtype.name}
    return value.item() if isinstance(value, np.generic) else value


def _whole(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if ARRAY in value:
        return np.array(value[ARRAY], dtype=value["dtype"])
    return {name: _whole(part) for name, part in value.items()}
