"""The statistical heart of the gate: screen, confirm on fresh seeds, and confirm once more.

It works on tables of numbers alone, so the power study runs exactly what judges a nightly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.mde import Hurdle, required_loss, seen_twice, smallest_seen
from agent_gym.evaluation.gate.paired import (
    BoolArray,
    Bounds,
    IntArray,
    Paired,
    Table,
    holm,
    paired,
)
from agent_gym.evaluation.gate.policy import GatePolicy


class Fresh(Protocol):
    """Plays both sides of some rows on seeds that nobody has seen."""

    def __call__(self, rows: IntArray, n_seeds: IntArray, *, again: bool) -> Table:
        """Return a table of these rows, in their order; a row that failed is NaN throughout.

        Args:
            rows: Rows of the screened table.
            n_seeds: Fresh seeds of each row; shorter rows are filled up with NaN.
            again: False the first time. True asks for seeds that were not used the first time.
        """


@dataclass(slots=True)
class Ruling:
    """What was found for each row; the figures are those of the last stage that it reached.

    ``stage`` is 0 for the screen, 1 for the confirmation, 2 for the second confirmation. ``p`` and
    ``p_holm`` are those of the side to which the mean leans. ``within`` marks rows that
    differ, but not beyond both tolerances, ``failed`` those whose fresh seeds gave fewer than two
    pairs.
    """

    figures: Paired
    stage: IntArray
    tested: BoolArray
    flagged: BoolArray
    worse: BoolArray
    better: BoolArray
    within: BoolArray
    failed: BoolArray
    p: FloatArray
    p_holm: FloatArray
    mde: FloatArray
    required: FloatArray

    @property
    def underpowered(self) -> BoolArray:
        """Return which rows would have missed the loss that they ought to see."""
        return self.mde > self.required * (1.0 + 1e-9)


def decide(
    screen: Table,
    bounds: Bounds,
    fresh: Fresh | None,
    policy: GatePolicy,
    tested: BoolArray | None = None,
    noise: FloatArray | None = None,
) -> Ruling:
    """Judge every row of a screened table.

    A row whose one-sided p-value is at most ``screen_p`` on either side is flagged and played again
    on fresh seeds. It is worse if Holm's p-value over all rows flagged on that side is at most
    ``alpha`` and the mean loss is beyond both tolerances, there and, if the policy says so, on as
    many other fresh seeds again. Better is the same on the other side, with its own ``alpha``.
    Without fresh seeds the table alone decides, by Holm over all rows.

    Args:
        screen: Both sides on the seeds that they share.
        bounds: Directions and tolerances.
        fresh: Plays flagged rows again; None if that is not possible.
        policy: Seeds and error rates.
        tested: Rows that take part; the others get figures and no verdict.
        noise: Standard deviation that the losses of each row usually have, NaN where nobody knows;
            it plans the number of fresh seeds. By default that of the screen.
    """
    first = paired(screen, bounds, "no_loss" if fresh is not None else policy.null)
    rows = np.ones(first.n.size, dtype=np.bool_) if tested is None else tested
    rows = rows & ~first.same
    none = np.zeros_like(rows)
    ruling = Ruling(
        figures=first,
        stage=np.zeros(rows.size, dtype=np.int64),
        tested=rows,
        flagged=none.copy(),
        worse=none.copy(),
        better=none.copy(),
        within=none.copy(),
        failed=none.copy(),
        p=np.where(first.loss >= 0.0, first.p_worse, first.p_better),
        p_holm=np.ones(rows.size),
        mde=np.zeros(rows.size),
        required=required_loss(first.base, first.tolerance, bounds, policy),
    )
    if fresh is None:
        _settle(ruling, first, bounds, np.arange(rows.size), (rows, rows), policy)
    else:
        usual = first.sd if noise is None else np.where(np.isfinite(noise), noise, first.sd)
        _confirm(ruling, bounds, fresh, policy, usual)
    ruling.mde = _detectable(ruling, first, bounds, fresh is not None, policy)
    return ruling


def _confirm(
    ruling: Ruling, bounds: Bounds, fresh: Fresh, policy: GatePolicy, noise: FloatArray
) -> None:
    first = ruling.figures
    down = ruling.tested & (first.p_worse <= policy.screen_p)
    up = ruling.tested & (first.p_better <= policy.screen_p)
    ruling.flagged = down | up
    rows = np.flatnonzero(ruling.flagged)
    if not rows.size:
        return
    family = bounds.counts(ruling.flagged)
    planned = seeds_needed(noise, first.tolerance, ruling.required, family, policy)
    n_seeds = planned[rows]
    played = paired(fresh(rows, n_seeds, again=False), bounds.of(rows), policy.null)
    _enter(ruling, played, rows, stage=1)
    _settle(ruling, played, bounds.of(rows), rows, (down[rows], up[rows]), policy)
    held = (ruling.worse | ruling.better)[rows]
    # Where every fresh seed says the same there is nothing left that luck could explain.
    open_rows = held & ~played.certain
    if not (policy.repeat and open_rows.any()):
        return
    rows, n_seeds = rows[open_rows], n_seeds[open_rows]
    sides = ruling.worse[rows], ruling.better[rows]
    played = paired(fresh(rows, n_seeds, again=True), bounds.of(rows), policy.null)
    _enter(ruling, played, rows, stage=2)
    _settle(ruling, played, bounds.of(rows), rows, sides, policy)


def _enter(ruling: Ruling, played: Paired, rows: IntArray, *, stage: int) -> None:
    """Put the figures of a later stage in place of the earlier ones."""
    merged = {}
    for field in fields(Paired):
        column = getattr(ruling.figures, field.name).copy()
        column[rows] = getattr(played, field.name)
        merged[field.name] = column
    ruling.figures = Paired(**merged)
    ruling.stage[rows] = stage
    ruling.failed[rows] = played.n < 2


def _settle(
    ruling: Ruling,
    played: Paired,
    bounds: Bounds,
    rows: IntArray,
    sides: tuple[BoolArray, BoolArray],
    policy: GatePolicy,
) -> None:
    """Decide the rows of one stage; those that may be worse and better are corrected apart."""
    down, up = sides
    p_worse = holm(played.p_worse, down, bounds.family)
    p_better = holm(played.p_better, up, bounds.family)
    lost, gained = p_worse <= policy.alpha, p_better <= policy.alpha
    ruling.worse[rows] = down & lost & played.worse()
    ruling.better[rows] = up & gained & played.better()
    ruling.within[rows] = (lost & ~played.worse()) | (gained & ~played.better())
    leans = played.loss >= 0.0
    ruling.p[rows] = np.where(leans, played.p_worse, played.p_better)
    ruling.p_holm[rows] = np.where(leans, p_worse, p_better)


def seeds_needed(
    noise: FloatArray,
    tolerance: FloatArray,
    required: FloatArray,
    family: IntArray,
    policy: GatePolicy,
) -> IntArray:
    """Return how many fresh seeds each row needs to see what it ought to see in its family.

    They are ``n_confirm``, or as many multiples of it as the noise asks for, up to ``max_confirm``.
    The noise of the screen says nothing of what fresh seeds will show, so it may choose.
    """
    p = policy.alpha / np.maximum(family, 1)
    # Where no size of loss is required, no number of seeds is better than another.
    needed = np.where(required > 0.0, policy.max_confirm, policy.n_confirm)
    largest = policy.max_confirm - policy.max_confirm % policy.n_confirm
    for n in range(largest, 0, -policy.n_confirm):
        hurdle = Hurdle(np.full(noise.size, n), p, decides=True)
        seen = seen_twice(noise, tolerance, hurdle, policy)
        needed = np.where(seen <= required, n, needed)
    return needed


def _detectable(
    ruling: Ruling, first: Paired, bounds: Bounds, two_stages: bool, policy: GatePolicy
) -> FloatArray:
    """Return the loss that each row's comparison would have seen, with the noise it has shown."""
    figures = ruling.figures
    size = np.ones(figures.n.size)
    if not two_stages:
        together = np.maximum(bounds.counts(ruling.tested), 1)
        alone = Hurdle(first.n, policy.alpha / together, decides=True)
        return smallest_seen(first.sd, first.tolerance, [alone], policy)
    # A row that was not flagged would have been one more in the family, with seeds to its noise.
    family = bounds.counts(ruling.flagged) + ~ruling.flagged
    planned = seeds_needed(first.sd, first.tolerance, ruling.required, family, policy)
    n = np.where(ruling.stage > 0, figures.n, planned)
    hurdles = [
        Hurdle(first.n, size * policy.screen_p, decides=False),
        Hurdle(n, policy.alpha / family, decides=True),
    ]
    if policy.repeat:
        hurdles.append(Hurdle(n, size * policy.alpha, decides=True))
    return smallest_seen(figures.sd, figures.tolerance, hurdles, policy)
