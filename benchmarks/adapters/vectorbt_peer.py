"""vectorbt: whole-array signals and its compiled portfolio simulation."""

from __future__ import annotations

import importlib

import inputs
import pandas as pd
import vectorbt as vbt
from inputs import CASH, FAST, FEE, SLOW, UNITS


class Peer:
    """Runs on the engine given; signals are moved by one bar so that they fill at the open.

    ``numba`` is what the plain package does; ``auto`` takes its Rust kernels where they exist.
    """

    version = vbt.__version__

    def __init__(self, bars: str, engine: str) -> None:
        vbt.settings["engine"] = engine
        if engine == "auto":  # without this, a missing wheel would quietly measure numba again
            importlib.import_module("vectorbt_rust")
        self.columns = inputs.load(bars)
        self.held: dict[int, tuple[pd.Series, pd.Series]] = {}

    def _prices(self, n_bars: int) -> tuple[pd.Series, pd.Series]:
        if n_bars not in self.held:
            index = pd.date_range("2020-01-01", periods=n_bars, freq="min")
            columns = inputs.head(self.columns, n_bars)
            self.held[n_bars] = tuple(
                pd.Series(columns[name], index=index, name=name) for name in ("open", "close")
            )
        return self.held[n_bars]

    def _portfolio(self, n_bars: int, fast: object, slow: object) -> vbt.Portfolio:
        open_, close = self._prices(n_bars)
        quick = vbt.MA.run(close, fast, short_name="fast", run_unique=True)
        calm = vbt.MA.run(close, slow, short_name="slow", run_unique=True)
        return vbt.Portfolio.from_signals(
            close,
            entries=quick.ma_above(calm).vbt.signals.fshift(1),
            exits=calm.ma_above(quick).vbt.signals.fshift(1),
            price=open_,
            size=UNITS,
            fees=FEE,
            init_cash=CASH,
            freq="1min",
        )

    def series(self, n_bars: int) -> dict:
        def work() -> float:
            portfolio = self._portfolio(n_bars, FAST, SLOW)
            portfolio.trades.records  # noqa: B018 - the ledger is part of the work
            return float(portfolio.value().iloc[-1])

        seconds, equity = inputs.timed(work)
        return {"seconds": seconds, "units": n_bars, "equity": equity}

    def sweep(self, n_bars: int) -> dict:
        fast, slow = zip(
            *[(f, s) for f in range(5, 55, 5) for s in range(60, 260, 10)], strict=True
        )

        def work() -> list[float]:
            portfolio = self._portfolio(n_bars, list(fast), list(slow))
            portfolio.orders.count()
            return [float(value) for value in portfolio.final_value()]

        result: dict = {}

        def measured() -> None:
            result["seconds"], result["equity"] = inputs.timed(work)

        extra_mb = inputs.peak_extra_mb(measured)
        return {**result, "units": len(fast), "extra_mb": extra_mb}
