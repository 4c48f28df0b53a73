from __future__ import annotations

import asyncio
from typing import Any

from local_exchange import START_MS, LocalExchange, depth_news, trade_news
from stream_runs import run

from agent_gym.markets.live import Gap, MarketDataLoader

MS_NS = 1_000_000

# --- trades ------------------------------------------------------------------------------------


def flat(events: list[Any]) -> list[Any]:
    found: list[Any] = []
    for event in events:
        found.extend([event] if isinstance(event, Gap) else [int(name) for name in event.ids])
    return found


async def until(stream: Any, last: int) -> list[Any]:
    events: list[Any] = []
    async with stream:
        while not events or last not in flat(events):
            events.append(await anext(stream))
    return events


def test_trades_arrive_once_each(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([trade_news(n) for n in (1, 2, 2, 3, 1, 4)])
    stream = MarketDataLoader(make_config()).stream_trades()
    assert flat(run(until(stream, 4))) == [1, 2, 3, 4]
    assert exchange.subscribed == ["btcusdt@trade"]


def test_trades_lost_in_a_drop_are_counted(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([*(trade_news(n) for n in range(1, 31)), 0.05, "drop"])
    exchange.scripts.append([trade_news(n) for n in (41, 42)])
    stream = MarketDataLoader(make_config()).stream_trades()
    told = flat(run(until(stream, 42)))
    gap = told.pop(30)
    assert told == [*range(1, 31), 41, 42]
    assert gap.missing == 10
    assert (gap.from_ns, gap.until_ns) == (
        (START_MS + 3000) * MS_NS,
        (START_MS + 4100) * MS_NS,
    )


def test_a_drop_between_two_trades_loses_nothing(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([*(trade_news(n) for n in range(1, 6)), 0.05, "drop"])
    exchange.scripts.append([trade_news(n) for n in (5, 6, 7)])
    stream = MarketDataLoader(make_config()).stream_trades()
    assert flat(run(until(stream, 7))) == [1, 2, 3, 4, 5, 6, 7]
    assert stream.health.reconnects == 1


def test_a_burst_larger_than_ccxt_holds_by_default_is_not_lost(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append([trade_news(n) for n in range(1, 3001)])

    async def dawdle() -> list[Any]:
        async with MarketDataLoader(make_config()).stream_trades() as stream:
            events = [await anext(stream)]
            await asyncio.sleep(0.8)
            while 3000 not in flat(events):
                events.append(await anext(stream))
        return events

    assert flat(run(dawdle())) == list(range(1, 3001))


# --- order books -------------------------------------------------------------------------------


def test_the_book_follows_its_changes(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append(
        [
            0.1,
            depth_news(101, 102, [["100.0", "0"]], []),
            0.05,
            depth_news(103, 103, [["99.7", "9"]], [["100.5", "1"]]),
        ]
    )
    stream = MarketDataLoader(make_config()).stream_order_book(depth=2)

    async def read() -> Any:
        async with stream:
            async for book in stream:
                if not isinstance(book, Gap) and book.update_id == 103:
                    return book
        return None

    book = run(read())
    assert book.bid_price.tolist() == [99.7, 99.5]
    assert book.bid_size.tolist() == [9.0, 4.0]
    assert book.ask_size.tolist() == [1.0, 6.0]
    assert book.ts_ns == (START_MS + 103) * MS_NS


def test_a_skipped_change_starts_the_book_afresh_and_says_so(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append(
        [0.1, depth_news(101, 101, [], [["100.5", "1"]]), 0.05, depth_news(110, 111, [], [])]
    )
    exchange.scripts.append([0.1, depth_news(201, 201, [["100.0", "8"]], [])])
    stream = MarketDataLoader(make_config()).stream_order_book()

    async def read() -> list[Any]:
        events: list[Any] = []
        async with stream:
            async for event in stream:
                events.append(event)
                if not isinstance(event, Gap) and event.update_id == 101:
                    exchange.depth = exchange.depth | {"lastUpdateId": 200}
                if not isinstance(event, Gap) and event.update_id == 201:
                    return events
        return events

    events = run(read())
    gaps = [event for event in events if isinstance(event, Gap)]
    assert len(gaps) == 1
    assert gaps[0].missing is None
    assert stream.health.gaps == 1
    assert events[-1].bid_size[0] == 8.0


def test_a_crossed_book_is_not_handed_on(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([0.1, depth_news(101, 101, [["105.0", "1"]], [])])
    exchange.scripts.append([0.1, depth_news(101, 101, [["100.2", "1"]], [])])
    stream = MarketDataLoader(make_config()).stream_order_book()

    async def read() -> list[Any]:
        events: list[Any] = []
        async with stream:
            async for event in stream:
                events.append(event)
                if not isinstance(event, Gap) and event.update_id == 101:
                    return events
        return events

    books = [event for event in run(read()) if not isinstance(event, Gap)]
    assert all(book.spread > 0.0 for book in books)
    assert books[-1].bid_price[0] == 100.2
    assert stream.health.reconnects == 1
