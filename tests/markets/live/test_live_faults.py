"""Each way in which an exchange can misbehave, and what the loader does about it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_exchange import INTERVAL_MS, START_MS, LocalExchange, row

from agent_gym.core.clock import DAY_NS, HOUR_NS, ManualClock
from agent_gym.core.errors import DataError
from agent_gym.markets.cache import BarCache
from agent_gym.markets.live import LiveConfig, MarketDataLoader
from agent_gym.markets.live.adapter import Hiccup
from agent_gym.markets.live.retry import Retrier

MS_NS = 1_000_000
START = START_MS * MS_NS
HOUR_MS = INTERVAL_MS["1h"]
PASSING = ["500", "timeout", "429", "truncated", "broken", "html", "drip"]


SLOW = ("timeout", "drip")


def patience(fault: str) -> dict[str, float]:
    return {"timeout_s": 0.4} if fault in SLOW else {}


def is_true(bars: Any, count: int) -> bool:
    truth = np.array([row(START_MS + n * HOUR_MS, HOUR_MS) for n in range(count)])
    columns = bars.columns()
    return np.array_equal(np.column_stack([bars.ts // MS_NS, *columns.values()]), truth)


@pytest.mark.parametrize("endpoint", ["klines", "exchangeInfo"])
@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_tried_again(
    exchange: LocalExchange, make_loader: Any, fault: str, endpoint: str
) -> None:
    exchange.faults[endpoint].append(fault)
    bars = make_loader(**patience(fault)).fetch_ohlcv("1h", START, START + DAY_NS)
    assert is_true(bars, 25)
    # A busy machine may run into the short time limit once more, hence no exact count there.
    retries = bars.provenance.details["retries"]
    assert retries == 1 or (retries > 1 and fault in SLOW)


@pytest.mark.parametrize("fault", PASSING)
def test_a_lasting_fault_ends_in_an_error_not_in_other_data(
    exchange: LocalExchange, make_loader: Any, fault: str
) -> None:
    exchange.always["klines"] = fault
    with pytest.raises(DataError, match="did not answer the request for 1h bars") as caught:
        make_loader(max_retries=1, **patience(fault)).fetch_ohlcv("1h", START, START + DAY_NS)
    assert len(exchange.asked("klines")) == 2
    assert "2 tries" in str(caught.value.found)


def test_waits_double_up_to_the_cap_and_are_the_same_each_time() -> None:
    config = LiveConfig(backoff_base_s=1.0, backoff_cap_s=8.0, seed=3)
    waits = [config.backoff_s(1, attempt) for attempt in range(8)]
    for attempt, wait in enumerate(waits):
        assert min(8.0, 2.0**attempt) / 2.0 <= wait <= min(8.0, 2.0**attempt)
    assert waits == [config.backoff_s(1, attempt) for attempt in range(8)]
    assert waits != [config.backoff_s(2, attempt) for attempt in range(8)]
    assert waits != [LiveConfig(seed=4).backoff_s(1, attempt) for attempt in range(8)]


def test_the_wait_between_tries_is_really_waited() -> None:
    clock = ManualClock()
    retrier = Retrier(LiveConfig(backoff_base_s=1.0, max_retries=3), clock)
    answers = iter([Hiccup("a"), Hiccup("b"), None])

    def act() -> str:
        answer = next(answers)
        if answer is not None:
            raise answer
        return "done"

    assert retrier.call("it", act) == "done"
    assert 1.5 <= clock.monotonic_s() <= 3.0
    assert retrier.retries == 2


def test_retry_after_is_obeyed(
    exchange: LocalExchange, make_loader: Any, clock: ManualClock
) -> None:
    exchange.retry_after = "45"
    exchange.faults["klines"].append("429")
    make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    assert clock.monotonic_s() >= 45.0


def test_a_retry_after_beyond_the_cap_is_an_error(
    exchange: LocalExchange, make_loader: Any, clock: ManualClock
) -> None:
    exchange.retry_after = "7200"
    exchange.faults["klines"].append("429")
    with pytest.raises(DataError, match="7200 s"):
        make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    assert clock.monotonic_s() == 0.0


def test_the_cap_on_retry_after_is_a_choice(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.retry_after = "45"
    exchange.faults["klines"].append("429")
    with pytest.raises(DataError, match="at most 30 s"):
        make_loader(retry_after_cap_s=30.0).fetch_ohlcv("1h", START, START + DAY_NS)


@pytest.mark.parametrize("header", ["soon", "-5", "nan", "inf", ""])
def test_a_senseless_retry_after_falls_back_to_our_own_pace(
    exchange: LocalExchange, make_loader: Any, clock: ManualClock, header: str
) -> None:
    exchange.retry_after = header
    exchange.faults["klines"].append("429")
    assert is_true(make_loader().fetch_ohlcv("1h", START, START + DAY_NS), 25)
    assert clock.monotonic_s() < 1.0


def test_a_ban_is_never_tried_again(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.retry_after = "300"
    exchange.always["klines"] = "418"
    with pytest.raises(DataError, match=r"banned.*Wait 300 s"):
        make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    assert len(exchange.asked("klines")) == 1


def test_an_answer_of_another_shape_is_not_taken_for_data(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.faults["klines"].append("strange")
    assert is_true(make_loader().fetch_ohlcv("1h", START, START + DAY_NS), 25)
    exchange.always["klines"] = "strange"
    with pytest.raises(DataError, match="no further bars"):
        make_loader().fetch_ohlcv("1h", START, START + DAY_NS)


@pytest.mark.parametrize("error", [TypeError, KeyError, IndexError, AttributeError, ValueError])
def test_what_ccxt_cannot_read_is_tried_again(
    make_loader: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    loader = make_loader()
    loader.instrument()
    reader = loader._client._ccxt
    read, failures = reader.parse_ohlcvs, iter([error("surprise")])

    def fail_once(*args: Any) -> Any:
        for failure in failures:
            raise failure
        return read(*args)

    monkeypatch.setattr(reader, "parse_ohlcvs", fail_once)
    bars = loader.fetch_ohlcv("1h", START, START + DAY_NS)
    assert bars.provenance.details["retries"] == 1


def test_a_refusal_is_not_tried_again_and_cannot_forge_a_log_line(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.always["klines"] = "forged"
    with pytest.raises(DataError, match="refuses the request") as caught:
        make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    assert len(exchange.asked("klines")) == 1
    assert str(caught.value).isprintable()


# --- pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["shuffled", "doubled", "overlap"])
def test_untidy_pages_are_put_in_order(
    exchange: LocalExchange, make_loader: Any, fault: str
) -> None:
    exchange.page_cap = 100
    exchange.always["klines"] = fault
    bars = make_loader(page_limit=100).fetch_ohlcv("1h", START, START + 10 * DAY_NS)
    assert is_true(bars, 241)


def test_an_empty_page_is_asked_for_again(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.page_cap = 100
    exchange.faults["klines"].extend(["", "empty"])
    bars = make_loader(page_limit=100).fetch_ohlcv("1h", START, START + 10 * DAY_NS)
    assert is_true(bars, 241)


@pytest.mark.parametrize("gaps", ["raise", "keep"])
@pytest.mark.parametrize("fault", ["same", "empty"])
def test_a_page_that_does_not_advance_is_an_error(
    exchange: LocalExchange, make_loader: Any, fault: str, gaps: str
) -> None:
    exchange.page_cap = 100
    exchange.always["klines"] = fault
    with pytest.raises(DataError, match=r"no further bars|too few bars"):
        make_loader(page_limit=100).fetch_ohlcv("1h", START, START + 30 * DAY_NS, gaps=gaps)
    assert len(exchange.asked("klines")) <= 3


def test_a_hole_raises_by_default_and_names_the_times(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.missing = {START_MS + 30 * HOUR_MS, START_MS + 31 * HOUR_MS}
    with pytest.raises(DataError, match="bars are missing") as caught:
        make_loader().fetch_ohlcv("1h", START, START + 20 * DAY_NS)
    assert caught.value.where == "from 2024-01-02T06:00:00Z to 2024-01-02T07:00:00Z"
    assert "keep-gaps" in str(caught.value.remedy)


def test_a_hole_can_be_kept_and_is_reported(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.missing = {START_MS + 30 * HOUR_MS, START_MS + 31 * HOUR_MS}
    bars = make_loader().fetch_ohlcv("1h", START, START + 20 * DAY_NS, gaps="keep")
    assert len(bars) == 479
    details = bars.provenance.details
    assert details["gap_count"] == 1
    assert details["gaps"] == [["2024-01-02T05:00:00Z", "2024-01-02T08:00:00Z"]]


@pytest.mark.parametrize("edge", [0, 480])
def test_a_hole_at_the_edge_is_a_hole(exchange: LocalExchange, make_loader: Any, edge: int) -> None:
    exchange.missing = {START_MS + edge * HOUR_MS}
    exchange.now_ms = START_MS + 500 * HOUR_MS
    with pytest.raises(DataError, match="bars are missing"):
        make_loader().fetch_ohlcv("1h", START, START + 480 * HOUR_NS)
    kept = make_loader().fetch_ohlcv("1h", START, START + 480 * HOUR_NS, gaps="keep")
    assert (len(kept), kept.provenance.details["gap_count"]) == (480, 1)


@pytest.mark.parametrize(("lost", "fine"), [(2, True), (3, False)])
def test_more_than_half_a_percent_missing_is_always_an_error(
    exchange: LocalExchange, make_loader: Any, lost: int, fine: bool
) -> None:
    exchange.missing = {START_MS + n * HOUR_MS for n in range(100, 100 + lost)}
    fetch = make_loader().fetch_ohlcv
    if fine:
        assert len(fetch("1h", START, START + 479 * HOUR_NS, gaps="keep")) == 478
    else:
        with pytest.raises(DataError, match="too few bars"):
            fetch("1h", START, START + 479 * HOUR_NS, gaps="keep")


def test_a_hole_wider_than_a_page_is_stepped_over(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.windowed = True
    exchange.missing = {START_MS + n * HOUR_MS for n in range(1001, 1023)}
    bars = make_loader(page_limit=20).fetch_ohlcv("1h", START, START + 4999 * HOUR_NS, gaps="keep")
    assert len(bars) == 4978
    assert bars.provenance.details["gap_count"] == 1


def test_a_symbol_listed_later_is_an_error(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.listed_ms = START_MS + 5 * HOUR_MS
    with pytest.raises(DataError, match="bars are missing") as caught:
        make_loader().fetch_ohlcv("1h", START, START + DAY_NS)
    assert caught.value.where == "from 2024-01-01T00:00:00Z to 2024-01-01T04:00:00Z"


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("contradiction", "two different bars"),
        ("negative", "non positive price"),
        ("null", "nan"),
        ("finer", "another period"),
    ],
)
def test_bars_that_cannot_be_true_are_refused_and_not_kept(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any, fault: str, text: str
) -> None:
    exchange.always["klines"] = fault
    with pytest.raises(DataError, match=text):
        make_loader(BarCache(tmp_path)).fetch_ohlcv("1h", START, START + DAY_NS)
    assert list(tmp_path.iterdir()) == []
    exchange.always.clear()
    assert is_true(make_loader(BarCache(tmp_path)).fetch_ohlcv("1h", START, START + DAY_NS), 25)


def test_a_history_that_changes_between_pages_is_refused(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.page_cap = 100
    exchange.faults["klines"].extend(["", "contradiction"])
    with pytest.raises(DataError, match="two different bars"):
        make_loader(page_limit=100).fetch_ohlcv("1h", START, START + 10 * DAY_NS)


def test_holes_are_kept_in_the_cache_too(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.missing = {START_MS + 30 * HOUR_MS}
    cache = BarCache(tmp_path)
    with pytest.raises(DataError, match="bars are missing"):
        make_loader(cache).fetch_ohlcv("1h", START, START + 20 * DAY_NS)
    exchange.requests.clear()
    kept = make_loader(cache).fetch_ohlcv("1h", START, START + 20 * DAY_NS, gaps="keep")
    assert len(kept) == 480
    assert exchange.requests == []
    with pytest.raises(DataError, match="bars are missing"):
        make_loader(cache).fetch_ohlcv("1h", START, START + 20 * DAY_NS)


def test_a_span_that_ends_in_a_hole_is_known_as_well(
    tmp_path: Path, exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.missing = {START_MS + n * HOUR_MS for n in (600, 601)}
    cache = BarCache(tmp_path)
    for end, count in ((599, 600), (600, 600), (601, 600), (605, 604)):
        bars = make_loader(cache).fetch_ohlcv("1h", START, START + end * HOUR_NS, gaps="keep")
        assert len(bars) == count
    exchange.requests.clear()
    make_loader(cache).fetch_ohlcv("1h", START, START + 605 * HOUR_NS, gaps="keep")
    assert exchange.requests == []


# --- nobody there ------------------------------------------------------------------------------


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_without_a_network_it_says_so_soon(closed_port: int) -> None:
    clock = ManualClock(START + 400 * DAY_NS)
    config = LiveConfig(base_url=f"http://127.0.0.1:{closed_port}")
    with (
        MarketDataLoader(config, clock=clock) as loader,
        pytest.raises(DataError, match="cannot reach binance") as caught,
    ):
        loader.fetch_ohlcv("1h", START, START + DAY_NS)
    assert clock.monotonic_s() <= 1.5
    assert "no synthetic data" in str(caught.value.remedy)
    assert str(closed_port) in str(caught.value.where)
