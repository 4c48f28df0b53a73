"""``MarketDataLoader``: bars, order books and trades of a real exchange, or an error.

It gives what was asked for or raises; it never puts generated data in the place of real data.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from agent_gym.core.clock import DAY_NS, Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.bars import Bars
from agent_gym.markets.cache import BarCache
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.live.adapter import ExchangeClient
from agent_gym.markets.live.books import MS_NS, OrderBook, Trades, read_order_book, read_trades
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.history import Download
from agent_gym.markets.live.paging import Page, Walk, read_page
from agent_gym.markets.live.retry import Portal, Retrier
from agent_gym.markets.live.stream import BarStream, OrderBookStream, TradeStream
from agent_gym.markets.live.wanted import FetchProgress, Gaps, Wanted
from agent_gym.markets.periods import parse_period

T = TypeVar("T")

TRADES_PER_PAGE = 1000


class MarketDataLoader:
    """Market data of one symbol through ccxt.

    Plain calls (``fetch_*``) work anywhere, inside a running event loop too; streams
    (``stream_*``) are async iterators for the caller's own loop.

    Args:
        config: Exchange, symbol, patience.
        cache: Where fetched months are kept; without one every call fetches everything.
        clock: Wall time; tests hand in one that waits in no time.

    Example:
        with MarketDataLoader(LiveConfig(symbol="ETH/USDT")) as loader:
            bars = loader.fetch_ohlcv("1h", start_ns, end_ns)
    """

    def __init__(
        self,
        config: LiveConfig | None = None,
        *,
        cache: BarCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config or LiveConfig()
        self.retrier = Retrier(self.config, clock or SystemClock())
        self._clock = clock or SystemClock()
        self._cache = cache
        self._portal: Portal | None = None
        self._client: ExchangeClient | None = None
        self._instrument: Instrument | None = None
        if cache is not None and cache.sandbox != self.config.sandbox:
            raise ConfigError(
                "a cache of the market cannot hold a test network's data, nor the reverse",
                found=f"sandbox={cache.sandbox}",
                expected=f"sandbox={self.config.sandbox}",
            )

    def fetch_ohlcv(
        self,
        period: str,
        start_ns: int,
        end_ns: int,
        *,
        gaps: Gaps = "raise",
        progress: Callable[[FetchProgress], None] | None = None,
    ) -> Bars:
        """Return the finished bars that open in [start, end].

        Args:
            period: Such as ``1m`` or ``1h``.
            start_ns: First open time wanted.
            end_ns: Last open time wanted.
            gaps: Whether missing bars are an error; more than 0.5 % missing always is.
            progress: Called after each page.

        Raises:
            DataError: If the exchange cannot be reached or does not have just these bars.
        """
        period_ns = parse_period(period)
        wanted = Wanted(period_ns, start_ns, end_ns, self._as_of_ns(end_ns), gaps)
        walk = Walk(
            ask=lambda since_ns: self._page(wanted.timeframe, since_ns),
            period_ns=period_ns,
            page_limit=self.config.page_limit,
            keep_gaps=gaps == "keep",
        )
        before = self.retrier.retries
        return Download(
            config=self.config,
            wanted=wanted,
            instrument=self.instrument,
            walk=walk,
            clock=self._clock,
            retries=lambda: self.retrier.retries - before,
            cache=self._cache,
            progress=progress,
        ).run()

    def fetch_order_book(self, depth: int = 20) -> OrderBook:
        """Return the order book now, at most ``depth`` levels a side."""
        _at_least_one("depth", depth)
        self.instrument()
        raw = self._call("the order book", lambda client: client.order_book(depth))
        return read_order_book(raw, depth, self._where)

    def fetch_trades(self, since_ns: int | None = None, limit: int = 500) -> Trades:
        """Return at most ``limit`` trades, each id once: from a time on, or the latest."""
        _at_least_one("limit", limit)
        size = min(limit, TRADES_PER_PAGE)
        since_ms = None if since_ns is None else since_ns // MS_NS
        pages: list[Any] = []
        seen: set[str] = set()
        while True:
            page = self._trades_page(since_ms, size)
            fresh = {str(trade.get("id")) for trade in page} - seen
            pages.extend(page)
            seen |= fresh
            if since_ms is None or len(seen) >= limit:
                break
            if not fresh and len(page) >= size:
                raise DataError(
                    "more trades in one millisecond than a page holds", where=self._where
                )
            if not fresh:
                break
            since_ms = max(int(trade["timestamp"]) for trade in page)
        trades = read_trades(pages, self._where)
        return trades.rows(-limit, None) if since_ns is None else trades.rows(0, limit)

    def stream_bars(self, period: str) -> BarStream:
        """Return finished bars as they close; reports gaps, repeats no bar."""
        return BarStream(self.config, parse_period(period))

    def stream_trades(self) -> TradeStream:
        """Return trades as they happen; reports gaps, repeats no trade."""
        return TradeStream(self.config)

    def stream_order_book(self, depth: int = 20) -> OrderBookStream:
        """Return the order book at each change; reports where it had to start afresh."""
        return OrderBookStream(self.config, depth)

    def instrument(self) -> Instrument:
        """Return what the exchange says of the symbol."""
        if self._instrument is None:
            self._instrument = self._call("its markets", lambda client: client.instrument())
        return self._instrument

    def close(self) -> None:
        """Give back sockets and the thread; the loader can be used again."""
        if self._portal is not None:
            if self._client is not None:
                self._portal.run(self._client.close())
            self._portal.close()
        self._portal = self._client = None

    def __enter__(self) -> MarketDataLoader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _where(self) -> str:
        return f"{self.config.symbol} on {self.config.exchange}"

    def _as_of_ns(self, end_ns: int) -> int:
        """Return the time that decides which bar is finished: the exchange's, if it matters."""
        now_ns = self._clock.now_ns()
        if end_ns < now_ns - DAY_NS:
            return now_ns
        told_ms = self._call("the time", lambda client: client.time_ms())
        return now_ns if told_ms is None else told_ms * MS_NS

    def _page(self, timeframe: str, since_ns: int) -> Page:
        async def ask(client: ExchangeClient) -> Page:
            client.check_period(timeframe)
            since_ms = -(-since_ns // MS_NS)
            return read_page(await client.bars_page(timeframe, since_ms, self.config.page_limit))

        self.instrument()
        return self._call(f"{timeframe} bars", ask)

    def _trades_page(self, since_ms: int | None, limit: int) -> list[dict[str, Any]]:
        self.instrument()
        return self._call("trades", lambda client: client.trades(since_ms, limit))

    def _call(self, what: str, request: Callable[[ExchangeClient], Coroutine[Any, Any, T]]) -> T:
        if self._portal is None:
            self._portal = Portal()
        if self._client is None:
            self._client = self._portal.run(_open(self.config))
        portal, client = self._portal, self._client
        return self.retrier.call(what, lambda: portal.run(request(client)))


async def _open(config: LiveConfig) -> ExchangeClient:
    """Make the client inside the loop that will use it."""
    return ExchangeClient(config)


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"{name} is a whole number of at least 1", found=value)
