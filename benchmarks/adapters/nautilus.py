"""nautilus_trader: the event-driven engine with a Python strategy, logging and risk checks off."""

from __future__ import annotations

from decimal import Decimal

import inputs
import pandas as pd
from inputs import CASH, FAST, SLOW, UNITS
from nautilus_trader import __version__
from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import LoggingConfig, RiskEngineConfig, StrategyConfig
from nautilus_trader.indicators import SimpleMovingAverage
from nautilus_trader.model.currencies import USDT
from nautilus_trader.model.data import BarType
from nautilus_trader.model.enums import AccountType, OmsType, OrderSide
from nautilus_trader.model.objects import Money
from nautilus_trader.persistence.wranglers import BarDataWrangler
from nautilus_trader.test_kit.providers import TestInstrumentProvider
from nautilus_trader.trading.strategy import Strategy

INSTRUMENT = TestInstrumentProvider.btcusdt_binance()  # its fees are 0.1 %
BAR_TYPE = BarType.from_str(f"{INSTRUMENT.id}-1-MINUTE-LAST-EXTERNAL")


class SmaCross(Strategy):
    """Long one unit while the fast average is above the slow one, else flat."""

    def __init__(self) -> None:
        super().__init__(StrategyConfig())
        self.fast = SimpleMovingAverage(FAST)
        self.slow = SimpleMovingAverage(SLOW)
        self.long = False

    def on_start(self) -> None:
        self.register_indicator_for_bars(BAR_TYPE, self.fast)
        self.register_indicator_for_bars(BAR_TYPE, self.slow)
        self.subscribe_bars(BAR_TYPE)

    def on_bar(self, bar) -> None:
        if not self.slow.initialized:
            return
        long = self.fast.value > self.slow.value
        if long == self.long:
            return
        side = OrderSide.BUY if long else OrderSide.SELL
        quantity = INSTRUMENT.make_qty(Decimal(UNITS))
        self.submit_order(self.order_factory.market(INSTRUMENT.id, side, quantity))
        self.long = long


class Peer:
    """Builds an engine for every run; only ``run()`` is timed."""

    version = __version__

    def __init__(self, bars: str) -> None:
        self.columns = inputs.load(bars)
        self.held: dict[int, list] = {}

    def _bars(self, n_bars: int) -> list:
        if n_bars not in self.held:
            frame = pd.DataFrame(inputs.head(self.columns, n_bars)).round(2)
            frame["volume"] = 1e6
            frame.index = pd.date_range("2020-01-01", periods=n_bars, freq="min", tz="UTC")
            self.held[n_bars] = BarDataWrangler(BAR_TYPE, INSTRUMENT).process(frame)
        return self.held[n_bars]

    def series(self, n_bars: int) -> dict:
        engine = BacktestEngine(
            BacktestEngineConfig(
                logging=LoggingConfig(bypass_logging=True),
                risk_engine=RiskEngineConfig(bypass=True),
                run_analysis=False,
            )
        )
        engine.add_venue(
            INSTRUMENT.id.venue,
            oms_type=OmsType.NETTING,
            account_type=AccountType.CASH,
            base_currency=None,
            starting_balances=[Money(CASH, USDT)],
        )
        engine.add_instrument(INSTRUMENT)
        engine.add_data(self._bars(n_bars))
        engine.add_strategy(SmaCross())
        seconds, _ = inputs.timed(engine.run)
        fills = engine.cache.orders_closed_count()
        engine.dispose()
        return {"seconds": seconds, "units": n_bars, "fills": fills}
