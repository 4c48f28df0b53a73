"""The feature table: values, and which of them are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown
from agent_gym.core.types import FloatArray

KNOWN_SUFFIX = "_known"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """One row a bar, one column a feature; read-only.

    ``mask`` is True where a value is known; elsewhere ``values`` is NaN, never 0.
    """

    names: tuple[str, ...]
    values: FloatArray
    mask: NDArray[np.bool_]

    def __post_init__(self) -> None:
        expected = (self.values.shape[0], len(self.names))
        if self.values.shape != expected or self.mask.shape != expected:
            raise ConfigError(
                "a feature table needs one column a name",
                found=(self.values.shape, self.mask.shape),
                expected=expected,
            )
        self.values.setflags(write=False)
        self.mask.setflags(write=False)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def column(self, name: str) -> FloatArray:
        """Return the values of one feature, NaN where unknown."""
        if name not in self.names:
            raise unknown("feature", name, self.names)
        values: FloatArray = self.values[:, self.names.index(name)]
        return values

    def observations(self, dtype: DTypeLike = np.float32) -> tuple[tuple[str, ...], NDArray[Any]]:
        """Return names and a matrix for a learner: values (0 where unknown), then the mask as 0/1.

        The ``<name>_known`` columns let a learner tell a 0 that was measured from one that was not.
        """
        width = len(self.names)
        matrix = np.zeros((len(self), 2 * width), dtype=dtype)
        np.copyto(matrix[:, :width], self.values, where=self.mask, casting="same_kind")
        matrix[:, width:] = self.mask
        return self.names + tuple(name + KNOWN_SUFFIX for name in self.names), matrix
