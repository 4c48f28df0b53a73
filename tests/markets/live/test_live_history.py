from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_exchange import DAY_MS, INTERVAL_MS, START_MS, LocalExchange, row

from agent_gym.core.clock import DAY_NS, HOUR_NS, ManualClock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.cache import BarCache
from agent_gym.markets.live import FetchProgress, MarketDataLoader

MS_NS = 1_000_000
START = START_MS * MS_NS
HOUR_MS = INTERVAL_MS["1h"]


def rows_of(bars: Any) -> Any:
    return np.column_stack([bars.ts // MS_NS, *(bars.columns()[n] for n in bars.columns())])


def true_rows(first_ms: int, count: int, step_ms: int = HOUR_MS) -> Any:
    return np.array([row(first_ms + n * step_ms, step_ms) for n in range(count)])


def test_a_span_over_several_pages_is_what_the_exchange_has(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.page_cap = 100
    bars = make_loader(page_limit=100).fetch_ohlcv("1h", START, START + 10 * DAY_NS)
    assert np.array_equal(rows_of(bars), true_rows(START_MS, 241))
    assert bars.provenance.details["pages"] == 3


def test_the_requested_span_is_the_span_that_is_loaded(make_loader: Any) -> None:
    # F2: "a year" that was 1000 candles. Here the count is exact or an error.
    bars = make_loader().fetch_ohlcv("1m", START, START + 31 * DAY_NS - 1)
    assert len(bars) == 44_640
    assert (int(bars.ts[0]), int(bars.ts[-1])) == (START, START + 31 * DAY_NS - 60 * 10**9)


def test_both_ends_are_clipped(make_loader: Any) -> None:
    inside = make_loader().fetch_ohlcv("1h", START + 1, START + 5 * HOUR_NS + 1)
    assert (inside.ts // HOUR_NS - START // HOUR_NS).tolist() == [1, 2, 3, 4, 5]
    edges = make_loader().fetch_ohlcv("1h", START, START + 2 * HOUR_NS)
    assert (edges.ts // HOUR_NS - START // HOUR_NS).tolist() == [0, 1, 2]


def test_a_server_with_only_recent_history_is_an_error(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.always["klines"] = "recent"
    for gaps in ("raise", "keep"):
        with pytest.raises(DataError, match=r"missing|no bars"):
            make_loader().fetch_ohlcv("1h", START, START + 5 * DAY_NS, gaps=gaps)


@pytest.mark.parametrize("offset_ms", [0, 1, HOUR_MS // 2, HOUR_MS - 1])
def test_the_unfinished_bar_is_dropped(
    exchange: LocalExchange, make_loader: Any, offset_ms: int
) -> None:
    exchange.now_ms = START_MS + 10 * HOUR_MS + offset_ms
    bars = make_loader().fetch_ohlcv("1h", START, START + 400 * DAY_NS)
    assert len(bars) == 10
    assert int(bars.ts[-1]) + bars.period_ns <= exchange.now_ms * MS_NS


def test_the_exchanges_clock_decides_what_is_finished(
    exchange: LocalExchange, make_config: Any
) -> None:
    exchange.now_ms = START_MS + 3 * HOUR_MS + 5
    fast = ManualClock((exchange.now_ms + HOUR_MS) * MS_NS)
    with MarketDataLoader(make_config(), clock=fast) as loader:
        bars = loader.fetch_ohlcv("1h", START, START + DAY_NS)
    assert len(bars) == 3


def test_weekly_bars_keep_their_own_grid(make_loader: Any) -> None:
    bars = make_loader().fetch_ohlcv("1w", START, START + 60 * DAY_NS)
    assert len(bars) == 9
    assert int(bars.ts[0]) % bars.period_ns == 4 * DAY_NS
    assert bars.provenance.details["gap_count"] == 0


def test_provenance_says_where_from_what_and_how_much(make_loader: Any) -> None:
    bars = make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    told = bars.describe()
    assert (told["source"], told["origin"], told["sandbox"]) == ("exchange", "binance", False)
    details = told["details"]
    assert details["first_bar"] == "2024-01-01T00:00:00Z"
    assert details["last_bar"] == "2024-01-02T00:00:00Z"
    assert details["bars"] == 25
    assert details["fingerprint"] == bars.fingerprint
    assert (details["pages"], details["retries"]) == (1, 0)
    assert bars.instrument.model_dump() == {
        "symbol": "BTC/USDT",
        "exchange": "binance",
        "kind": "spot",
        "tick": 0.01,
        "lot": 0.00001,
        "min_notional": 5.0,
    }


def test_the_test_network_is_marked(make_loader: Any) -> None:
    assert make_loader(sandbox=True).fetch_ohlcv("1h", START, START + DAY_NS).provenance.sandbox


def test_a_perpetual_is_fetched_from_the_futures_side(
    exchange: LocalExchange, make_loader: Any
) -> None:
    bars = make_loader(symbol="BTC/USDT:USDT").fetch_ohlcv("1h", START, START + DAY_NS)
    assert bars.instrument.kind == "perpetual"
    assert exchange.requests[-1][0] == "/fapi/v1/klines"


def test_progress_reaches_the_whole_and_estimates_the_rest(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.page_cap = 50
    seen: list[FetchProgress] = []
    make_loader(page_limit=50).fetch_ohlcv("1h", START, START + 5 * DAY_NS, progress=seen.append)
    assert [step.loaded for step in seen] == [50, 99, 121]
    assert {step.expected for step in seen} == {121}
    assert FetchProgress(50, 150, 1, 10.0).eta_s == 20.0
    assert FetchProgress(0, 150, 1, 10.0).eta_s is None
    assert FetchProgress(160, 150, 1, 10.0).eta_s == 0.0


@pytest.mark.parametrize(
    ("changes", "period", "text"),
    [
        ({"symbol": "BTC/USDX"}, "1h", "Did you mean BTC/USDT"),
        ({"symbol": "nonsense"}, "1h", "no market"),
        ({}, "7h", "no bar period on binance"),
        ({}, "soon", "not a bar period"),
    ],
)
def test_what_does_not_exist_is_a_config_error(
    make_loader: Any, changes: dict[str, str], period: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        make_loader(**changes).fetch_ohlcv(period, START, START + DAY_NS)


def test_spans_that_make_no_sense(make_loader: Any, clock: ManualClock) -> None:
    loader = make_loader()
    with pytest.raises(ConfigError, match="start is after the end"):
        loader.fetch_ohlcv("1h", START + 1, START)
    with pytest.raises(DataError, match="finished"):
        loader.fetch_ohlcv("1h", clock.now_ns(), clock.now_ns() + DAY_NS)


def test_it_works_inside_a_running_loop_and_after_close(make_loader: Any) -> None:
    loader = make_loader()

    async def notebook() -> int:
        return len(loader.fetch_ohlcv("1h", START, START + DAY_NS))

    assert asyncio.run(notebook()) == 25
    loader.close()
    assert "agent-gym-live" not in {thread.name for thread in threading.enumerate()}
    assert len(loader.fetch_ohlcv("1h", START, START + DAY_NS)) == 25


# --- the cache ---------------------------------------------------------------------------------


def test_a_cached_span_needs_no_network(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    cache = BarCache(tmp_path)
    first = make_loader(cache).fetch_ohlcv("1h", START, START + 40 * DAY_NS)
    asked = len(exchange.requests)
    again = make_loader(cache).fetch_ohlcv("1h", START, START + 40 * DAY_NS)
    assert len(exchange.requests) == asked
    assert again.fingerprint == first.fingerprint
    assert again.provenance.details["bars_from_cache"] == len(again)
    assert [(m.month, m.complete) for m in cache.months("binance", "BTC/USDT", "1h")] == [
        ("2024-01", True),
        ("2024-02", False),
    ]
    assert (tmp_path / "binance" / "BTC-USDT" / "1h" / "2024-01.parquet").is_file()


def test_only_what_is_missing_is_fetched(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    cache = BarCache(tmp_path)
    make_loader(cache).fetch_ohlcv("1h", START + 10 * DAY_NS, START + 20 * DAY_NS)
    exchange.requests.clear()
    bars = make_loader(cache).fetch_ohlcv("1h", START, START + 30 * DAY_NS)
    assert np.array_equal(rows_of(bars), true_rows(START_MS, 721))
    starts = [int(query["startTime"]) for query in exchange.asked("klines")]
    assert starts == [START_MS, START_MS + 20 * DAY_MS + HOUR_MS]


def test_an_interrupted_download_resumes(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.page_cap = 100
    cache = BarCache(tmp_path)
    pages = 0

    def interrupt(_: FetchProgress) -> None:
        nonlocal pages
        pages += 1
        if pages == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_loader(cache, page_limit=100).fetch_ohlcv(
            "1h", START, START + 60 * DAY_NS, progress=interrupt
        )
    months = cache.months("binance", "BTC/USDT", "1h")
    assert [(m.month, m.complete) for m in months] == [("2024-01", True), ("2024-02", False)]
    assert sum(m.rows for m in months) == 100 + 9 * 99
    exchange.requests.clear()
    bars = make_loader(cache, page_limit=100).fetch_ohlcv("1h", START, START + 60 * DAY_NS)
    assert np.array_equal(rows_of(bars), true_rows(START_MS, 1441))
    assert int(exchange.asked("klines")[0]["startTime"]) == START_MS + 991 * HOUR_MS


def test_a_failed_download_keeps_its_whole_pages(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.page_cap = 100
    exchange.faults["klines"].extend(["", "", *["500"] * 3])
    cache = BarCache(tmp_path)
    with pytest.raises(DataError, match="did not answer"):
        make_loader(cache, page_limit=100, max_retries=2).fetch_ohlcv(
            "1h", START, START + 20 * DAY_NS
        )
    assert [m.rows for m in cache.months("binance", "BTC/USDT", "1h")] == [199]


def test_an_unfinished_bar_never_lands_in_the_cache(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    cache = BarCache(tmp_path)
    exchange.now_ms = START_MS + 10 * HOUR_MS + 30 * 60_000
    make_loader(cache).fetch_ohlcv("1h", START, START + 400 * DAY_NS)
    assert [m.rows for m in cache.months("binance", "BTC/USDT", "1h")] == [10]
    exchange.now_ms = START_MS + 12 * HOUR_MS
    bars = make_loader(cache).fetch_ohlcv("1h", START, START + 400 * DAY_NS)
    assert np.array_equal(rows_of(bars), true_rows(START_MS, 12))


def test_another_server_does_not_mix_into_a_cache(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    cache = BarCache(tmp_path)
    make_loader(cache).fetch_ohlcv("1h", START, START + DAY_NS)
    other = exchange.url.replace("127.0.0.1", "localhost")
    for end in (START + DAY_NS, START + 2 * DAY_NS):
        with pytest.raises(DataError, match="server"):
            make_loader(cache, base_url=other).fetch_ohlcv("1h", START, end)


def test_the_test_network_needs_its_own_cache(tmp_path: Path, make_loader: Any) -> None:
    with pytest.raises(ConfigError, match="test network"):
        make_loader(BarCache(tmp_path), sandbox=True)
    cache = BarCache(tmp_path, sandbox=True)
    make_loader(cache, sandbox=True).fetch_ohlcv("1h", START, START + DAY_NS)
    assert (tmp_path / "binance.sandbox" / "BTC-USDT" / "1h" / "2024-01.parquet").is_file()


def test_a_damaged_month_stops_the_download(tmp_path: Path, make_loader: Any) -> None:
    cache = BarCache(tmp_path)
    make_loader(cache).fetch_ohlcv("1h", START, START + DAY_NS)
    path = tmp_path / "binance" / "BTC-USDT" / "1h" / "2024-01.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"2024-01\.parquet.*Delete this file"):
        make_loader(cache).fetch_ohlcv("1h", START, START + DAY_NS)
