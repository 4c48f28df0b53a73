"""Arrays whose rows carry where they came from, through slices, joins and arithmetic.

A tagged array never turns into a plain one by accident: NumPy is refused, and a plain array cannot
be mixed in, for nobody knows where its rows came from. Whoever takes ``x`` takes it knowingly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate.provenance import ProvenanceError, Source
from agent_gym.agents.gate.tags import RowIndex, Tags, immutable

Number: TypeAlias = int | float
Made: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
NUMERIC = "biuf"


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Values and the provenance of each row; neither can be changed.

    Attributes:
        x: The values, rows first; memory that cannot be written to.
        prov: One tag a row.
    """

    # With None here NumPy's operators leave the work to ours, which refuse plain arrays.
    __array_ufunc__ = None

    x: NDArray[Any]
    prov: Tags

    def __post_init__(self) -> None:
        values = np.asarray(self.x)
        if values.dtype.kind not in NUMERIC or values.ndim < 1:
            raise ProvenanceError("tagged values are rows of numbers", found=values.dtype)
        if len(values) != len(self.prov):
            raise ProvenanceError(
                "every row has a tag", found=f"{len(self.prov)} tags", expected=len(values)
            )
        object.__setattr__(self, "x", immutable(values))

    def __len__(self) -> int:
        return len(self.prov)

    def __getitem__(self, rows: int | RowIndex) -> Tagged:
        """Return some rows; a single one, too, stays a row."""
        if isinstance(rows, int):
            rows = np.array([range(len(self))[rows]])
        return Tagged(self.x[rows], self.prov[rows])

    def each(self, make: Made) -> Tagged:
        """Return what is made of every row by itself, such as a logarithm or one column.

        Example:
            >>> seen = Tagged(np.ones((2, 3)), Tags.of(Source.ECHO, "crowd", [0, 1]))
            >>> seen.each(lambda x: x[:, 0] + 1).prov.counts()
            {<Source.ECHO: 3>: 2}
        """
        return Tagged(make(self.x), self.prov)

    def through(self, make: Made) -> Tagged:
        """Return what is made of every row and the rows before it, such as an average that runs."""
        return Tagged(make(self.x), self.prov.running())

    def fold(self, make: Made) -> Tagged:
        """Return what is made of all rows together, such as a mean, as one row."""
        return Tagged(np.asarray(make(self.x))[None], self.prov.worst())

    def at_least(self, source: Source) -> Tagged:
        """Return the same values as something that this source made."""
        return Tagged(self.x, self.prov.at_least(source))

    def __add__(self, other: Tagged | Number) -> Tagged:
        return self._with(other, operator.add)

    def __radd__(self, other: Number) -> Tagged:
        return self._with(other, operator.add)

    def __sub__(self, other: Tagged | Number) -> Tagged:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Number) -> Tagged:
        return self._with(other, lambda own, left: left - own)

    def __mul__(self, other: Tagged | Number) -> Tagged:
        return self._with(other, operator.mul)

    def __rmul__(self, other: Number) -> Tagged:
        return self._with(other, operator.mul)

    def __truediv__(self, other: Tagged | Number) -> Tagged:
        return self._with(other, operator.truediv)

    def __rtruediv__(self, other: Number) -> Tagged:
        return self._with(other, lambda own, left: left / own)

    def __neg__(self) -> Tagged:
        return Tagged(-self.x, self.prov)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise ProvenanceError(
            "a tagged array does not become a plain one by itself",
            remedy="Let the gate make a batch, or take x knowingly",
        )

    def _with(self, other: object, apply: Callable[[Any, Any], Any]) -> Tagged:
        if isinstance(other, Tagged):
            if other.x.ndim != self.x.ndim:
                raise ProvenanceError(
                    "rows of unlike shapes", found=f"{self.x.shape} and {other.x.shape}"
                )
            tags = self.prov.combine(other.prov)
            return Tagged(apply(self.x, other.x), tags)
        if isinstance(other, int | float | np.integer | np.floating):
            return Tagged(apply(self.x, other), self.prov)
        raise ProvenanceError(
            "nobody knows where these values came from",
            found=type(other).__name__,
            expected="a number or a Tagged",
            remedy="Tag them where they are made",
        )


def concat(parts: Sequence[Tagged]) -> Tagged:
    """Return the rows of all parts, one after another."""
    return Tagged(
        np.concatenate([part.x for part in parts]), Tags.concat([part.prov for part in parts])
    )


def aligned_tags(columns: Mapping[str, Tagged]) -> Tags:
    """Return the tags of rows that are spread over columns: the worst of each row."""
    if not columns:
        raise ProvenanceError("there are no columns")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ProvenanceError("columns have as many rows as each other", found=lengths)
    return reduce(Tags.combine, (column.prov for column in columns.values()))
