"""What a search for money found, and whether it is more than luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.series import Indices

ROUND_TRIP_BP = 10.0
CONFIDENCE = 0.95
_LEAST_FREEDOM = 0.25  # one stretch of time has no spread: it can prove nothing


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What the strongest predictions of one search earned on bars it never learned from.

    Attributes:
        horizon_bars: How long a trade is held.
        share_traded: The share of bars that is strong enough to be traded.
        trades: How many trades were made.
        blocks: How many independent stretches of time the trades amount to; trades that crowd into
            one storm are one bet.
        gross_bp: Mean result of a trade before costs.
        error_bp: Its standard error, from the results of whole stretches of time.
    """

    horizon_bars: int
    share_traded: float
    trades: int
    blocks: float
    gross_bp: float
    error_bp: float

    @property
    def net_bp(self) -> float:
        """Return what is left of a trade after the costs of a round trip."""
        return self.gross_bp - ROUND_TRIP_BP

    def lower_bp(self, confidence: float) -> float:
        """Return what a trade earns at least after costs, by the confidence given."""
        freedom = max(self.blocks - 1.0, _LEAST_FREEDOM)
        width = float(student.ppf(confidence, freedom))
        return self.net_bp - width * self.error_bp


@dataclass(frozen=True, slots=True)
class Edge:
    """The strongest case for money in a market: one row, and what it earns at least."""

    row: ProbeRow
    lower_bp: float

    @property
    def proven(self) -> bool:
        """Say whether the trades earn more than they cost beyond what luck explains."""
        return self.lower_bp > 0.0


def strongest_edge(rows: Sequence[ProbeRow], *, confidence: float = CONFIDENCE) -> Edge:
    """Return the row with the highest lower bound.

    The best of many searches looks good by luck alone. So each bound is taken at a confidence at
    which all of them hold together (Bonferroni): a market without money is called exploitable in
    one of twenty measurements at most, however many rows there are.

    Example:
        >>> noisy = ProbeRow(24, 0.01, 300, 40.0, gross_bp=146.0, error_bp=129.0)
        >>> sure = ProbeRow(1, 0.01, 5000, 300.0, gross_bp=16.0, error_bp=1.0)
        >>> strongest_edge([noisy]).proven, strongest_edge([noisy, sure]).proven
        (False, True)
    """
    if not rows:
        raise ConfigError("no search was made, so there is no edge to judge")
    together = 1.0 - (1.0 - confidence) / len(rows)
    bounds = [row.lower_bp(together) for row in rows]
    best = int(np.argmax(bounds))
    return Edge(rows[best], bounds[best])


class Ledger:
    """The results of one search, summed by stretches of time."""

    def __init__(self) -> None:
        self._counts: list[FloatArray] = []
        self._sums: list[FloatArray] = []
        self._squares = 0.0

    def add(self, results_bp: FloatArray, block: Indices, n_blocks: int) -> None:
        """Add the trades of one series; ``block`` says in which stretch each was opened."""
        counts, sums = np.zeros(n_blocks), np.zeros(n_blocks)
        np.add.at(counts, block, 1.0)
        np.add.at(sums, block, results_bp)
        self._counts.append(counts)
        self._sums.append(sums)
        self._squares += float((results_bp**2).sum())

    def row(self, horizon: int, share: float) -> ProbeRow:
        """Return the mean result, with an error that counts a stretch of time as one draw.

        The error is never below that of trades which do not overlap: a few stretches may agree by
        luck.
        """
        counts, sums = np.concatenate(self._counts), np.concatenate(self._sums)
        trades = counts.sum()
        if trades == 0.0:
            return ProbeRow(horizon, share, 0, 0.0, 0.0, 0.0)
        mean = sums.sum() / trades
        blocks = trades**2 / (counts**2).sum()
        few = np.sqrt(blocks / max(blocks - 1.0, 0.5))
        between = few * np.sqrt(((sums - counts * mean) ** 2).sum()) / trades
        spread = np.sqrt(max(self._squares / trades - mean**2, 0.0))
        apart = spread / np.sqrt(max(trades / horizon, 1.0))
        error = float(max(between, apart))
        return ProbeRow(horizon, share, int(trades), float(blocks), float(mean), error)
