"""What each bar brought, before and after costs, from one ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import risk_marks
from agent_gym.evaluation.results import BacktestResults

BP = 1e4
Unit: TypeAlias = Literal["gain", "growth"]


@dataclass(frozen=True, slots=True, eq=False)
class BarPnl:
    """Gross and net of each bar, as fractions of the equity before it.

    The first row, which only decides, has none. Gross is what the positions earned: those held
    over night from close to open, those after the trade from open to close. Net is the change of
    equity; the difference is what was paid. Exposure is the value held after the trade, with its
    sign.
    """

    gross: FloatArray
    net: FloatArray
    exposure: FloatArray

    def mean_bp(self, part: Literal["gross", "net"], unit: Unit) -> float:
        """Return the mean a bar in basis points.

        ``gain`` is the plain mean, the unit of a known market's optimum; ``growth`` is the mean of
        logs, which also counts what volatility costs an account that is not topped up.
        """
        return float(self.bars_bp(part, unit).mean())

    def bars_bp(self, part: Literal["gross", "net"], unit: Unit) -> FloatArray:
        """Return every bar in basis points."""
        values = self.gross if part == "gross" else self.net
        return BP * (values if unit == "gain" else np.log1p(np.maximum(values, -1.0 + 1e-12)))


def bar_pnl(run: BacktestResults) -> BarPnl:
    """Return what each bar after the first brought."""
    opened, close, held = run.bars.open, run.bars.close, run.position
    before = run.equity[:-1]
    earned = held[:-1] * (opened[1:] - close[:-1]) + held[1:] * (close[1:] - opened[1:])
    alive = before > 0.0
    share = np.divide(1.0, before, out=np.zeros_like(before), where=alive)
    return BarPnl(earned * share, np.diff(run.equity) * share, held[1:] * opened[1:] * share)


def ratio(returns: FloatArray) -> float:
    """Return mean over standard deviation, by which training chooses; 0 where nothing varies."""
    spread = float(returns.std())
    return float(returns.mean()) / spread if spread > 0.0 else 0.0


def daily_means(ts: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Return the mean of the bars of each UTC day that has any, in time order.

    Resampling days instead of bars keeps what hangs together within a day, and is quick.
    """
    _, first = np.unique(ts // DAY_NS, return_index=True)
    counts = np.diff(first, append=ts.size)
    means: FloatArray = np.add.reduceat(values, first) / counts
    return means


def trial_returns(run: BacktestResults) -> tuple[FloatArray, float]:
    """Return the series that a trial is judged by and how many of its periods make a year.

    Days, or bars where these are longer. An account that was ruined loses everything in that
    period and has nothing to lose afterwards: its series is as long as that of any other.
    """
    marks, per_year = risk_marks(run.bars.ts, run.bars.period_ns, run.equity)
    left = np.where(np.minimum.accumulate(marks) > 0.0, marks, 0.0)
    before = left[:-1]
    changes = np.divide(np.diff(left), before, out=np.zeros_like(before), where=before > 0.0)
    return changes, per_year
