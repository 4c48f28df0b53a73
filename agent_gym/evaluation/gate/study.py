"""Simulated suites with a known truth, judged by the gate's own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from typing_extensions import override

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.paired import Bounds, IntArray, Table, holm
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.shapes import shaped
from agent_gym.evaluation.gate.stages import Fresh, Ruling, decide

METRICS = 60
NOISE = 0.05  # standard deviation of the paired differences, as a share of the baseline
PATHS = 0.5  # how much the baseline itself varies from seed to seed
TOLERANCE = 0.02
EVERY = np.arange(METRICS)
TOGETHER = 50  # suites in one table, each a family of its own; for speed alone


@dataclass(frozen=True, slots=True)
class Arm:
    """One question: a shape of noise, what is truly lost, and what is tolerated.

    ``losses`` are shares of the baseline: of the first metric alone, or of every metric.
    """

    shape: str
    correlated: bool = False
    loss: float = 0.0
    everywhere: bool = False
    tolerance: float = TOLERANCE
    noise: float = NOISE
    policy: GatePolicy = field(default_factory=GatePolicy)

    def bounds(self) -> Bounds:
        """Return the bounds of the metrics; up is better for every second one."""
        return Bounds(
            sign=np.where(np.arange(METRICS) % 2 == 0, 1.0, -1.0),
            rel=np.full(METRICS, self.tolerance),
            abs=np.zeros(METRICS),
            floor=np.zeros(METRICS),
            family=np.zeros(METRICS, dtype=np.int64),
        )

    def true_losses(self) -> FloatArray:
        """Return what each metric truly loses."""
        losses = np.zeros(METRICS)
        losses[: METRICS if self.everywhere else 1] = self.loss
        return losses


class SimulatedSuite:
    """One suite of an arm: both sides on as many seeds as are asked for, always the same ones."""

    def __init__(self, arm: Arm, seeds: Seeds) -> None:
        self.arm = arm
        self._seeds = seeds

    def play(self, stream: str, n_seeds: int, rows: IntArray | None = None) -> Table:
        """Return both sides of some rows on the first seeds of a stream ("pinned" or "fresh")."""
        arm, wanted = self.arm, EVERY if rows is None else rows
        # One row a seed, so that fewer seeds are a prefix of more.
        drawn = self._seeds.child(stream).rng().standard_normal((n_seeds, 2 * METRICS + 1))
        noise = shaped(drawn[:, : METRICS + 1], arm.shape, wanted, correlated=arm.correlated)
        base = 1.0 + PATHS * drawn[:, METRICS + 1 :].T[wanted]
        gains = arm.noise * noise - arm.true_losses()[wanted, None]
        return Table(base, base + arm.bounds().sign[wanted, None] * gains)


class SimulatedSeeds(Fresh):
    """Fresh seeds of simulated suites: first the first ones, then those that follow."""

    def __init__(self, suites: Sequence[SimulatedSuite]) -> None:
        self._suites = suites
        self._used = np.zeros(len(suites) * METRICS, dtype=np.int64)

    @override
    def __call__(self, rows: IntArray, n_seeds: IntArray, *, again: bool) -> Table:
        base = np.full((rows.size, int(n_seeds.max())), np.nan)
        cand = base.copy()
        for index in np.unique(rows // METRICS).tolist():
            here = np.flatnonzero(rows // METRICS == index)
            starts, counts = self._used[rows[here]], n_seeds[here]
            played = self._suites[index].play(
                "fresh", int((starts + counts).max()), rows[here] % METRICS
            )
            for row, start, n in zip(range(here.size), starts, counts, strict=True):
                base[here[row], :n] = played.base[row, start : start + n]
                cand[here[row], :n] = played.cand[row, start : start + n]
        self._used[rows] += n_seeds
        return Table(base, cand)

    def played(self) -> int:
        """Return how many pairs have been played."""
        return int(self._used.sum())


@dataclass(slots=True)
class Tally:
    """What a gate said of many suites of one arm."""

    suites: int = 0
    alarms: int = 0
    found: int = 0
    wrongly_blamed: int = 0
    praised: int = 0
    flagged: int = 0
    underpowered: int = 0
    fresh_seeds: int = 0

    def add(self, ruling: Ruling, fresh_seeds: int = 0) -> None:
        """Count the suites of one table."""
        worse = ruling.worse.reshape(-1, METRICS)
        self.suites += worse.shape[0]
        self.alarms += int(worse.any(axis=1).sum())
        self.found += int(worse[:, 0].sum())
        self.wrongly_blamed += int(worse[:, 1:].any(axis=1).sum())
        self.praised += int(ruling.better.reshape(-1, METRICS).any(axis=1).sum())
        self.flagged += int(ruling.flagged.sum())
        self.underpowered += int(ruling.underpowered.sum())
        self.fresh_seeds += fresh_seeds


def ask(arm: Arm, seeds: Seeds, suites: int) -> Tally:
    """Let the gate judge many suites of one arm."""
    tally = Tally()
    for made in _tables(arm, seeds, suites):
        fresh = SimulatedSeeds(made)
        ruling = decide(_pinned(made), _bounds(arm, len(made)), fresh, arm.policy)
        tally.add(ruling, fresh.played())
    return tally


def ask_controls(arm: Arm, seeds: Seeds, suites: int) -> dict[str, Tally]:
    """Let gates that are known to be bad judge the same suites."""
    tallies = {name: Tally() for name in CONTROLS}
    for made in _tables(arm, seeds, suites):
        table, bounds = _pinned(made), _bounds(arm, len(made))
        ruling = decide(table, bounds, None, arm.policy)
        losses = bounds.sign[:, None] * (table.base - table.cand)
        one_seed = losses[:, 0] > arm.policy.required_effect * np.abs(table.base[:, 0])
        p_worse = ruling.figures.p_worse
        everyone = np.ones(p_worse.size, dtype=np.bool_)
        corrected = holm(p_worse, everyone, bounds.family)
        said = (one_seed, p_worse <= 0.05, corrected <= arm.policy.alpha)
        for name, worse in zip(CONTROLS, said, strict=True):
            ruling.worse = worse
            tallies[name].add(ruling)
    return tallies


def _tables(arm: Arm, seeds: Seeds, suites: int) -> Iterator[list[SimulatedSuite]]:
    for start in range(0, suites, TOGETHER):
        indices = range(start, min(start + TOGETHER, suites))
        yield [SimulatedSuite(arm, seeds.child(index)) for index in indices]


def _pinned(suites: Sequence[SimulatedSuite]) -> Table:
    played = [suite.play("pinned", suite.arm.policy.n_screen) for suite in suites]
    return Table(
        np.concatenate([table.base for table in played]),
        np.concatenate([table.cand for table in played]),
    )


def _bounds(arm: Arm, suites: int) -> Bounds:
    whole = arm.bounds().of(np.tile(EVERY, suites))
    return replace(whole, family=np.repeat(np.arange(suites), METRICS))


CONTROLS: Sequence[str] = (
    "threshold of 5 % on one seed",
    "p < 0.05 on 24 seeds, uncorrected",
    "Holm at 1 % on 24 seeds, not confirmed",
)
