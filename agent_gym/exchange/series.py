"""Door 1: the whole series at once. Targets in, the full ledger out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import VenueError
from agent_gym.core.types import FloatArray
from agent_gym.exchange.costs import AccountRules, Costs, make_terms
from agent_gym.exchange.kernel import series as kernel
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars

Sizing: TypeAlias = Literal["fraction", "units"]
FILL = np.dtype([("bar", "i8"), ("qty", "f8"), ("price", "f8"), ("fee", "f8"), ("forced", "?")])


@dataclass(frozen=True, slots=True, eq=False)
class SeriesResult:
    """What a run over a series left behind.

    ``equity``, ``position`` and ``cash`` hold the state at each close; ``fills`` one row a fill;
    ``totals`` the running accounts at the end (fees, slippage, funding, insurance, realised).
    """

    equity: FloatArray
    position: FloatArray
    cash: FloatArray
    fills: NDArray[Any]
    totals: dict[str, float]


def run_series(
    market: Bars | Tape,
    targets: FloatArray,
    costs: Costs | None = None,
    rules: AccountRules | None = None,
    *,
    sizing: Sizing = "fraction",
) -> SeriesResult:
    """Trade a series of targets: ``targets[t]`` is decided at close t and arrives at open t + 1.

    A target is a fraction of equity (or units, with ``sizing="units"``) and is turned into units
    when it changes; a target that stays the same trades nothing.
    """
    account = _Account.on(market, costs, rules, sizing)
    n = len(account.tape)
    curves = np.empty((3, n))
    capacity = 2 * n  # at most one trade and one liquidation a bar; untouched rows cost no memory
    log = np.empty((capacity, len(kernel.FILL_COLUMNS)))
    count, totals = account.trade(targets, curves, log)
    totals.pop("max_drawdown")  # only the sweep keeps it; here it follows from the curve
    return SeriesResult(curves[0], curves[1], curves[2], _fills(log[:count]), totals)


def run_sweep(
    market: Bars | Tape,
    targets: Iterable[FloatArray],
    costs: Costs | None = None,
    rules: AccountRules | None = None,
    *,
    sizing: Sizing = "fraction",
) -> list[dict[str, float]]:
    """Run many series of targets one after the other and keep only the totals of each."""
    account = _Account.on(market, costs, rules, sizing)
    return [account.trade(wish)[1] for wish in targets]


@dataclass(frozen=True, slots=True, eq=False)
class _Account:
    """Everything that stays the same between runs over one tape."""

    tape: Tape
    terms: FloatArray
    cash: float
    latency: int
    units: bool
    margin: bool

    @classmethod
    def on(
        cls,
        market: Bars | Tape,
        costs: Costs | None,
        rules: AccountRules | None,
        sizing: Sizing,
    ) -> _Account:
        costs, rules = costs or Costs(), rules or AccountRules()
        tape = market if isinstance(market, Tape) else Tape.of(market, costs)
        tape.check_fits(costs)
        instrument = tape.bars.instrument
        return cls(
            tape,
            make_terms(costs, rules, instrument),
            rules.cash,
            costs.latency_bars,
            sizing == "units",
            rules.on_margin(instrument),
        )

    def trade(
        self, targets: FloatArray, curves: FloatArray | None = None, log: FloatArray | None = None
    ) -> tuple[int, dict[str, float]]:
        """Run the kernel; without ``curves`` and ``log`` only the totals are kept."""
        wish = _checked(targets, len(self.tape))
        totals = np.empty(len(kernel.TOTALS))
        if curves is None or log is None:
            run = kernel.summary_margin if self.margin else kernel.summary_spot
        else:
            run = kernel.series_margin if self.margin else kernel.series_spot
        count = run(
            self.tape.rows.ctypes.data,
            len(self.tape),
            wish.ctypes.data,
            self.terms.ctypes.data,
            self.cash,
            self.latency,
            int(self.units),
            0 if curves is None else curves.ctypes.data,
            0 if log is None else log.ctypes.data,
            0 if log is None else len(log),
            totals.ctypes.data,
        )
        return count, dict(zip(kernel.TOTALS, totals.tolist(), strict=True))


def _checked(targets: FloatArray, n: int) -> FloatArray:
    wish = np.ascontiguousarray(targets, dtype=np.float64)
    if wish.shape != (n,):
        raise VenueError("targets and bars differ in length", found=wish.shape, expected=(n,))
    if not np.isfinite(wish).all():
        row = int(np.argmax(~np.isfinite(wish)))
        raise VenueError("a target is not a finite number", where=f"row {row + 1}", found=wish[row])
    return wish


def _fills(log: FloatArray) -> NDArray[Any]:
    fills = np.empty(len(log), dtype=FILL)
    for index, name in enumerate(kernel.FILL_COLUMNS):
        fills[name] = log[:, index]
    return fills
