"""What the exchange answers, in short: its own names, numbers as numbers, nothing that is empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COLUMNS = ("openTime", "open", "high", "low", "close", "volume")
ORDER_WORDS = ("symbol", "orderId", "side", "type", "status", "timeInForce")
ORDER_NUMBERS = ("price", "stopPrice", "origQty", "executedQty", "cummulativeQuoteQty")
FILL_NUMBERS = ("price", "qty", "quoteQty", "commission")
PRICE_NUMBERS = ("lastPrice", "bidPrice", "bidQty", "askPrice", "askQty", "priceChangePercent")


def symbol_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is traded, and its filters by their names."""
    filters = {
        one["filterType"]: {
            name: value if isinstance(value, bool) else float(value)
            for name, value in one.items()
            if name != "filterType"
        }
        for one in row["filters"]
    }
    words = ("symbol", "status", "baseAsset", "quoteAsset", "orderTypes")
    return {name: row[name] for name in words} | {"filters": filters}


def bars_of(symbol: str, interval: str, rows: Iterable[list[Any]]) -> dict[str, Any]:
    """Return candles as a table."""
    table = [[row[0], *map(float, row[1 : len(COLUMNS)])] for row in rows]
    return {"symbol": symbol, "interval": interval, "columns": list(COLUMNS), "rows": table}


def price_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the price now, the best bid and ask, and how the day went."""
    return {"symbol": row["symbol"]} | {name: float(row[name]) for name in PRICE_NUMBERS}


def book_of(symbol: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the levels of a book as price and quantity, the best first."""
    sides = {side: [list(map(float, level)) for level in row[side]] for side in ("bids", "asks")}
    return {"symbol": symbol, **sides}


def account_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return balances by asset, and the fees as shares."""
    balances = {
        one["asset"]: {"free": float(one["free"]), "locked": float(one["locked"])}
        for one in row["balances"]
    }
    fees = {name: float(row["commissionRates"][name]) for name in ("maker", "taker")}
    return {"canTrade": row["canTrade"], "balances": balances, "fees": fees}


def order_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an order, with its fills where they are told."""
    words = {name: row[name] for name in ORDER_WORDS if name in row}
    numbers = {name: float(row[name]) for name in ORDER_NUMBERS if float(row.get(name, 0))}
    fills = {"fills": [fill_of(one) for one in row["fills"]]} if "fills" in row else {}
    return words | {"executedQty": 0.0} | numbers | fills


def pair_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pair of orders, of which one cancels the other."""
    orders = [order_of(one) for one in row["orderReports"]]
    return {"symbol": row["symbol"], "orderListId": row["orderListId"], "orders": orders}


def fill_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fill."""
    words = ("symbol", "orderId", "time", "isBuyer", "isMaker", "commissionAsset")
    told = {name: row[name] for name in words if name in row}
    return told | {name: float(row[name]) for name in FILL_NUMBERS if name in row}
