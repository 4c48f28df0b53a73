"""Cycles of macrostates, each with the chance that a series without any order would show it.

A cycle is a closed walk in the order of confirmed visits. Its share of all visits is compared with
that in surrogates of the same rows, seen through the same filter, so whatever the filter makes of
noise it makes of both. See ``surprise`` for what is made of there being many cycles.

Rows in blocks are an honest comparison where neighbouring rows share nothing but their state. Sums
over many bars do share bars: they wander instead of jumping, and blocks break that, so even those
of a walk without any order go to and fro more than their surrogates. Whoever has such inputs
resamples what they were made of and makes them anew, and hands that over as ``redraw``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.macro.config import CycleConfig
from agent_gym.agents.umc.macro.hmm import follow
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.agents.umc.macro.resampling import resampled
from agent_gym.agents.umc.macro.surprise import Walks, surprises
from agent_gym.agents.umc.macro.visits import Visits, closed_walks, visits_in
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

Redraw = Callable[[np.random.Generator], FloatArray]
"""Draws one table as it would be without any order, with as many rows as the series."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A closed walk and how surprising it is.

    Attributes:
        states: Numbers of its states, in the order of the walk, the smallest column first.
        count: Walks that closed in it, from whichever of its states.
        share: The same over all visits.
        p_value: Chance of such a share in a surrogate; None if it was not tested.
        adjusted_p_value: Chance that any cycle of a surrogate stands out as much; None likewise.
        significant: Whether that is no more than the significance asked for.
    """

    states: tuple[int, ...]
    count: int
    share: float
    p_value: float | None
    adjusted_p_value: float | None
    significant: bool


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What the order of the macrostates was.

    Attributes:
        visits: Confirmed visits.
        dwell_bars: Mean confirmed bars of a visit by state number, None for a state never visited.
        transition_entropy: Uncertainty of the next state at the end of a visit, in nats; None
            without two visits.
        cycles: Every cycle found, the most frequent first.
        tested: How many of them were frequent enough to be tested.
        surrogates: Resampled series they were held against.
        block_bars: Mean block of these; None if they were redrawn by the caller.
    """

    visits: int
    dwell_bars: dict[int, float | None]
    transition_entropy: float | None
    cycles: tuple[Cycle, ...]
    tested: int
    surrogates: int
    block_bars: float | None

    @property
    def significant(self) -> tuple[Cycle, ...]:
        """The cycles that are more than chance."""
        return tuple(cycle for cycle in self.cycles if cycle.significant)


def report_cycles(
    model: Hmm,
    ids: tuple[int, ...],
    rows: FloatArray,
    config: CycleConfig,
    seeds: Seeds,
    redraw: Redraw | None = None,
) -> CycleReport:
    """Return the cycles in rows, and how likely surrogates would show them."""
    beliefs, _ = model.filtered(rows, model.shares())
    visits = visits_in(beliefs, config.confirm_probability, config.confirm_bars)
    found = sorted(closed_walks(visits).items(), key=lambda item: (-item[1], item[0]))
    if redraw is None:
        block: float | None = _block(visits, config)
        weighed = _blocks(model, rows, _block(visits, config))
    else:
        block, weighed = None, _redrawn(model, rows, redraw)
    others = list(_surrogates(model, weighed, len(rows), config, seeds)) if found else []
    told = surprises(Walks(Counter(dict(found)), len(visits)), others)
    cycles = []
    for states, n in found:
        told_of = told[states] if n >= config.least_count else None
        p = None if told_of is None else told_of.p_value
        adjusted = None if told_of is None else told_of.adjusted_p_value
        good = adjusted is not None and adjusted <= config.significance
        names = tuple(ids[k] for k in states)
        cycles.append(Cycle(names, n, n / len(visits), p, adjusted, good))
    return CycleReport(
        visits=len(visits),
        dwell_bars={number: _dwell(visits, k) for k, number in enumerate(ids)},
        transition_entropy=transition_entropy(visits, model.states),
        cycles=tuple(cycles),
        tested=sum(n >= config.least_count for _, n in found),
        surrogates=config.surrogates,
        block_bars=block,
    )


def transition_entropy(visits: Visits, states: int) -> float | None:
    """Return the mean uncertainty of the next state when a visit ends, in nats.

    Example:
        >>> order = Visits(np.array([0, 1, 0, 2, 0, 1, 0, 2]), np.ones(8, np.int64))
        >>> round(transition_entropy(order, 3), 4)  # after 0 either, after the others always 0
        0.3961
    """
    if len(visits) < 2:
        return None
    moves = np.zeros((states, states))
    np.add.at(moves, (visits.states[:-1], visits.states[1:]), 1.0)
    leaving = moves.sum(axis=1, keepdims=True)
    chances = np.divide(moves, leaving, out=np.zeros_like(moves), where=leaving > 0.0)
    logs = np.log(np.where(chances > 0.0, chances, 1.0))
    return max(0.0, float(-(moves * logs).sum() / moves.sum()))


def _dwell(visits: Visits, state: int) -> float | None:
    bars = visits.bars[visits.states == state]
    return float(bars.mean()) if bars.size else None


def _block(visits: Visits, config: CycleConfig) -> float:
    if config.block_bars is not None:
        return config.block_bars
    return max(1.0, float(visits.bars.mean())) if len(visits) else 1.0


def _blocks(model: Hmm, rows: FloatArray, block: float) -> Redraw:
    """Return what draws likelihoods of rows in blocks."""
    likelihoods, _ = model.weighed(rows)  # rows only change places, so each is weighed once
    return lambda rng: likelihoods[resampled(len(rows), block, rng)]


def _redrawn(model: Hmm, rows: FloatArray, redraw: Redraw) -> Redraw:
    """Return what draws likelihoods of tables that the caller makes."""

    def weighed(rng: np.random.Generator) -> FloatArray:
        table = redraw(rng)
        if table.shape != rows.shape:
            raise DataError(
                "a redrawn table has another shape",
                where="agents.umc.macro",
                found=table.shape,
                expected=rows.shape,
                remedy="Shares of visits can be compared only in series of one length",
            )
        return model.weighed(table)[0]

    return weighed


def _surrogates(
    model: Hmm, weighed: Redraw, rows: int, config: CycleConfig, seeds: Seeds
) -> Iterator[Walks]:
    rng = seeds.child("cycle surrogates").rng()
    peaks, scores = np.zeros(rows), np.empty(rows)  # they go into the scores alone: nobody asks
    for _ in range(config.surrogates):
        likelihoods = weighed(rng)
        beliefs = np.empty_like(likelihoods)
        follow(likelihoods, peaks, model.transition, model.shares(), beliefs, scores)
        visits = visits_in(beliefs, config.confirm_probability, config.confirm_bars)
        yield Walks(closed_walks(visits), len(visits))
