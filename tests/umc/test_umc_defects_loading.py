"""Traps of loading: another period than asked, invented data, streams that never end."""

import asyncio
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from agent_gym.core.clock import DAY_NS, ManualClock
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.markets.live import LiveConfig, MarketDataLoader
from agent_gym.markets.live.adapter import Hiccup
from agent_gym.markets.live.retry import Retrier
from agent_gym.markets.quality import Expected, check_bars
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.source import open_market
from tests.markets.live.local_exchange import START_MS, LocalExchange, kline_news
from tests.markets.live.stream_runs import run, take
from tests.samples import random_bars

MS_NS = 1_000_000
START = START_MS * MS_NS


@pytest.fixture(scope="module")
def server():
    made = LocalExchange()
    yield made
    made.close()


@pytest.fixture
def exchange(server):
    server.reset()
    return server


def live(exchange, **changes):
    quick = {"base_url": exchange.url, "rate_limit_ms": 0.1, "timeout_s": 5.0}
    waits = {"backoff_base_s": 0.01, "backoff_cap_s": 0.02, "stale_after_s": 5.0}
    return LiveConfig.model_validate(quick | waits | changes)


def fetched(exchange, period="1h", days=2, **changes):
    clock = ManualClock(exchange.now_ms * MS_NS)
    with MarketDataLoader(live(exchange, **changes), clock=clock) as loader:
        return loader.fetch_ohlcv(period, START, START + days * DAY_NS)


# --- what was asked for, or an error -------------------------------------------------------------


def table(n=72):
    bars = random_bars(n, 5, kind="spot")
    named = {"open_time": bars.ts // MS_NS}
    return pl.DataFrame(named | {name: bars.columns()[name] for name in bars.columns()})


def spoiled(kind):
    rows = table()
    if kind == "gap":
        return pl.concat([rows[:30], rows[35:]])
    if kind == "twice":
        return pl.concat([rows[:30], rows[29:]])
    if kind == "disorder":
        return pl.concat([rows[:10], rows[20:30], rows[10:20], rows[30:]])
    return rows


@pytest.mark.parametrize("kind", ["gap", "twice", "disorder"])
def test_d28_a_gap_a_double_and_a_step_back_are_errors(tmp_path, kind):
    path = tmp_path / "bars.csv"
    spoiled(kind).write_csv(path)
    with pytest.raises(DataError):
        read_bars(path)
    spoiled("").write_csv(path)
    assert len(read_bars(path)) == 72


def test_d28_another_period_or_span_than_asked_is_an_error(tmp_path):
    path = tmp_path / "bars.csv"
    table().write_csv(path)
    for asked in (ReadRequest(period="1m"), ReadRequest(start="2024-01-01", end="2024-02-01")):
        with pytest.raises(DataError):
            read_bars(path, request=asked)


def test_d28_a_year_of_one_page_is_found_out():
    """A thousand minutes were once taken for a year: the count is off by 99.8 %."""
    page = replace(random_bars(1_000, 1), period_ns=60 * 10**9)
    page = replace(page, ts=START + page.period_ns * np.arange(1_000))
    year = Expected(start_ns=START, end_ns=START + 365 * DAY_NS)
    assert "too_few_bars" in check_bars(page, source_name="a", expected=year).counts
    hours = Expected(start_ns=START, end_ns=START + 999 * page.period_ns)
    assert check_bars(page, source_name="a", expected=hours).ok


@pytest.mark.parametrize("fault", ["500", "html", "recent"])
def test_d28_where_the_exchange_fails_nothing_is_invented(exchange, fault):
    exchange.always["klines"] = fault
    with pytest.raises(DataError):
        fetched(exchange, max_retries=1)
    del exchange.always["klines"]
    bars = fetched(exchange)
    assert len(bars) == 49  # both ends included
    assert bars.provenance.source == "exchange"


def test_d28_a_made_market_says_so():
    made = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 300}), Seeds(1))
    assert made.provenance.source == "synthetic"
    assert made.describe()["origin"] == "synthetic/btc-1h"


def test_d27_the_bar_that_is_still_open_is_no_bar(exchange):
    exchange.now_ms = START_MS + 10 * 3_600_000 + 1_800_000
    bars = fetched(exchange, days=30)
    assert len(bars) == 10
    assert int(bars.ts[-1]) + bars.period_ns <= exchange.now_ms * MS_NS


# --- streams -------------------------------------------------------------------------------------


def news(minute, close=100.0):
    return kline_news(START_MS + minute * 60_000, close)


def test_d30_a_stream_that_keeps_failing_backs_off_and_ends_in_an_error(exchange):
    exchange.scripts.append([news(0), news(1), 0.05, "drop"])
    exchange.scripts.extend([["drop"]] * 20)
    stream = MarketDataLoader(live(exchange, max_reconnects=3)).stream_bars("1m")
    with pytest.raises(DataError, match="4 tries"):
        run(take(stream, 100))
    assert len(exchange.scripts) == 17  # and it left the rest alone


def test_d30_a_stream_can_be_stopped_while_it_waits(exchange):
    exchange.scripts.append([news(0), news(1)])

    async def stopped():
        stream = MarketDataLoader(live(exchange)).stream_bars("1m")
        first = await anext(stream)
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.05)
        assert not waiting.done()  # the loop is not blocked: this line is reached
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting
        return first

    assert run(stopped()).close == 100.0


def test_d30_waits_grow_and_tries_end():
    clock = ManualClock()
    config = LiveConfig(backoff_base_s=1.0, backoff_cap_s=64.0, max_retries=4)
    retrier = Retrier(config, clock)
    assert retrier.call("a first word", lambda: "hello") == "hello"
    tried = []

    def fail():
        tried.append(clock.monotonic_s())
        raise Hiccup("busy")

    with pytest.raises(DataError, match="5 tries"):
        retrier.call("bars", fail)
    waits = np.diff(tried)
    assert len(waits) == 4
    assert waits[-1] > 2.0 * waits[0]
    assert waits.min() >= 0.5


# --- prices of a test network --------------------------------------------------------------------


def test_d31_a_test_network_is_marked_in_the_bars_and_in_every_result(exchange):
    marked, plain = fetched(exchange, days=5, sandbox=True), fetched(exchange, days=5)
    assert (marked.provenance.sandbox, plain.provenance.sandbox) == (True, False)
    for bars in (marked, plain):
        header = BacktestEngine().run(bars, Ref(use="rules/buy-hold")).payload()["provenance"]
        assert header["sandbox"] is bars.provenance.sandbox
        assert (header["source"], header["origin"]) == ("exchange", "binance")
        assert (header["rows"], header["fingerprint"]) == (121, bars.fingerprint)
        assert (header["first_ns"], header["last_ns"]) == (START, START + 5 * DAY_NS)
