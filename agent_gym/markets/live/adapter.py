"""What we ask of ccxt: plain values in, plain values out, errors in our words.

``ExchangeClient`` holds one asynchronous ccxt client, for requests and for websockets alike. What
another try may cure becomes ``Hiccup``; what it cannot becomes a DataError or a ConfigError.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from socket import SHUT_RDWR
from typing import Any

import ccxt

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import unknown
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.live.ccxt_client import build_client, instrument_of, no_symbol
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.inbox import Inbox

BANNED, TOO_MANY = 418, 429
_SIDES = ("bids", "asks")
# What ccxt's readers raise when an answer is valid JSON of a shape they did not expect.
_UNREADABLE = (TypeError, KeyError, ValueError, IndexError, AttributeError)


class Hiccup(Exception):
    """A failure that another try may cure.

    Args:
        reason: What happened, in one short line.
        retry_after_s: How long the exchange asks us to wait, if it does.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s


class ExchangeClient:
    """One symbol on one exchange through ccxt; use and close it inside one event loop."""

    def __init__(self, config: LiveConfig) -> None:
        self.config = config
        self.connections = 0
        self._status: int | None = None
        self._headers: Mapping[str, str] = {}
        self._ccxt = build_client(config)
        self._inbox = Inbox(self._ccxt, config.symbol)
        # ccxt looks these up on the instance at each use, so a wrapper here is always called.
        self._read_errors = self._ccxt.handle_errors
        self._ccxt.handle_errors = self._handle_errors
        self._greet = self._ccxt.on_connected
        self._ccxt.on_connected = self._on_connected

    async def instrument(self) -> Instrument:
        """Return what the exchange says of the symbol; the first call loads its markets."""
        async with self._translated():
            await self._ccxt.load_markets()
            symbol = self.config.symbol
            if symbol not in self._ccxt.markets:
                raise no_symbol(self.config, tuple(self._ccxt.markets))
            return instrument_of(self.config, self._ccxt.markets[symbol], self._ccxt.precisionMode)

    def check_period(self, timeframe: str) -> None:
        """Raise ConfigError unless the exchange has bars of this period."""
        known = tuple(self._ccxt.timeframes or ())
        if timeframe not in known:
            raise unknown(f"bar period on {self.config.exchange}", timeframe, known)

    async def time_ms(self) -> int | None:
        """Return the exchange's clock, None if it does not tell the time."""
        if self._ccxt.has.get("fetchTime") is not True:
            return None
        async with self._translated():
            return int(await self._ccxt.fetch_time({}))

    async def bars_page(self, timeframe: str, since_ms: int, limit: int) -> list[list[Any]]:
        """Return one page of [ms, open, high, low, close, volume] from a time on."""
        self._require("fetchOHLCV")
        async with self._translated():
            rows = await self._ccxt.fetch_ohlcv(self.config.symbol, timeframe, since_ms, limit, {})
            return [list(row) for row in rows]

    async def order_book(self, depth: int) -> dict[str, Any]:
        """Return the book as the exchange gives it."""
        self._require("fetchOrderBook")
        async with self._translated():
            return dict(await self._ccxt.fetch_order_book(self.config.symbol, depth, {}))

    async def trades(self, since_ms: int | None, limit: int) -> list[dict[str, Any]]:
        """Return one page of public trades."""
        self._require("fetchTrades")
        async with self._translated():
            found = await self._ccxt.fetch_trades(self.config.symbol, since_ms, limit, {})
            return [dict(trade) for trade in found]

    async def watch_bars(self, timeframe: str) -> list[list[Any]]:
        """Return news of the running bar and of those before it, waiting if there is none."""
        self._require("watchOHLCV")
        async with self._translated():
            rows = self._inbox.bars(timeframe)
            if not rows:
                self._forget_if_lost()
                told = await self._ccxt.watch_ohlcv(self.config.symbol, timeframe, None, None, {})
                rows = self._inbox.bars(timeframe) or [list(row) for row in told]
            return rows

    async def watch_trades(self) -> list[dict[str, Any]]:
        """Return new trades, waiting if there are none."""
        self._require("watchTrades")
        async with self._translated():
            trades = self._inbox.trades()
            if not trades:
                self._forget_if_lost()
                told = await self._ccxt.watch_trades(self.config.symbol, None, None, {})
                trades = self._inbox.trades() or [dict(trade) for trade in told]
            return trades

    async def watch_order_book(self, depth: int) -> dict[str, Any]:
        """Return the book after a change, waiting if there is none.

        The whole book is kept up to date and cut here: a book kept at ``depth`` levels would run
        short as soon as its best levels are taken away.
        """
        self._require("watchOrderBook")
        async with self._translated():
            book = self._inbox.book()
            if book is None:
                self._forget_if_lost()
                told = await self._ccxt.watch_order_book(self.config.symbol, None, {})
                book = self._inbox.book() or told
            sides = {side: [tuple(level) for level in book[side][:depth]] for side in _SIDES}
            return {"timestamp": book["timestamp"], "nonce": book["nonce"], **sides}

    async def drop_streams(self) -> None:
        """Close the websockets and forget what came through them; the next watch starts afresh."""
        for client in self._ccxt.clients.values():
            wire = client.connection and client.connection.get_extra_info("socket")
            # A polite goodbye would wait ten seconds for the answer of a server that is gone.
            with suppress(OSError):
                if wire is not None:
                    wire.shutdown(SHUT_RDWR)
        await self._ccxt.close_ws_clients()
        self._inbox.clear()

    async def close(self) -> None:
        """Give back sockets and sessions."""
        await self._ccxt.close()

    def _forget_if_lost(self) -> None:
        """Forget the past of a connection that is gone, before ccxt opens another by itself."""
        if self.connections and not self._ccxt.clients:
            self._inbox.clear()

    def _require(self, ability: str) -> None:
        if self._ccxt.has.get(ability) is not True:
            raise ConfigError(
                f"{self.config.exchange} cannot do {ability}",
                remedy="Use another exchange, or another kind of data",
            )

    def _on_connected(self, client: Any, message: Any = None) -> None:
        self.connections += 1
        self._greet(client, message)

    def _handle_errors(self, code: int, *answer: Any) -> Any:
        """Note the status, let ccxt judge, and refuse a good status without readable JSON."""
        headers, parsed = answer[3], answer[5]
        self._status, self._headers = code, headers or {}
        verdict = self._read_errors(code, *answer)
        if 200 <= code < 300 and parsed is None:
            raise ccxt.BadResponse("the answer is not JSON, or was cut short")
        return verdict

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        self._status = None
        try:
            yield
        except ccxt.BaseError as error:
            raise self._verdict(error) from error
        except _UNREADABLE as error:
            raise Hiccup(_line(f"unreadable answer: {error!r}")) from error
        except asyncio.CancelledError:
            # ccxt cancels its own futures when a socket closes; only a cancelled task is ours.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Hiccup("the connection was closed") from None

    def _verdict(self, error: Any) -> Exception:
        because = f" ({error.__cause__})" if error.__cause__ is not None else ""
        reason = _line(f"{type(error).__name__}: {error}{because}")
        if self._status == BANNED:
            wait = _seconds(self._headers)
            return DataError(
                f"{self.config.exchange} has banned this address for asking too often",
                found=reason,
                remedy=f"Wait {'some minutes' if wait is None else f'{wait:.0f} s'} "
                "before the next request, and raise rate_limit_ms",
            )
        if isinstance(error, ccxt.BadSymbol):
            return no_symbol(self.config, ())
        passing = (ccxt.OperationFailed, ccxt.ExchangeClosedByUser)
        if isinstance(error, passing) or _is_transport(error):
            return Hiccup(reason, _seconds(self._headers) if self._status == TOO_MANY else None)
        return DataError(
            f"{self.config.exchange} refuses the request",
            where=self.config.symbol,
            found=reason,
            remedy="No other data is put in its place: change the request or the exchange",
        )


def _is_transport(error: BaseException) -> bool:
    """Return whether the network failed below ccxt, which calls some of this a refusal."""
    cause = error.__cause__
    return cause is not None and type(cause).__module__.partition(".")[0] == "aiohttp"


def _seconds(headers: Mapping[str, str]) -> float | None:
    text = next((value for key, value in headers.items() if key.lower() == "retry-after"), "")
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0.0 else None


def _line(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:300]
