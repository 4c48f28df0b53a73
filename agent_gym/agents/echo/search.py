"""A search in the unit cube that can be kept in a file and goes on to the bit.

It is CMA-ES, with a diagonal covariance in more than ten dimensions. Before every generation the
library's own generator is set by name from the seed tree, so no generator has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from cmaes import CMA, SepCMA
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

LARGEST_FULL = 10  # dimensions up to which the whole covariance is learned
FIRST_STEP = 0.25
_ARRAYS = ("_mean", "_C", "_p_sigma", "_pc", "_funhist_values")


class Search:
    """Looks for the least loss between 0 and 1 in each dimension.

    Example:
        >>> search = Search(2)
        >>> for generation in range(30):
        ...     points = search.ask(Seeds(1).child(generation))
        ...     search.tell(points, ((points - 0.3) ** 2).sum(axis=1))
        >>> search.mean.round(2).tolist()
        [0.3, 0.3]
    """

    def __init__(self, dim: int, size: int = 16, start: FloatArray | None = None) -> None:
        self.dim, self.size = dim, size
        self._generation = 0
        self._begin(np.full(dim, 0.5) if start is None else start)

    def _begin(self, mean: FloatArray) -> None:
        bounds = np.tile([0.0, 1.0], (self.dim, 1))
        inside = np.clip(mean, 0.0, 1.0)
        kind = CMA if self.dim <= LARGEST_FULL else SepCMA
        self._method: Any = kind(
            mean=inside, sigma=FIRST_STEP, bounds=bounds, population_size=self.size, seed=0
        )
        self._method._funhist_values[:] = 0.0  # the library leaves it unset, so bits would differ

    @property
    def diagonal(self) -> bool:
        """Say whether only the diagonal of the covariance is learned."""
        return isinstance(self._method, SepCMA)

    @property
    def generation(self) -> int:
        """Return how many generations have been told."""
        return self._generation

    @property
    def mean(self) -> FloatArray:
        """Return where the search stands."""
        mean: FloatArray = self._method.mean.copy()
        return mean

    def ask(self, seeds: Seeds) -> FloatArray:
        """Return the points to try next, one row each."""
        self._method.reseed_rng(seeds.as_int())
        return np.array([self._method.ask() for _ in range(self.size)])

    def tell(self, points: FloatArray, losses: FloatArray) -> None:
        """Learn from the losses of the points that were asked for."""
        if losses.shape != (self.size,) or not np.isfinite(losses).all():
            raise AgentError(
                "a search needs one finite loss for each point it asked for",
                found=losses.tolist(),
                expected=f"{self.size} numbers",
            )
        pairs = [(point.copy(), float(loss)) for point, loss in zip(points, losses, strict=True)]
        self._method.tell(pairs)
        self._generation += 1
        if self._method.should_stop():  # the landscape moves on, so the search must not stand still
            self._begin(self.mean)
        if not self.diagonal:  # asking whether to stop took the covariance apart; a state that is
            self._method._B = self._method._D = None  # put back does so anew, and bits must agree

    def kept(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the plain values that decide how the search goes on."""
        arrays = {name.strip("_"): getattr(self._method, name).copy() for name in _ARRAYS}
        values = {
            "step": float(self._method._sigma),
            "told": int(self._method.generation),
            "generation": self._generation,
        }
        return arrays, values

    def put_back(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Go on from what ``kept`` returned; the state of another search is refused."""
        self._begin(np.full(self.dim, 0.5))
        for name in _ARRAYS:
            mine, kept = getattr(self._method, name), arrays.get(name.strip("_"))
            if kept is None or kept.shape != mine.shape:
                raise StoreError(
                    "the state is not one of this search",
                    where=name.strip("_"),
                    found=None if kept is None else kept.shape,
                    expected=mine.shape,
                )
            setattr(self._method, name, np.array(kept, dtype=np.float64))
        self._method._sigma = float(values["step"])
        self._method._g = int(values["told"])
        self._generation = int(values["generation"])
