"""Live streams by websocket: they reconnect, they stop cleanly, and they say what they missed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from typing_extensions import override

from agent_gym.core.errors import AgentGymError, DataError
from agent_gym.markets.bars import Provenance
from agent_gym.markets.live.adapter import ExchangeClient, Hiccup
from agent_gym.markets.live.books import OrderBook, Trades
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.retry import FIRST_CONTACT_RETRIES, exhausted, unreachable
from agent_gym.markets.live.trackers import BarTracker, BookTracker, Gap, LiveBar, TradeTracker
from agent_gym.markets.periods import format_period

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)


@dataclass(slots=True)
class StreamHealth:
    """What a stream has been through."""

    messages: int = 0
    reconnects: int = 0
    silences: int = 0
    gaps: int = 0
    duplicates: int = 0


class Tracker(Protocol[Event_co]):
    """Turns what arrives into events."""

    duplicates: int

    def reconnected(self, reason: str) -> None: ...
    def update(self, raw: Any) -> Iterator[Event_co | Gap]: ...


class Stream(ABC, Generic[Event]):
    """An async iterator of events and gaps; leave its ``async with`` block to stop it.

    A lost or silent connection is opened again after a growing pause. After too many failures in
    a row the stream ends with a DataError. ``health`` counts what happened.

    Example:
        async with loader.stream_bars("1m") as stream:
            async for event in stream:
                ...
    """

    def __init__(self, config: LiveConfig, tracker: Tracker[Event]) -> None:
        self.config = config
        self.health = StreamHealth()
        self._tracker = tracker
        self._client: ExchangeClient | None = None
        self._ready: deque[Event | Gap] = deque()
        self._closing = asyncio.Event()
        self._connections = 0
        self._failures = 0

    @property
    def provenance(self) -> Provenance:
        """Return where the data come from, for whoever keeps them."""
        config = self.config
        return Provenance(
            source="exchange",
            origin=config.exchange,
            sandbox=config.sandbox,
            details={"server": config.server},
        )

    @abstractmethod
    async def _watch(self, client: ExchangeClient) -> Any:
        """Wait for the next message."""

    async def _prepare(self, client: ExchangeClient) -> None:
        """Load the markets and refuse what the exchange does not have."""
        await client.instrument()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Gap:
        while not self._ready:
            if self._closing.is_set():
                raise StopAsyncIteration
            try:
                await self._receive()
            except AgentGymError:
                await self.aclose()
                raise
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Stop: a waiting ``__anext__`` ends, sockets and tasks are given back."""
        self._closing.set()
        client, self._client = self._client, None
        if client is not None:
            await client.drop_streams()
            await client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _receive(self) -> None:
        """Wait for one message and make events of it; a failure becomes a pause."""
        if self._client is None:
            self._client = ExchangeClient(self.config)
        client = self._client
        try:
            await self._prepare(client)
            if self._closing.is_set():
                return
            async with asyncio.timeout(self.config.stale_after_s):
                raw = await self._watch(client)
            self._take(client, raw)
        except TimeoutError:
            self.health.silences += 1
            await self._start_afresh(client, Hiccup("the stream fell silent"))
        except Hiccup as trouble:
            await self._start_afresh(client, trouble)

    def _take(self, client: ExchangeClient, raw: Any) -> None:
        if client.connections > self._connections > 0:
            # ccxt has connected anew by itself, while nobody was waiting for a message.
            self._note_reconnect(client, "the connection was lost")
        self._connections = client.connections
        try:
            for event in self._tracker.update(raw):
                self.health.gaps += isinstance(event, Gap)
                self._ready.append(event)
        except DataError as error:
            raise Hiccup(str(error)) from error
        self.health.duplicates = self._tracker.duplicates
        self.health.messages += 1
        self._failures = 0

    def _note_reconnect(self, client: ExchangeClient, reason: str) -> None:
        self.health.reconnects += 1
        self._connections = client.connections
        self._tracker.reconnected(reason)

    async def _start_afresh(self, client: ExchangeClient, trouble: Hiccup) -> None:
        if self._closing.is_set():
            return
        self._failures += 1
        self._give_up(trouble)
        await client.drop_streams()
        if self._connections:
            self._note_reconnect(client, trouble.reason)
            self._connections = 0
        asked_s = min(trouble.retry_after_s or 0.0, self.config.retry_after_cap_s)
        backoff_s = self.config.backoff_s(self.health.reconnects, self._failures - 1)
        try:
            async with asyncio.timeout(max(asked_s, backoff_s)):
                await self._closing.wait()
        except TimeoutError:
            return

    def _give_up(self, trouble: Hiccup) -> None:
        config = self.config
        first = min(config.max_reconnects, FIRST_CONTACT_RETRIES)
        if self.health.messages == 0 and self._failures > first:
            raise unreachable(config, trouble, self._failures) from trouble
        if self._failures > config.max_reconnects:
            raise exhausted(config, "its stream", trouble, self._failures) from trouble


class BarStream(Stream[LiveBar]):
    """Finished bars as they close."""

    def __init__(self, config: LiveConfig, period_ns: int) -> None:
        super().__init__(config, BarTracker(period_ns))
        self._timeframe = format_period(period_ns)

    @override
    async def _prepare(self, client: ExchangeClient) -> None:
        await client.instrument()
        client.check_period(self._timeframe)

    @override
    async def _watch(self, client: ExchangeClient) -> Any:
        return await client.watch_bars(self._timeframe)


class TradeStream(Stream[Trades]):
    """Trades as they happen, in the parts in which they arrive."""

    def __init__(self, config: LiveConfig) -> None:
        super().__init__(config, TradeTracker(f"{config.symbol} on {config.exchange}"))

    @override
    async def _watch(self, client: ExchangeClient) -> Any:
        return await client.watch_trades()


class OrderBookStream(Stream[OrderBook]):
    """The order book at each change."""

    def __init__(self, config: LiveConfig, depth: int) -> None:
        super().__init__(config, BookTracker(depth, f"{config.symbol} on {config.exchange}"))
        self._depth = depth

    @override
    async def _watch(self, client: ExchangeClient) -> Any:
        return await client.watch_order_book(self._depth)
