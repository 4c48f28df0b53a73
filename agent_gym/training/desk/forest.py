"""A gradient-boosted forest as plain arrays: safe to store, quick to ask for one signal.

Scikit-learn grows the trees; here they are only read. The sums are taken in the same order, so the
raw scores agree with the estimator's to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import StoreError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

LEAF = -1
ARRAYS = ("roots", "feature", "threshold", "left", "right", "value", "missing_left")


@door(
    "void(float64[:,::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1],"
    " float64[::1], boolean[::1], float64[::1])"
)
def add_leaves(  # noqa: PLR0913 - a kernel takes its arrays one by one
    rows: FloatArray,
    roots: NDArray[np.int64],
    feature: NDArray[np.int64],
    threshold: FloatArray,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    value: FloatArray,
    missing_left: NDArray[np.bool_],
    out: FloatArray,
) -> None:
    """Add to each row of ``out`` the leaf that the row falls into, tree by tree."""
    for i in range(rows.shape[0]):
        total = out[i]
        for tree in range(roots.size):
            node = roots[tree]
            while left[node] >= 0:
                x = rows[i, feature[node]]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            total += value[node]
        out[i] = total


@dataclass(frozen=True, slots=True)
class Steps:
    """Edges that turn each feature into a few whole numbers, by which the trees are grown.

    The library would look for the same edges itself, by a search for weighted quantiles that takes
    longer than growing the trees.
    """

    edges: tuple[FloatArray, ...]

    @classmethod
    def of(cls, rows: FloatArray, most: int = 64) -> Steps:
        """Return edges at quantiles of the known values of each column."""
        shares = np.linspace(0.0, 1.0, most + 1)[1:-1]
        return cls(tuple(_edges(rows[:, column], shares) for column in range(rows.shape[1])))

    def code(self, rows: FloatArray) -> FloatArray:
        """Return how many edges lie below each value; NaN stays NaN."""
        out = np.empty_like(rows)
        for column, edges in enumerate(self.edges):
            values = rows[:, column]
            out[:, column] = np.where(np.isnan(values), np.nan, np.searchsorted(edges, values))
        return out

    def decoded(self, feature: NDArray[np.int64], threshold: FloatArray) -> FloatArray:
        """Return thresholds in units of the features for those in codes."""
        out = np.full(threshold.size, np.inf)
        for i, (column, code) in enumerate(zip(feature.tolist(), threshold.tolist(), strict=True)):
            edges = self.edges[column]
            if code < edges.size:
                out[i] = edges[int(code)]
        return out


def _edges(values: FloatArray, shares: FloatArray) -> FloatArray:
    known = np.unique(values[~np.isnan(values)])
    if known.size <= shares.size + 1:
        return np.asarray(0.5 * (known[1:] + known[:-1]))
    return np.unique(np.quantile(values[~np.isnan(values)], shares))


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The nodes of all trees in one row of arrays; a leaf has ``left`` of -1."""

    base: float
    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: FloatArray
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: FloatArray
    missing_left: NDArray[np.bool_]

    @classmethod
    def grown(cls, model: Any, steps: Steps) -> Forest:
        """Return the trees of a binary HistGradientBoostingClassifier fitted on codes."""
        trees = [stage[0].nodes for stage in model._predictors]
        sizes = [len(tree) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        nodes = np.concatenate(trees)
        if nodes["is_categorical"].any():
            raise StoreError("a tree splits by category", expected="numbers alone")
        shift = np.repeat(roots, sizes)
        leaf = nodes["is_leaf"].astype(bool)
        feature = np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64)
        return cls(
            base=float(np.ravel(model._baseline_prediction)[0]),
            roots=roots,
            feature=feature,
            threshold=steps.decoded(feature, nodes["num_threshold"].astype(np.float64)),
            left=np.where(leaf, LEAF, nodes["left"].astype(np.int64) + shift),
            right=np.where(leaf, LEAF, nodes["right"].astype(np.int64) + shift),
            value=nodes["value"].astype(np.float64),
            missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        )

    @classmethod
    def read(cls, arrays: Mapping[str, Any], base: float, n_features: int) -> Forest:
        """Return a forest from stored arrays; what could lead the kernel astray is refused."""
        made = cls(base, *(np.ascontiguousarray(arrays[name]) for name in ARRAYS))
        made._check(n_features)
        return made

    def _check(self, n_features: int) -> None:
        n = self.value.size
        inner = self.left != LEAF
        here = np.arange(n)
        sound = (
            all(getattr(self, name).shape == (n,) for name in ARRAYS[1:])
            and self.roots.ndim == 1
            and bool(((self.roots >= 0) & (self.roots < n)).all())
            # Children stand behind their parent, so that no walk can go on for ever.
            and bool(((self.left[inner] > here[inner]) & (self.left[inner] < n)).all())
            and bool(((self.right[inner] > here[inner]) & (self.right[inner] < n)).all())
            and bool(((self.feature[inner] >= 0) & (self.feature[inner] < n_features)).all())
            and bool(np.isfinite(self.value).all())
        )
        if not sound:
            raise StoreError("the stored trees do not hang together", expected="trees as written")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for storing."""
        return {name: getattr(self, name) for name in ARRAYS}

    def raw(self, rows: FloatArray) -> FloatArray:
        """Return the log odds before calibration, one a row; NaN means missing."""
        out = np.full(len(rows), self.base)
        add_leaves(
            np.ascontiguousarray(rows, dtype=np.float64),
            self.roots,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.value,
            self.missing_left,
            out,
        )
        return out
