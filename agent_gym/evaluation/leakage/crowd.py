"""Others that live beside a learner and make records of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from agent_gym.agents.gate import Source, Tagged, Tags
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

CLOSE, MARKER = "close", "marker"
MARKER_CHANCE = 0.1
PLANTED_DEVIATIONS = 3.0
FOLLOWING = 0.2

Columns: TypeAlias = Mapping[str, Tagged]
# Is shown what was met so far, a number of bars and its own seeds; returns as many bars that go on
# from there, with the same columns, every row tagged as an echo.
EchoSource: TypeAlias = Callable[[Columns, int, Seeds], Columns]


def draw_marker(count: int, seeds: Seeds) -> FloatArray:
    """Return a mark on every tenth bar or so, as a column of mean 0 and deviation 1."""
    marked = seeds.child("marker").rng().random(count) < MARKER_CHANCE
    spread = np.sqrt(MARKER_CHANCE * (1.0 - MARKER_CHANCE))
    column: FloatArray = (marked - MARKER_CHANCE) / spread
    return column


def simple_crowd(seen: Columns, count: int, seeds: Seeds) -> Columns:
    """Trade on from the last close like a crowd that follows its own last move."""
    close = seen[CLOSE].x
    deviation = float(np.std(np.diff(np.log(close))))
    news = deviation * seeds.child("news").rng().standard_normal(count)
    moves = np.empty(count)
    last = 0.0
    for t in range(count):
        moves[t] = last = FOLLOWING * last + news[t]
    tags = Tags.of(Source.ECHO, "crowd", np.arange(count), seen[CLOSE].prov[-1].digest)
    return {
        CLOSE: Tagged(close[-1] * np.exp(np.cumsum(moves)), tags),
        MARKER: Tagged(draw_marker(count, seeds), tags),
    }


def planted(source: EchoSource) -> EchoSource:
    """Return the same crowd with a pattern that the world does not have.

    After every mark the close rises by three deviations. A model that ever saw it believes in it.
    """

    def with_pattern(seen: Columns, count: int, seeds: Seeds) -> Columns:
        columns = source(seen, count, seeds)
        moves = np.diff(np.log(columns[CLOSE].x))
        moves[columns[MARKER].x[:-1] > 0.0] = PLANTED_DEVIATIONS * float(np.std(moves))

        def rebuilt(close: FloatArray) -> FloatArray:
            path: FloatArray = close[0] * np.exp(np.append(0.0, np.cumsum(moves)))
            return path

        return {**columns, CLOSE: columns[CLOSE].through(rebuilt)}

    return with_pattern
