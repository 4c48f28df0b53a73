"""What streams send: events of the market, and events of an account."""

from __future__ import annotations

import re
from typing import Any

from agent_gym.apps.sandbox.errors import ExchangeError
from agent_gym.apps.sandbox.market import MS_NS, MarketData, aggregate, levels
from agent_gym.apps.sandbox.orders import NO_LIST, STATUSES, working_ms
from agent_gym.apps.sandbox.requests import Request
from agent_gym.apps.sandbox.symbols import Symbol, text
from agent_gym.exchange.quotes import Book, Level
from agent_gym.exchange.spot_records import Change, Pair
from agent_gym.markets.candles import Candle, prints

NAME = re.compile(
    r"(?P<symbol>[a-z0-9_.-]{1,20})@(?P<kind>kline_(?P<interval>\w+)|trade|aggTrade|bookTicker|"
    r"miniTicker|ticker|depth(?P<levels>5|10|20)?(?:@(?:100|1000)ms)?)"
)
ALL = {"!ticker@arr": "ticker", "!miniTicker@arr": "miniTicker"}
REPORTS = {
    "new": "NEW",
    "hit": "NEW",
    "trade": "TRADE",
    "cancelled": "CANCELED",
    "expired": "EXPIRED",
}


class MarketEvents:
    """Makes the events of a stream when a bar has passed."""

    def __init__(self, market: MarketData) -> None:
        self._market = market
        self._before: dict[str, Book] = {}

    def check(self, name: str) -> None:
        """Raise unless there is such a stream."""
        if name in ALL:
            return
        found = NAME.fullmatch(name)
        if found is None:
            raise ExchangeError(-1130, f"Data sent for parameter '{name[:40]}' is not valid.")
        self._market.symbols.find(found["symbol"].upper())
        if found["interval"] is not None:
            self._market.period_ns(found["interval"])

    def remember(self) -> None:
        """Look at the books before a bar passes: streams tell what changed in them."""
        self._before = {one.id: self._market.book(one) for one in self._market.symbols.all}

    def of(self, name: str) -> list[Any]:
        """Return the events of a stream at this moment."""
        market = self._market
        if name in ALL:
            return [[self._ticker(one, ALL[name]) for one in market.symbols.all]]
        found = NAME.fullmatch(name)
        assert found is not None
        symbol, kind = market.symbols.find(found["symbol"].upper()), found["kind"]
        if found["interval"] is not None:
            period_ns = market.period_ns(found["interval"])
            newest = market.newest(symbol, period_ns)
            return [self._kline(symbol, one, found["interval"]) for one in newest]
        if kind in ("trade", "aggTrade"):
            return self._trades(symbol, kind)
        if kind == "bookTicker":
            return [self._best(symbol)]
        if kind in ("ticker", "miniTicker"):
            return [self._ticker(symbol, kind)]
        return [self._depth(symbol, found["levels"])]

    def _stamp(self, kind: str, symbol: Symbol) -> dict[str, Any]:
        return {"e": kind, "E": self._market.now_ms, "s": symbol.id}

    def _kline(self, symbol: Symbol, one: Candle, interval: str) -> dict[str, Any]:
        return self._stamp("kline", symbol) | {
            "k": {
                "t": one.open_ns // MS_NS,
                "T": one.close_ns // MS_NS - 1,
                "s": symbol.id,
                "i": interval,
                "f": -1,
                "L": -1,
                "o": text(one.open),
                "c": text(one.close),
                "h": text(one.high),
                "l": text(one.low),
                "v": text(one.volume),
                "n": one.trades,
                "x": one.close_ns <= self._market.floor.opened_ns,
                "q": text(one.worth),
                "V": text(one.taker_buy),
                "Q": text(one.taker_worth),
                "B": "0",
            }
        }

    def _trades(self, symbol: Symbol, kind: str) -> list[Any]:
        moment = self._market.moment(symbol)
        found = prints(moment.bars, moment.last)
        if kind == "aggTrade":
            return [self._stamp(kind, symbol) | aggregate(one) for one in found]
        return [
            self._stamp(kind, symbol)
            | {
                "t": one.id,
                "p": text(one.price),
                "q": text(one.qty),
                "T": one.ts // MS_NS,
                "m": one.seller_took,
                "M": True,
            }
            for one in found
        ]

    def _best(self, symbol: Symbol) -> dict[str, Any]:
        best = self._market.best(symbol)
        return {
            "u": self._market.update_id,
            "s": symbol.id,
            "b": best["bidPrice"],
            "B": best["bidQty"],
            "a": best["askPrice"],
            "A": best["askQty"],
        }

    def _depth(self, symbol: Symbol, shown: str | None) -> dict[str, Any]:
        book, number = self._market.book(symbol), self._market.update_id
        if shown is not None:
            return {
                "lastUpdateId": number,
                "bids": levels(book.bids[: int(shown)]),
                "asks": levels(book.asks[: int(shown)]),
            }
        before = self._before.get(symbol.id, book)
        return self._stamp("depthUpdate", symbol) | {
            "U": number,
            "u": number,
            "b": _changed(before.bids, book.bids),
            "a": _changed(before.asks, book.asks),
        }

    def _ticker(self, symbol: Symbol, kind: str) -> dict[str, Any]:
        day = self._market.day(symbol)
        short = self._stamp("24hrMiniTicker" if kind == "miniTicker" else "24hrTicker", symbol) | {
            "c": day["lastPrice"],
            "o": day["openPrice"],
            "h": day["highPrice"],
            "l": day["lowPrice"],
            "v": day["volume"],
            "q": day["quoteVolume"],
        }
        if kind == "miniTicker":
            return short
        return short | {
            "p": day["priceChange"],
            "P": day["priceChangePercent"],
            "w": day["weightedAvgPrice"],
            "x": day["prevClosePrice"],
            "Q": day["lastQty"],
            "b": day["bidPrice"],
            "B": day["bidQty"],
            "a": day["askPrice"],
            "A": day["askQty"],
            "O": day["openTime"],
            "C": day["closeTime"],
            "F": day["firstId"],
            "L": day["lastId"],
            "n": day["count"],
        }


