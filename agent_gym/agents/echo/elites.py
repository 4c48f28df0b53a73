"""MAP-Elites: the best echo of every kind of behaviour, in an archive that can be kept.

A kind is a cell of turnover, mean exposure and likeness to momentum. The market moves on, so every
generation judges the archive anew beside its children: an old score counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import GridArchive

from agent_gym.core.errors import AgentError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

CELLS = (4, 4, 4)
RANGES = ((0.0, 0.5), (-1.0, 1.0), (-1.0, 1.0))  # of the measures; what lies outside is at the rim
CHILD_STEP = 0.1


class Elites:
    """Looks for the least loss of every kind between 0 and 1 in each dimension.

    Example:
        >>> elites = Elites(1, size=8)
        >>> for generation in range(20):
        ...     points = elites.ask(Seeds(1).child(generation))
        ...     kinds = np.column_stack([0.0 * points, 2.0 * points - 1.0, 0.0 * points])
        ...     elites.tell(points, (points[:, 0] - 0.3) ** 2, kinds)
        >>> elites.points.round(1).ravel().tolist()
        [0.2, 0.3, 0.5, 0.8]
    """

    def __init__(self, dim: int, size: int = 16) -> None:
        self.dim, self.size = dim, size
        self.generation = 0
        self._archive = self._empty()
        self._points: FloatArray = np.empty((0, dim))

    def _empty(self) -> Any:
        return GridArchive(solution_dim=self.dim, dims=CELLS, ranges=RANGES, seed=0)

    @property
    def points(self) -> FloatArray:
        """Return the best point of every kind that was found, in the order of the kinds."""
        return self._points

    def ask(self, seeds: Seeds) -> FloatArray:
        """Return the archive and its children; at first, points anywhere."""
        dice = seeds.rng()
        anywhere = dice.random((self.size, self.dim))
        if len(self._points) == 0:
            return anywhere
        parents = self._points[dice.integers(len(self._points), size=self.size)]
        moved = parents + CHILD_STEP * dice.standard_normal(parents.shape)
        children = np.abs(np.mod(moved + 1.0, 2.0) - 1.0)  # folded back at 0 and 1
        children[0] = anywhere[0]  # one child is a stranger, or an empty kind stays empty
        return np.vstack([self._points, children])

    def tell(self, points: FloatArray, losses: FloatArray, kinds: FloatArray) -> None:
        """Fill the archive anew from the losses and measures of points."""
        if losses.shape != (len(points),) or not np.isfinite(losses).all():
            raise AgentError(
                "an archive needs one finite loss for each point",
                found=losses.tolist(),
                expected=f"{len(points)} numbers",
            )
        self._archive = self._empty()
        self._archive.add(points, -losses, kinds)
        found = self._archive.data(["index", "solution"])
        order = np.argsort(found["index"], kind="stable")
        self._points = np.array(found["solution"][order], dtype=np.float64)
        self.generation += 1

    def kept(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the plain values that decide how the search goes on."""
        return {"points": self._points.copy()}, {"generation": self.generation}

    def put_back(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Go on from what ``kept`` returned; the state of another search is refused."""
        points = arrays.get("points")
        if points is None or points.ndim != 2 or points.shape[1] != self.dim:
            raise StoreError(
                "the state is not one of this archive",
                where="points",
                found=None if points is None else points.shape,
                expected=f"(any, {self.dim})",
            )
        self._points = np.array(points, dtype=np.float64)
        self.generation = int(values["generation"])
