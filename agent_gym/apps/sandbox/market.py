"""Public market data in the exchange's forms: candles, book, trades, tickers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_gym.apps.sandbox.errors import UNKNOWN_INTERVAL
from agent_gym.apps.sandbox.params import Params
from agent_gym.apps.sandbox.symbols import Symbol, SymbolBook, text
from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError
from agent_gym.exchange.quotes import Book, Level, book_of, standing_price
from agent_gym.exchange.spot import SpotFloor
from agent_gym.markets.candles import PRINTS_A_BAR, Candle, Moment, Print, candles, prints
from agent_gym.markets.periods import parse_period

MS_NS = 1_000_000
INTERVALS = (
    *("1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h"),
    *("4h", "6h", "8h", "12h", "1d", "3d", "1w"),
)
ORDER_RATE = {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10}


class MarketData:
    """What everybody may see of a floor at this moment."""

    def __init__(self, floor: SpotFloor, symbols: SymbolBook, now_ns: Callable[[], int]) -> None:
        self.floor, self.symbols, self._now_ns = floor, symbols, now_ns
        self._books: tuple[int, dict[str, Book]] = (-1, {})

    @property
    def now_ms(self) -> int:
        """Return the simulated time as the exchange tells it."""
        return self._now_ns() // MS_NS

    @property
    def update_id(self) -> int:
        """Return the number of the present state of the books; it grows by 1 with each bar."""
        return self.floor.venue.t + 1

    def moment(self, symbol: Symbol) -> Moment:
        """Return how far a symbol has been played."""
        venue = self.floor.venue
        bars = venue.tape(symbol.name).bars
        return Moment(bars, venue.t, standing_price(venue, symbol.name))

    def book(self, symbol: Symbol) -> Book:
        """Return the book of a symbol; it is drawn once a bar."""
        if self._books[0] != self.update_id:
            self._books = (self.update_id, {})
        known = self._books[1]
        if symbol.id not in known:
            known[symbol.id] = book_of(self.floor.venue, symbol.name)
        return known[symbol.id]

    def period_ns(self, interval: str) -> int:
        """Return the period of an interval; one that the bars cannot give is refused."""
        if interval not in INTERVALS:
            raise UNKNOWN_INTERVAL
        try:
            period_ns = parse_period(interval)
        except ConfigError:
            raise UNKNOWN_INTERVAL from None
        if period_ns % self.floor.venue.period_ns:
            raise UNKNOWN_INTERVAL
        return period_ns

    # Requests.

    def ping(self, _params: Params) -> dict[str, Any]:
        """Answer."""
        return {}

    def time(self, _params: Params) -> dict[str, Any]:
        """Tell the simulated time."""
        return {"serverTime": self.now_ms}

    def exchange_info(self, params: Params) -> dict[str, Any]:
        """Tell what is traded, and under which rules."""
        is_open = not self.floor.finished
        return {
            "timezone": "UTC",
            "serverTime": self.now_ms,
            "rateLimits": [
                {
                    "rateLimitType": "REQUEST_WEIGHT",
                    "interval": "MINUTE",
                    "intervalNum": 1,
                    "limit": 6000,
                },
                ORDER_RATE | {"limit": 100},
            ],
            "exchangeFilters": [],
            "symbols": [one.describe(is_open=is_open) for one in self.symbols.chosen(params)],
        }

    def depth(self, params: Params) -> dict[str, Any]:
        """Return the book."""
        book, limit = self.book(self.symbols.need(params)), params.limit(100, 5000)
        return {
            "lastUpdateId": self.update_id,
            "bids": levels(book.bids[:limit]),
            "asks": levels(book.asks[:limit]),
        }

    def trades(self, params: Params) -> list[dict[str, Any]]:
        """Return the latest trades of others."""
        found = self._prints(self.symbols.need(params), params.limit(500, 1000))
        return [_trade(one) for one in found]

    def aggregate_trades(self, params: Params) -> list[dict[str, Any]]:
        """Return trades of others from a time or an id on, else the latest."""
        symbol, limit = self.symbols.need(params), params.limit(500, 1000)
        start, end = params.whole("startTime"), params.whole("endTime")
        first_id = params.whole("fromId")
        bars, last = self.moment(symbol).bars, self.floor.venue.t
        if start is None and end is None and first_id is None:
            return [aggregate(one) for one in self._prints(symbol, limit)]
        bar = (first_id or 0) // PRINTS_A_BAR
        if start is not None:
            bar = max(0, int(bars.ts.searchsorted(start * MS_NS, side="right")) - 1)
        found: list[Print] = []
        while bar <= last and len(found) < limit:
            for one in prints(bars, bar):
                at = one.ts // MS_NS
                if at >= (start or 0) and (end is None or at <= end) and one.id >= (first_id or 0):
                    found.append(one)
            bar += 1
            if end is not None and bar <= last and int(bars.ts[bar]) // MS_NS > end:
                break
        return [aggregate(one) for one in found[:limit]]

    def klines(self, params: Params) -> list[list[Any]]:
        """Return candles, the last of which has only opened."""
        symbol = self.symbols.need(params)
        period_ns = self.period_ns(params.need("interval"))
        start, end = params.whole("startTime"), params.whole("endTime")
        found = candles(
            self.moment(symbol),
            period_ns,
            params.limit(500, 1000),
            None if start is None else start * MS_NS,
            None if end is None else end * MS_NS,
        )
        return [_kline(one) for one in found]

    def average_price(self, params: Params) -> dict[str, Any]:
        """Return the price, as a mean over no time: the market stands still."""
        price = self.moment(self.symbols.need(params)).price
        return {"mins": 5, "price": text(price), "closeTime": self.now_ms}

    def ticker_day(self, params: Params) -> Any:
        """Return the last 24 hours."""
        return _one_or_all(params, [self.day(one) for one in self.symbols.chosen(params)])

    def ticker_price(self, params: Params) -> Any:
        """Return the price."""
        found = [
            {"symbol": one.id, "price": text(self.moment(one).price)}
            for one in self.symbols.chosen(params)
        ]
        return _one_or_all(params, found)

    def ticker_book(self, params: Params) -> Any:
        """Return the best prices."""
        return _one_or_all(params, [self.best(one) for one in self.symbols.chosen(params)])

    # Parts of answers that streams send, too.

    def best(self, symbol: Symbol) -> dict[str, str]:
        """Return the best bid and ask of a symbol."""
        book = self.book(symbol)
        bid, ask = book.bids[0], book.asks[0]
        return {
            "symbol": symbol.id,
            "bidPrice": text(bid.price),
            "bidQty": text(bid.qty),
            "askPrice": text(ask.price),
            "askQty": text(ask.qty),
        }

    def day(self, symbol: Symbol) -> dict[str, Any]:
        """Return the last 24 hours of a symbol."""
        moment = self.moment(symbol)
        period_ns, at = moment.bars.period_ns, self.floor.opened_ns
        n_bars = max(1, DAY_NS // period_ns)
        rows = candles(moment, period_ns, n_bars + 1)
        first, change = rows[0].open, moment.price - rows[0].open
        volume, worth = sum(one.volume for one in rows), sum(one.worth for one in rows)
        best = self.best(symbol)
        return {
            "symbol": symbol.id,
            "priceChange": text(change),
            "priceChangePercent": f"{100.0 * change / first:.3f}",
            "weightedAvgPrice": text(worth / volume if volume else moment.price),
            "prevClosePrice": text(first),
            "lastPrice": text(moment.price),
            "lastQty": text(rows[-1].volume / PRINTS_A_BAR),
            **{name: value for name, value in best.items() if name != "symbol"},
            "openPrice": text(first),
            "highPrice": text(max(one.high for one in rows)),
            "lowPrice": text(min(one.low for one in rows)),
            "volume": text(volume),
            "quoteVolume": text(worth),
            "openTime": (at - DAY_NS) // MS_NS,
            "closeTime": self.now_ms,
            "firstId": max(0, moment.last + 1 - len(rows)) * PRINTS_A_BAR,
            "lastId": (moment.last + 1) * PRINTS_A_BAR - 1,
            "count": sum(one.trades for one in rows),
        }

    def newest(self, symbol: Symbol, period_ns: int) -> list[Candle]:
        """Return the candle that this moment ended, if it did, and the one that has opened."""
        found = candles(self.moment(symbol), period_ns, 2)
        return [one for one in found if one.close_ns >= self.floor.opened_ns]

    def _prints(self, symbol: Symbol, limit: int) -> list[Print]:
        bars, last = self.moment(symbol).bars, self.floor.venue.t
        first = max(0, last + 1 - -(-limit // PRINTS_A_BAR))
        found = [one for bar in range(first, last + 1) for one in prints(bars, bar)]
        return found[-limit:]


def levels(found: tuple[Level, ...]) -> list[list[str]]:
    """Return levels of a book as the exchange writes them."""
    return [[text(one.price), text(one.qty)] for one in found]


def aggregate(one: Print) -> dict[str, Any]:
    """Return a trade of others in the short form."""
    return {
        "a": one.id,
        "p": text(one.price),
        "q": text(one.qty),
        "f": one.id,
        "l": one.id,
        "T": one.ts // MS_NS,
        "m": one.seller_took,
        "M": True,
    }


def _trade(one: Print) -> dict[str, Any]:
    return {
        "id": one.id,
        "price": text(one.price),
        "qty": text(one.qty),
        "quoteQty": text(one.price * one.qty),
        "time": one.ts // MS_NS,
        "isBuyerMaker": one.seller_took,
        "isBestMatch": True,
    }


def _kline(one: Candle) -> list[Any]:
    return [
        one.open_ns // MS_NS,
        text(one.open),
        text(one.high),
        text(one.low),
        text(one.close),
        text(one.volume),
        one.close_ns // MS_NS - 1,
        text(one.worth),
        one.trades,
        text(one.taker_buy),
        text(one.taker_worth),
        "0",
    ]


def _one_or_all(params: Params, found: list[dict[str, Any]]) -> Any:
    return found[0] if "symbol" in params else found
