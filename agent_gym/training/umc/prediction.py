"""UMC learns from recorded snapshots: what was shown at a tick, and how the market moved then.

Every trajectory of a snapshot shows the same perpetuals, and the same questions but for what its
own trades did to their prices (at most a twentieth of a nat). So the trajectories of a snapshot are
averaged, which takes their own trades out, and the snapshot counts once, however often it was
played. Moves of several ticks overlap and news last, so a row counts as a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    PrimaryBatch,
    Source,
    Tagged,
    Tags,
    concat,
)
from agent_gym.agents.neural.layout import FeatureLayout, PolicyInputs
from agent_gym.agents.umc.linear import Sums
from agent_gym.agents.umc.snapshots.law import KINDS, Kind
from agent_gym.agents.umc.snapshots.lessons import Lessons
from agent_gym.agents.umc.snapshots.policy import MarketConfig, UMCMarketPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.grpo.batch import RolloutBatch

SHOWN = ("perpetual", "open", "price", "move")
INPUTS, OUTCOMES = "inputs", "outcomes"


@dataclass(frozen=True, slots=True)
class Stretch:
    """One market of one snapshot, as long as it was open: what was shown, and the move after it."""

    snapshot: str
    kind: Kind
    inputs: Tagged
    outcomes: Tagged


def lessons_of(
    batch: RolloutBatch,
    snapshots: Sequence[str],
    config: MarketConfig,
    shuffle: Seeds | None = None,
) -> Lessons:
    """Return what a batch teaches about each of its snapshots.

    Args:
        batch: Recorded trajectories.
        snapshots: The snapshot of each of them.
        config: What the laws look at, and how far ahead.
        shuffle: A control: where it is drawn whose moves each market gets in place of its own.
    """
    found = list(_stretches(batch, snapshots, config))
    names = sorted({one.snapshot for one in found})
    gate, each = AsymmetricGate(GateConfig()), 1.0 / config.memory_ticks
    taught: dict[str, dict[Kind, Sums]] = {name: {} for name in names}
    for kind in KINDS:
        mine = [one for one in found if one.kind == kind]
        if shuffle is not None:
            mine = with_moves_of_others(mine, shuffle.child(kind))
        for name in names:
            rows = [one for one in mine if one.snapshot == name]
            taught[name][kind] = _sums(gate, rows, config.width, each)
    return Lessons.of(taught, config.width)


def sums_of(rows: PrimaryBatch, each: float) -> Sums:
    """Return what rows that the gate let through say; each of them counts as ``each`` rows."""
    return Sums.of(rows[INPUTS], rows[OUTCOMES], each)


def with_moves_of_others(found: Sequence[Stretch], seeds: Seeds) -> list[Stretch]:
    """Return the stretches with moves of another snapshot, begun at another tick.

    Moves stay in their order, so they are as smooth as true ones. Only what they have to do with
    what was shown is gone; news that come at the same tick everywhere would else still fit.
    """
    if len({one.snapshot for one in found}) < 2:
        raise DataError("a control takes the moves of other snapshots", expected="2 or more")
    rng, made = seeds.rng(), []
    for one in found:
        others = [other for other in found if other.snapshot != one.snapshot]
        moves = others[int(rng.integers(len(others)))].outcomes
        start = int(rng.integers(len(moves)))
        places = (start + np.arange(len(one.inputs))) % len(moves)
        made.append(Stretch(one.snapshot, one.kind, one.inputs, moves[places]))
    return made


def distances(
    champion: UMCMarketPolicy, challenger: UMCMarketPolicy, batch: RolloutBatch
) -> tuple[float, float]:
    """Return entropy of the challenger and its distance from the champion, nats of a single choice.

    Both are asked what they would have done where the batch was recorded.
    """
    layout = FeatureLayout.of(batch.feature_names)
    own, other = (
        policy.log_probs(batch.observations[batch.mask][:, layout.columns(policy.inputs)])
        for policy in (challenger, champion)
    )
    chances = np.exp(own)
    return -float((chances * own).sum(-1).mean()), float((chances * (own - other)).sum(-1).mean())


def _sums(gate: AsymmetricGate, rows: Sequence[Stretch], inputs: int, each: float) -> Sums:
    if not rows:
        return Sums.of(np.zeros((0, inputs)), np.zeros(0))
    columns = {
        INPUTS: concat([one.inputs for one in rows]),
        OUTCOMES: concat([one.outcomes for one in rows]),
    }
    return sums_of(gate.primary_batch(columns), each)


def _stretches(
    batch: RolloutBatch, snapshots: Sequence[str], config: MarketConfig
) -> Iterator[Stretch]:
    layout = FeatureLayout.of(batch.feature_names)
    columns = layout.columns(PolicyInputs(market=(*SHOWN, *config.inputs)))
    named = np.array(snapshots)
    for name in sorted(set(snapshots)):
        members = np.flatnonzero(named == name)
        shown = batch.observations[members][:, :, columns].mean(axis=0)
        ticks = int(batch.mask[members].sum(axis=1).min())
        for at, market in enumerate(layout.markets):
            yield _stretch(name, market, shown[:ticks, at], config)


def _stretch(snapshot: str, market: str, shown: FloatArray, config: MarketConfig) -> Stretch:
    """Return the rows of one market whose move is in the record."""
    kind: Kind = "perpetual" if shown[0, 0] > 0.0 else "question"
    ahead = config.trading(kind).ticks
    ends = np.minimum(np.arange(len(shown)) + ahead, len(shown) - 1)
    if kind == "perpetual":
        move, known = shown[ends, 3] - shown[:, 3], np.arange(len(shown)) + ahead == ends
    else:
        move, known = _towards_answer(shown, ends, ahead)
    rows = np.flatnonzero((shown[:, 1] > 0.0) & known)
    tags = Tags.of(Source.PRIMARY, f"{snapshot}/{market}", rows)
    inputs = np.column_stack([np.ones(len(rows)), shown[rows, len(SHOWN) :]])
    return Stretch(snapshot, kind, Tagged(inputs, tags), Tagged(move[rows], tags))


def _towards_answer(
    shown: FloatArray, ends: NDArray[np.intp], ahead: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return how a question's price moved, in nats to first order, up to its answer at most.

    A move is known if the record goes so far, or to the answer.
    """
    chance = np.clip(shown[:, 2] + 0.5, 0.0, 1.0)
    slope = chance * (1.0 - chance)
    move = np.divide(chance[ends] - chance, slope, out=np.zeros_like(slope), where=slope > 0.0)
    whole = np.arange(len(shown)) + ahead == ends
    return move, (whole | (shown[ends, 1] <= 0.0)) & (slope > 0.0)
