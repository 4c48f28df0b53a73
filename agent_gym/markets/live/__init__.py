"""Live market data through ccxt: history, order books, trades and streams of real exchanges.

Importing this package imports ccxt, which takes a second or two; nothing else in the room does.
"""

from agent_gym.markets.live.books import OrderBook, Trades, quotes_of
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.loader import MarketDataLoader
from agent_gym.markets.live.stream import BarStream, OrderBookStream, StreamHealth, TradeStream
from agent_gym.markets.live.trackers import Gap, LiveBar
from agent_gym.markets.live.wanted import FetchProgress

__all__ = [
    "BarStream",
    "FetchProgress",
    "Gap",
    "LiveBar",
    "LiveConfig",
    "MarketDataLoader",
    "OrderBook",
    "OrderBookStream",
    "StreamHealth",
    "TradeStream",
    "Trades",
    "quotes_of",
]
