"""hftbacktest: a tick simulator; each bar becomes four quotes (bid and ask at open and close)."""

from __future__ import annotations

import inputs
import numpy as np
from hftbacktest import (
    BUY_EVENT,
    DEPTH_EVENT,
    EXCH_EVENT,
    GTC,
    LOCAL_EVENT,
    MARKET,
    SELL_EVENT,
    BacktestAsset,
    HashMapMarketDepthBacktest,
    __version__,
)
from hftbacktest.types import event_dtype
from inputs import FAST, FEE, SLOW, UNITS
from numba import njit

SECOND_NS = 1_000_000_000
BAR_NS = 60 * SECOND_NS
TICK = 0.01  # a finer grid would cost this peer a longer search through its book


def quotes(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return one tick of spread around the open (1 s into the bar) and the close (59 s)."""
    n_bars = columns["close"].size
    events = np.zeros((n_bars, 4), event_dtype)
    start = (1 + np.arange(n_bars)) * BAR_NS
    for side, name, second in ((0, "open", 1), (2, "close", 59)):
        price = np.round(columns[name] / TICK) * TICK
        for k, (flag, shift) in enumerate(((BUY_EVENT, 0.0), (SELL_EVENT, TICK))):
            event = events[:, side + k]
            event["ev"] = DEPTH_EVENT | EXCH_EVENT | LOCAL_EVENT | flag
            event["exch_ts"] = event["local_ts"] = start + second * SECOND_NS + k
            event["px"], event["qty"] = price + shift, 1e6
    return events.reshape(-1)


@njit
def trade(market, n_bars, units, equity):
    """Decide at each close; the order reaches the venue after the next open."""
    closes = np.zeros(n_bars)
    fast_sum, slow_sum, long, order = 0.0, 0.0, False, 0
    wait = 58 * SECOND_NS + SECOND_NS // 2  # the clock starts at the first quote
    for i in range(n_bars):
        if market.elapse(wait) != 0 and i < n_bars - 1:
            return i
        wait = BAR_NS
        close = market.depth(0).best_bid
        state = market.state_values(0)
        equity[i] = state.balance - state.fee + state.position * close
        closes[i] = close
        fast_sum += close - (closes[i - FAST] if i >= FAST else 0.0)
        slow_sum += close - (closes[i - SLOW] if i >= SLOW else 0.0)
        if i < SLOW - 1:
            continue
        up = fast_sum / FAST > slow_sum / SLOW
        if up != long:
            order += 1
            market.clear_inactive_orders(0)
            if up:
                market.submit_buy_order(0, order, close, units, GTC, MARKET, False)
            else:
                market.submit_sell_order(0, order, close, units, GTC, MARKET, False)
            long = up
    return n_bars


class Peer:
    """Builds a market for every run; only the compiled trading loop is timed."""

    version = __version__

    def __init__(self, bars: str) -> None:
        self.columns = inputs.load(bars)
        self.held: dict[int, np.ndarray] = {}

    def series(self, n_bars: int) -> dict:
        if n_bars not in self.held:
            self.held[n_bars] = quotes(inputs.head(self.columns, n_bars))
        asset = (
            BacktestAsset()
            .data(self.held[n_bars])
            .linear_asset(1.0)
            .constant_order_latency(2 * SECOND_NS, SECOND_NS)
            .risk_adverse_queue_model()
            .no_partial_fill_exchange()
            .trading_value_fee_model(FEE, FEE)
            .tick_size(TICK)
            .lot_size(1.0)
        )
        market = HashMapMarketDepthBacktest([asset])
        equity = np.zeros(n_bars)
        seconds, done = inputs.timed(lambda: trade(market, n_bars, float(UNITS), equity))
        market.close()
        if done != n_bars:
            raise RuntimeError(f"the feed ended at bar {done} of {n_bars}")
        return {"seconds": seconds, "units": n_bars, "equity": inputs.CASH + float(equity[-1])}
