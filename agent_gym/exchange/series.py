"""Door 1: the whole series at once. Targets in, the full ledger out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn, TypeAlias

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
PAGE = np.dtype([("bar", "i8"), ("position", "f8"), ("cash", "f8")])
FILL_WIDTH, PAGE_WIDTH = len(kernel.FILL_COLUMNS), len(kernel.PAGE_COLUMNS)


@dataclass(frozen=True, eq=False)
class SeriesResult:
    """What a run over a series left behind.

    ``equity`` holds the value at each close; ``ledger`` one page for each bar that changed position
    or cash, the first for bar 0; ``fills`` one row a fill; ``totals`` the running accounts at the
    end (fees, slippage, funding, insurance, realised).
    """

    equity: FloatArray
    ledger: NDArray[Any]
    fills: NDArray[Any]
    totals: dict[str, float]

    @cached_property
    def position(self) -> FloatArray:
        """Return the units held at each close."""
        return self._spread("position")

    @cached_property
    def cash(self) -> FloatArray:
        """Return the cash at each close."""
        return self._spread("cash")

    def _spread(self, name: str) -> FloatArray:
        lengths = np.diff(self.ledger["bar"], append=len(self.equity))
        column: FloatArray = np.repeat(self.ledger[name], lengths)
        return column


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
    records = _Records(np.empty(n), np.empty((n, PAGE_WIDTH)), np.empty((2 * n, FILL_WIDTH)))
    count, totals = account.trade(targets, records)
    pages = int(totals.pop("pages"))
    totals.pop("max_drawdown")  # only the sweep keeps it; here it follows from the curve
    ledger, fills = _typed(records.ledger[:pages], PAGE), _typed(records.fills[:count], FILL)
    return SeriesResult(records.equity, ledger, fills, totals)


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
    totals = [account.trade(wish)[1] for wish in targets]
    for total in totals:
        del total["pages"]
    return totals


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Where the kernel writes what it keeps.

    There is room for the worst case, one page, one trade and one liquidation a bar: memory that is
    not touched costs nothing.
    """

    equity: FloatArray
    ledger: FloatArray
    fills: FloatArray


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
        self, targets: FloatArray, records: _Records | None = None
    ) -> tuple[int, dict[str, float]]:
        """Run the kernel; without ``records`` only the totals are kept."""
        wish = _checked(targets, len(self.tape))
        totals = np.empty(len(kernel.TOTALS))
        run = np.zeros(1, kernel.RUN)
        self._fill_in(run, wish, totals)
        if records is None:
            trade = kernel.summary_margin if self.margin else kernel.summary_spot
        else:
            trade = kernel.series_margin if self.margin else kernel.series_spot
            run["equity"] = records.equity.ctypes.data
            run["ledger"] = records.ledger.ctypes.data
            run["fills"], run["fill_room"] = records.fills.ctypes.data, len(records.fills)
        count = trade(run.ctypes.data)
        if count < 0:
            _refuse(wish, -count - 1)
        return count, dict(zip(kernel.TOTALS, totals.tolist(), strict=True))

    def _fill_in(self, run: NDArray[Any], wish: FloatArray, totals: FloatArray) -> None:
        tape = self.tape
        run["bars"], run["n"] = tape.rows.ctypes.data, len(tape)
        run["closes"] = tape.bars.close.ctypes.data
        run["targets"], run["totals"] = wish.ctypes.data, totals.ctypes.data
        run["terms"], run["cash"] = self.terms.ctypes.data, self.cash
        run["latency"], run["units"] = self.latency, self.units


def _checked(targets: FloatArray, n: int) -> FloatArray:
    wish = np.ascontiguousarray(targets, dtype=np.float64)
    if wish.shape != (n,):
        raise VenueError("targets and bars differ in length", found=wish.shape, expected=(n,))
    if not math.isfinite(wish[-1]):  # no bar is left for the last one, so the kernel skips it
        _refuse(wish, n - 1)
    return wish


def _refuse(wish: FloatArray, row: int) -> NoReturn:
    raise VenueError(
        "a target is not a finite number", where=f"row {row + 1}", found=float(wish[row])
    )


def _typed(rows: FloatArray, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return rows of floats as records, so that bars are whole numbers and flags are flags."""
    records = np.empty(len(rows), dtype=kind)
    for index, name in enumerate(kind.names or ()):
        records[name] = rows[:, index]
    return records