def _changed(before: tuple[Level, ...], after: tuple[Level, ...]) -> list[list[str]]:
    """Return the levels that are new or other, and those that are gone, with nothing at them."""
    was, now = ({text(one.price): text(one.qty) for one in side} for side in (before, after))
    gone = {price: text(0.0) for price in was if price not in now}
    return [[price, qty] for price, qty in (gone | now).items() if was.get(price) != qty]


def execution_report(
    symbol: Symbol, change: Change, request: Request, now_ms: int
) -> dict[str, Any]:
    """Return the event that tells an account of its order."""
    ticket, fill = change.ticket, change.fill
    wish = ticket.wish
    cancelled = change.what == "cancelled"
    trails = {"d": round(wish.trail_bps)} if wish.trail_bps else {}
    return trails | {
        "e": "executionReport",
        "E": now_ms,
        "s": symbol.id,
        "c": wish.client_id,
        "S": "BUY" if wish.qty > 0.0 else "SELL",
        "o": request.type,
        "f": wish.validity.upper(),
        "q": text(abs(wish.qty)),
        "p": text(wish.limit_price or 0.0),
        "P": text(wish.hit_price or 0.0),
        "F": text(0.0),
        "g": NO_LIST if ticket.list_id is None else ticket.list_id,
        "C": wish.client_id if cancelled else "",
        "x": REPORTS[change.what],
        "X": STATUSES[change.status],
        "r": "NONE",
        "i": ticket.id,
        "l": text(0.0 if fill is None else abs(fill.qty)),
        "z": text(change.filled),
        "L": text(0.0 if fill is None else fill.price),
        "n": "0" if fill is None else text(fill.fee),
        "N": None if fill is None else symbol.instrument.quote,
        "T": (ticket.updated_ns if fill is None else fill.ts) // MS_NS,
        "t": -1 if fill is None else fill.id,
        "I": 0,
        "w": change.status.live and change.works,
        "m": fill is not None and fill.maker,
        "M": False,
        "O": ticket.created_ns // MS_NS,
        "Z": text(change.worth),
        "Y": text(0.0 if fill is None else abs(fill.qty) * fill.price),
        "Q": text(float(request.cost)),
        "W": working_ms(ticket),
        "V": "NONE",
    }


def list_status(symbol: Symbol, pair: Pair, now_ms: int, *, live: bool) -> dict[str, Any]:
    """Return the event that tells an account that a pair of orders began, or is over."""
    return {
        "e": "listStatus",
        "E": now_ms,
        "s": symbol.id,
        "g": pair.id,
        "c": "OCO",
        "l": "EXEC_STARTED" if live else "ALL_DONE",
        "L": "EXECUTING" if live else "ALL_DONE",
        "r": "NONE",
        "C": pair.client_id,
        "T": now_ms,
        "O": [{"s": symbol.id, "i": one.id, "c": one.wish.client_id} for one in pair.tickets],
    }


def account_position(balances: dict[str, tuple[float, float]], now_ms: int) -> dict[str, Any]:
    """Return the event that tells an account what it owns."""
    return {
        "e": "outboundAccountPosition",
        "E": now_ms,
        "u": now_ms,
        "B": [
            {"a": asset, "f": text(free), "l": text(locked)}
            for asset, (free, locked) in balances.items()
        ],
    }
