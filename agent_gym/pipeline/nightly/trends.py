"""Metrics that moved: how far the last night lies from the nights before it, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.pipeline.nightly.history import RunRow

MOST, LEAST_NIGHTS = 6, 5
NORMAL = 1.4826  # what makes the median distance from the median a standard deviation


@dataclass(frozen=True, slots=True)
class Trend:
    """A metric over the last nights.

    Attributes:
        name: ``scenario/metric``.
        direction: Which way is better; None if no report says so.
        values: Of each night that has it, oldest first.
        usual: Median of all nights but the last.
        loss: How far the last one is worse than usual, in usual spreads; below 0 it is better.
    """

    name: str
    direction: str | None
    values: tuple[float, ...]
    usual: float
    loss: float


def trends(
    nights: Sequence[RunRow], directions: Mapping[str, str], most: int = MOST
) -> tuple[Trend, ...]:
    """Return the metrics of the last night that are worst beside the nights before it.

    Args:
        nights: Runs of one suite, oldest first.
        directions: Which way is better by metric (``RunHistory.directions``).
        most: How many at most.
    """
    if not nights:
        return ()
    found = []
    for name in nights[-1].values:
        values = [night.values[name] for night in nights if name in night.values]
        if len(values) > LEAST_NIGHTS:
            found.append(_trend(name, directions.get(name), values))
    found.sort(key=lambda each: (-each.loss, each.name))
    return tuple(found[:most])


def _trend(name: str, direction: str | None, values: Sequence[float]) -> Trend:
    past = np.array(values[:-1])
    usual = float(np.median(past))
    spread = NORMAL * float(np.median(np.abs(past - usual))) or float(past.std()) or 1.0
    moved = (values[-1] - usual) / spread
    loss = abs(moved) if direction is None else -moved if direction == "up" else moved
    return Trend(name, direction, tuple(values), usual, loss)
