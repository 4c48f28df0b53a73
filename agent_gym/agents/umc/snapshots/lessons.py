"""What a policy was taught, snapshot by snapshot: each counts once, however often it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from agent_gym.agents.umc.linear import Sums
from agent_gym.agents.umc.snapshots.law import KINDS, Kind
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

PARTS = tuple(part.name for part in fields(Sums))


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """The sums of each snapshot, for each kind of market.

    Attributes:
        snapshots: Ids, sorted: the order in which sums are added, so that bits are the same.
        sums: Of each kind, with one row a snapshot.
    """

    snapshots: tuple[str, ...]
    sums: Mapping[Kind, Sums]

    @classmethod
    def of(cls, taught: Mapping[str, Mapping[Kind, Sums]], inputs: int) -> Lessons:
        """Put the lessons of several snapshots together."""
        names = tuple(sorted(taught))
        return cls(
            names, {kind: _stacked([taught[n][kind] for n in names], inputs) for kind in KINDS}
        )

    @classmethod
    def none(cls, inputs: int) -> Lessons:
        """Return what was taught before the first lesson."""
        return cls.of({}, inputs)

    def with_newer(self, newer: Lessons) -> Lessons:
        """Return both; what is told anew about a snapshot takes the place of what was told."""
        inputs = self.sums[KINDS[0]].cross.shape[-1]
        return Lessons.of({**self._by_snapshot(), **newer._by_snapshot()}, inputs)

    def arrays(self) -> dict[str, FloatArray]:
        """Return the sums as named arrays."""
        return {
            f"{kind}.{part}": getattr(self.sums[kind], part) for kind in KINDS for part in PARTS
        }

    @classmethod
    def restored(
        cls, snapshots: tuple[str, ...], arrays: Mapping[str, FloatArray], inputs: int
    ) -> Lessons:
        """Return the lessons that arrays() was taken of."""
        n = len(snapshots)
        shapes = {
            "inputs": (n, inputs, inputs),
            "cross": (n, inputs),
            "squares": (n,),
            "rows": (n,),
        }
        expected = {f"{kind}.{part}": shapes[part] for kind in KINDS for part in PARTS}
        found = {name: array.shape for name, array in arrays.items()}
        if found != expected or list(snapshots) != sorted(set(snapshots)):
            raise DataError("the lessons do not fit together", found=found, expected=expected)
        if bad := [name for name, array in arrays.items() if not np.isfinite(array).all()]:
            raise DataError("a lesson is not a number", found=", ".join(bad))
        sums = {kind: Sums(*(arrays[f"{kind}.{part}"] for part in PARTS)) for kind in KINDS}
        return cls(snapshots, sums)

    def _by_snapshot(self) -> dict[str, dict[Kind, Sums]]:
        return {
            name: {
                kind: Sums(*(getattr(self.sums[kind], part)[at] for part in PARTS))
                for kind in KINDS
            }
            for at, name in enumerate(self.snapshots)
        }


def _stacked(sums: list[Sums], inputs: int) -> Sums:
    if not sums:
        empty = np.zeros((0, inputs))
        return Sums(np.zeros((0, inputs, inputs)), empty, np.zeros(0), np.zeros(0))
    return Sums(*(np.stack([getattr(one, part) for one in sums]) for part in PARTS))
