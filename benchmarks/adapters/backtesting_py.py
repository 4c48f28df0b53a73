"""backtesting.py: the event loop over bars with a Python strategy."""

from __future__ import annotations

import inputs
import pandas as pd
from backtesting import Backtest, Strategy, __version__
from inputs import CASH, FAST, FEE, SLOW, UNITS


class SmaCross(Strategy):
    """Long one unit while the fast average is above the slow one, else flat."""

    def init(self):
        close = pd.Series(self.data.Close)
        self.fast = self.I(lambda: close.rolling(FAST).mean(), plot=False)
        self.slow = self.I(lambda: close.rolling(SLOW).mean(), plot=False)

    def next(self):
        long = self.fast[-1] > self.slow[-1]
        if long and not self.position:
            self.buy(size=UNITS)
        elif not long and self.position:
            self.position.close()


class Peer:
    """Runs the strategy; orders fill at the next open by default."""

    version = __version__

    def __init__(self, bars: str) -> None:
        self.columns = inputs.load(bars)
        self.tests: dict[int, Backtest] = {}

    def series(self, n_bars: int) -> dict:
        if n_bars not in self.tests:
            columns = inputs.head(self.columns, n_bars)
            frame = pd.DataFrame({name.capitalize(): column for name, column in columns.items()})
            frame.index = pd.date_range("2020-01-01", periods=n_bars, freq="min")
            self.tests[n_bars] = Backtest(frame, SmaCross, cash=CASH, commission=FEE)
        seconds, stats = inputs.timed(self.tests[n_bars].run)
        equity = float(stats["_equity_curve"]["Equity"].iloc[-1])
        return {"seconds": seconds, "units": n_bars, "equity": equity}
