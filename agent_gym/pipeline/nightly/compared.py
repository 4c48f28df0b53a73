"""One metric in several runs, side by side: what differs, and whether the gate would mind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TIES = 1e-9  # a difference of exactly the tolerance is not beyond it


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """A metric in several runs, the first of them the reference.

    Attributes:
        name: ``scenario/metric``.
        direction: Which way is better; None if no report says so.
        values: One a run; None where it has none.
        changes: Difference to the reference, one a run.
        worst: Largest loss relative to the reference over all runs; below 0 all are better.
        tolerated: Difference to the reference up to which the gate calls it the same, by the
            tolerance of the last report; None if no report says so.
    """

    name: str
    direction: str | None
    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]
    worst: float | None
    tolerated: float | None = None

    @property
    def changed(self) -> bool:
        """Return whether any run differs beyond what is tolerated, or lacks the figure."""
        lacking = {value is None for value in self.values}
        return len(lacking) > 1 or any(self.beyond(each, 0.0) for each in self.changes)

    def beyond(self, change: float | None, unknown: float = math.inf) -> bool:
        """Return whether a difference is more than is tolerated.

        Args:
            change: One of ``changes``.
            unknown: What is tolerated where no report says so.
        """
        allowed = unknown if self.tolerated is None else self.tolerated
        return change is not None and abs(change) > allowed * (1.0 + TIES)


def compared(name: str, said: Mapping[str, Any], values: Sequence[float | None]) -> ComparedMetric:
    """Return a metric of several runs, each compared with the first.

    Args:
        name: ``scenario/metric``.
        said: What the last report says of it; may be empty.
        values: Its mean in each run; None where it has none.
    """
    direction = str(said["direction"]) if "direction" in said else None
    base = values[0]
    changes = tuple(None if base is None or each is None else each - base for each in values)
    sign = -1.0 if direction == "up" else 1.0
    losses = [
        sign * change if direction else abs(change) for change in changes[1:] if change is not None
    ]
    worst = max(losses) / (abs(base) if base else 1.0) if losses else None
    allowed = _tolerated(said.get("tolerance"), base)
    return ComparedMetric(name, direction, tuple(values), changes, worst, allowed)


def _tolerated(tolerance: Mapping[str, float] | None, base: float | None) -> float | None:
    """Return what may be lost beside a reference: the larger of both tolerances."""
    if tolerance is None or base is None:
        return None
    return max(tolerance["rel"] * abs(base), tolerance["abs"])
