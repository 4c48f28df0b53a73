from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from local_exchange import START_MS, LocalExchange, kline_news
from stream_runs import run, take

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.live import LiveBar, LiveConfig, MarketDataLoader
from agent_gym.markets.live.adapter import ExchangeClient

MINUTE_MS = 60_000
MS_NS = 1_000_000


def at(minute: int) -> int:
    return START_MS + minute * MINUTE_MS


def news(minute: int, close: float = 100.0) -> dict[str, Any]:
    return kline_news(at(minute), close)


def shown(events: list[Any]) -> list[Any]:
    """Return bars as (minute, close) and gaps as (from minute, until minute, missing)."""
    minute_ns = MINUTE_MS * MS_NS
    start = at(0) * MS_NS
    return [
        ((e.ts_ns - start) // minute_ns, e.close)
        if isinstance(e, LiveBar)
        else ((e.from_ns - start) // minute_ns, (e.until_ns - start) // minute_ns, e.missing)
        for e in events
    ]


# --- bars --------------------------------------------------------------------------------------


def test_a_bar_is_handed_on_once_it_is_finished(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append(
        [news(0, 101), news(0, 102), news(0, 103), news(1, 104), news(1, 105), news(2, 106)]
    )
    stream = MarketDataLoader(make_config()).stream_bars("1m")
    assert shown(run(take(stream, 2))) == [(0, 103.0), (1, 105.0)]
    assert exchange.subscribed == ["btcusdt@kline_1m"]
    assert stream.health.reconnects == 0
    assert stream.provenance.origin == "binance"


def test_a_drop_within_a_bar_repeats_nothing_and_hides_nothing(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append([news(0, 101), news(1, 102), 0.05, "drop"])
    # Back in time to see the end of bar 1: nothing is lost, bar 0 is not told twice.
    exchange.scripts.append([news(0, 101), news(1, 103), news(2, 104), news(3, 105)])
    stream = MarketDataLoader(make_config()).stream_bars("1m")
    assert shown(run(take(stream, 3))) == [(0, 101.0), (1, 103.0), (2, 104.0)]
    assert stream.health.reconnects == 1
    assert stream.health.gaps == 0


@pytest.mark.parametrize("how", ["drop", "close"])
def test_bars_lost_in_a_drop_are_reported(
    exchange: LocalExchange, make_config: Any, how: str
) -> None:
    exchange.scripts.append([news(0, 101), news(1, 102), 0.05, how])
    exchange.scripts.append([news(4, 103), news(5, 104)])
    stream = MarketDataLoader(make_config()).stream_bars("1m")
    events = run(take(stream, 3))
    # Bar 1 was seen half: it is part of the gap, never a bar.
    assert shown(events) == [(0, 101.0), (1, 4, 3), (4, 103.0)]
    assert events[1].reason
    assert (stream.health.reconnects, stream.health.gaps) == (1, 1)


def test_bars_the_exchange_skips_are_reported(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([news(0), news(1), news(5), news(6)])
    events = run(take(MarketDataLoader(make_config()).stream_bars("1m"), 4))
    assert shown(events) == [(0, 100.0), (1, 100.0), (2, 5, 3), (5, 100.0)]
    assert "exchange" in events[2].reason


def test_a_silent_stream_is_opened_again(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([news(0), news(1)])  # and then nothing, with the socket open
    exchange.scripts.append([news(1, 103), news(2)])
    stream = MarketDataLoader(make_config(stale_after_s=0.8)).stream_bars("1m")
    assert shown(run(take(stream, 2))) == [(0, 100.0), (1, 103.0)]
    assert stream.health.silences == 1
    assert stream.health.reconnects == 1


def test_a_deaf_server_does_not_hold_us_up(exchange: LocalExchange, make_config: Any) -> None:
    # It reads nothing any more, so it does not answer a goodbye; waiting for that takes 10 s.
    deaf = 60.0
    exchange.scripts.extend([[news(0), news(1), deaf], [news(1), deaf], [news(1), deaf]])
    exchange.scripts.append([news(1, 103), news(2), deaf])
    stream = MarketDataLoader(make_config(stale_after_s=0.8)).stream_bars("1m")
    assert shown(run(take(stream, 2))) == [(0, 100.0), (1, 103.0)]
    assert stream.health.silences == 3


def test_a_broken_message_does_not_stop_the_stream_for_ever(
    exchange: LocalExchange, make_config: Any
) -> None:
    # ccxt's receiver dies of it without a word; the silence is what gives it away.
    exchange.scripts.append([news(0), news(1), 0.05, '{"e": "kline", "k": {"t": 17'])
    exchange.scripts.append([news(1, 103), news(2)])
    stream = MarketDataLoader(make_config(stale_after_s=0.8)).stream_bars("1m")

    async def quietly() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return await take(stream, 2)

    assert shown(run(quietly())) == [(0, 100.0), (1, 103.0)]
    assert stream.health.silences == 1


def test_an_impossible_bar_is_not_handed_on(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([news(0), news(1, 1e9), 0.05])  # a close above the high
    exchange.scripts.append([news(1), news(2)])
    stream = MarketDataLoader(make_config()).stream_bars("1m")
    # Nothing after the last sound message is trusted, so the end of bar 0 counts as unseen.
    assert shown(run(take(stream, 2))) == [(0, 1, 1), (1, 100.0)]
    assert stream.health.reconnects == 1


def test_a_slow_reader_is_told_of_a_drop_it_did_not_see(
    exchange: LocalExchange, make_config: Any
) -> None:
    # The socket drops and ccxt connects anew while nobody waits for a message.
    exchange.scripts.append([news(0), news(1, 102), news(2, 103), 0.05, "drop"])
    exchange.scripts.append([news(5), news(6), news(7), 0.05, news(8), 0.05, news(9)])
    stream = MarketDataLoader(make_config()).stream_bars("1m")

    async def dawdle() -> list[Any]:
        async with stream:
            events = [await anext(stream)]
            await asyncio.sleep(0.3)
            events += [await anext(stream) for _ in range(3)]
        return events

    told = shown(run(dawdle()))
    assert told[:3] == [(0, 100.0), (1, 102.0), (2, 5, 3)]
    assert stream.health.reconnects == 1


def test_a_server_that_keeps_dropping_ends_in_an_error(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append([news(0), news(1), 0.05, "drop"])
    exchange.scripts.extend([["drop"]] * 20)
    stream = MarketDataLoader(make_config(max_reconnects=3)).stream_bars("1m")

    async def drain() -> None:
        async with stream:
            async for _ in stream:
                pass

    with pytest.raises(DataError, match=r"did not answer.*stream.*4 tries"):
        run(drain())
    assert 20 - len(exchange.scripts) == 3


def test_nobody_there_ends_in_an_error(make_config: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = make_config(base_url=f"http://127.0.0.1:{port}")
    with pytest.raises(DataError, match="cannot reach binance"):
        run(take(MarketDataLoader(config).stream_bars("1m"), 1))


def test_what_does_not_exist_is_a_config_error(make_config: Any) -> None:
    with pytest.raises(ConfigError, match="no market"):
        run(take(MarketDataLoader(make_config(symbol="X/Y")).stream_bars("1m"), 1))
    with pytest.raises(ConfigError, match="no bar period"):
        run(take(MarketDataLoader(make_config()).stream_bars("7m"), 1))


def test_an_exchange_without_streams_is_a_config_error() -> None:
    async def watch() -> None:
        client = ExchangeClient(LiveConfig(exchange="coinspot", base_url="http://127.0.0.1:9"))
        try:
            await client.watch_bars("1m")
        finally:
            await client.close()

    with pytest.raises(ConfigError, match="coinspot cannot do watchOHLCV"):
        run(watch())


# --- stopping ----------------------------------------------------------------------------------


def test_stopping_ends_a_waiting_reader_and_gives_back_the_socket(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append([news(0), news(1)])

    async def stop_while_waiting() -> list[Any]:
        stream = MarketDataLoader(make_config()).stream_bars("1m")

        async def read() -> list[Any]:
            return [event async for event in stream]

        reader = asyncio.create_task(read())
        while stream.health.messages < 1 or not exchange.sockets:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await stream.aclose()
        return await asyncio.wait_for(reader, 2.0)

    assert shown(run(stop_while_waiting())) == [(0, 100.0)]
    for _ in range(100):
        if not exchange.sockets:
            break
        asyncio.run(asyncio.sleep(0.01))
    assert not exchange.sockets


def test_stopping_before_the_first_message_leaves_nothing(make_config: Any) -> None:
    async def stop_at_once() -> None:
        stream = MarketDataLoader(make_config()).stream_bars("1m")
        reader = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await reader
        await stream.aclose()  # twice does no harm

    run(stop_at_once())


def test_a_reader_may_lose_patience_and_come_back(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.scripts.append([news(0), 0.3, news(1), news(2)])

    async def impatient() -> list[Any]:
        async with MarketDataLoader(make_config()).stream_bars("1m") as stream:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.15)
            return [await anext(stream), await anext(stream)]

    assert shown(run(impatient())) == [(0, 100.0), (1, 100.0)]


def test_a_stopped_stream_is_over(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([news(0), news(1)])
    stream = MarketDataLoader(make_config()).stream_bars("1m")
    run(take(stream, 1))
    with pytest.raises(StopAsyncIteration):
        run(anext(stream))


def test_futures_streams_are_not_taken_for_spot(exchange: LocalExchange, make_config: Any) -> None:
    exchange.scripts.append([news(0), news(1)])
    stream = MarketDataLoader(make_config(symbol="BTC/USDT:USDT")).stream_bars("1m")
    assert shown(run(take(stream, 1))) == [(0, 100.0)]
