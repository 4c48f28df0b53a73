"""What a websocket has brought and nobody has read yet.

ccxt wakes a reader for the first message only; those that arrive before it asks again wait in
ccxt's store until another message comes. On a quiet market that can be long, so the store is
looked at before waiting. Its rows are copied: ccxt goes on writing into them.
"""

from __future__ import annotations

from typing import Any


class Inbox:
    """The unread part of a ccxt client's stores, for one symbol."""

    def __init__(self, client: Any, symbol: str) -> None:
        self._client = client
        self._symbol = symbol
        self._bar: list[Any] | None = None
        self._trade: Any = None
        self._book: tuple[Any, Any] | None = None

    def clear(self) -> None:
        """Forget everything, read or not."""
        self._client.clean_ws_data()
        self._bar = self._trade = self._book = None

    def bars(self, timeframe: str) -> list[list[Any]]:
        """Return the rows that are new or have changed, oldest first."""
        stored = (self._client.ohlcvs or {}).get(self._symbol, {}).get(timeframe) or []
        rows = [list(row) for row in stored if self._bar is None or row[0] >= self._bar[0]]
        if rows == [self._bar]:
            return []
        if rows:
            self._bar = rows[-1]
        return rows

    def trades(self) -> list[dict[str, Any]]:
        """Return the trades after the last one that was read."""
        found = []
        for trade in reversed((self._client.trades or {}).get(self._symbol) or []):
            if trade is self._trade:
                break
            found.append(trade)
        if found:
            self._trade = found[0]
        return [dict(trade) for trade in reversed(found)]

    def book(self) -> Any:
        """Return the book if it is whole and has changed, else None."""
        book = (self._client.orderbooks or {}).get(self._symbol)
        if book is None or book["nonce"] is None:
            return None
        version = (book["nonce"], book["timestamp"])
        if version == self._book:
            return None
        self._book = version
        return book
