from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.captures import Capture, parse_binance_capture
from agent_gym.markets.features import compute_features
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.order_flow import (
    attach_book_columns,
    bars_from_trades,
    order_book_imbalance,
    order_flow_imbalance,
    quoted_spread,
)

TICK = 0.1
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "BTCUSDT_perp_L2_raw_20240808.gz"


@pytest.fixture(scope="module")
def real() -> Capture:
    if not REAL.exists():
        pytest.skip(f"the real capture is not here: {REAL}")
    return parse_binance_capture(REAL)


def autocorrelation(values: FloatArray, lag: int) -> float:
    centred = values - values.mean()
    return float((centred[lag:] * centred[:-lag]).mean() / centred.var())


def hill(values: FloatArray, share: float) -> float:
    top = np.sort(values)[::-1]
    count = int(share * top.size)
    return float(1.0 / np.log(top[:count] / top[count]).mean())


def test_everything_in_the_real_capture_is_read(real: Capture) -> None:
    assert real.symbol == "BTCUSDT"
    assert (len(real.quotes), len(real.tape)) == (66_089, 21_313)
    assert real.ignored == {}
    assert real.book is not None
    assert (real.quotes.ts[-1] - real.quotes.ts[0]) / SECOND_NS == pytest.approx(344, abs=1)


def test_known_facts_of_the_real_book(real: Capture) -> None:
    ticks = np.round(quoted_spread(real.quotes) / TICK)
    assert (ticks == 1).mean() == pytest.approx(0.94, abs=0.005)
    assert np.percentile(ticks, 99) == 29
    signs = real.tape.side.astype(np.float64)
    found = [autocorrelation(signs, lag) for lag in (1, 10, 100)]
    assert found == pytest.approx([0.79, 0.58, 0.25], abs=0.005)
    assert hill(real.tape.size, 0.01) == pytest.approx(1.35, abs=0.01)


def test_the_rebuilt_book_agrees_with_the_book_ticker(real: Capture) -> None:
    assert real.book is not None
    assert not np.isnan(real.book.bid).any()
    assert (np.diff(real.book.bid, axis=1) < 0.0).all()
    assert (np.diff(real.book.ask, axis=1) > 0.0).all()
    at = np.searchsorted(real.quotes.ts, real.book.ts, side="right") - 1
    heard = at >= 0
    # Both streams stamp milliseconds, so a few updates within one differ in order.
    assert (real.quotes.bid[at] == real.book.bid[:, 0])[heard].mean() > 0.998
    assert (real.quotes.ask[at] == real.book.ask[:, 0])[heard].mean() > 0.998


def test_takers_pay_the_ask_and_hit_the_bid(real: Capture) -> None:
    at = np.searchsorted(real.quotes.ts, real.tape.ts, side="left") - 1
    heard = at >= 0
    middle = 0.5 * (real.quotes.bid + real.quotes.ask)[at]
    agrees = np.sign(real.tape.price - middle) == real.tape.side
    assert agrees[heard].mean() > 0.8


def test_order_flow_moves_the_real_price(real: Capture) -> None:
    """The finding of Cont, Kukanov and Stoikov; it fails if a side or a sign is turned round."""
    bars = bars_from_trades(real.tape, SECOND_NS, Instrument())
    bars = attach_book_columns(bars, real.quotes, real.book, heard_until_ns=real.heard_until_ns)
    assert len(bars) == 342
    moved = bars.close - bars.open
    assert np.corrcoef(bars.extra["ofi"], moved)[0, 1] > 0.5
    in_one_go = np.nansum(order_flow_imbalance(real.quotes))
    assert abs(bars.extra["ofi"].sum() - in_one_go) < 60.0  # the ends are not in whole bars
    table = compute_features(bars)
    assert table.mask[200:, 8:13].all()
    assert table.values[200:, 8:13].var(axis=0).min() > 0.0


def test_book_leans_both_ways(real: Capture) -> None:
    assert real.book is not None
    imbalance = order_book_imbalance(real.book.bid_size, real.book.ask_size)
    assert np.abs(imbalance).max() <= 1.0
    assert -0.3 < imbalance.mean() < 0.3
    assert imbalance.std() > 0.3


def depth(first: int, last: int, before: int, **sides: Any) -> dict[str, Any]:
    levels = {"b": [], "a": [], **sides}
    return {"e": "depthUpdate", "T": last, "s": "X", "U": first, "u": last, "pu": before, **levels}


SNAPSHOT = {
    "lastUpdateId": 20,
    "T": 15,
    "bids": [["100", "1"], ["99", "2"]],
    "asks": [["101", "3"], ["102", "4"]],
}
OLD = depth(10, 19, 9, b=[["100", "77"]])
FIRST = depth(20, 25, 19, b=[["100.5", "6"], ["99", "0"]])
SECOND = depth(26, 30, 25, a=[["101", "0"], ["50", "0"]])


def write(path: Path, *messages: dict[str, Any]) -> Path:
    lines = [f"1723161255030314667 {json.dumps(message)}\n" for message in messages]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_book_is_rebuilt_from_the_snapshot_on(tmp_path: Path) -> None:
    capture = parse_binance_capture(write(tmp_path / "x", OLD, FIRST, SNAPSHOT, SECOND), levels=2)
    book = capture.book
    assert book is not None
    assert book.ts.tolist() == [15_000_000, 25_000_000, 30_000_000]
    np.testing.assert_array_equal(book.bid, [[100, 99], [100.5, 100], [100.5, 100]])
    np.testing.assert_array_equal(book.bid_size, [[1, 2], [6, 1], [6, 1]])
    np.testing.assert_array_equal(book.ask, [[101, 102], [101, 102], [102, np.nan]])
    np.testing.assert_array_equal(book.ask_size, [[3, 4], [3, 4], [4, 0]])
    assert capture.heard_until_ns == 30_000_000


@pytest.mark.parametrize("chain", [[depth(22, 25, 21)], [FIRST, depth(27, 30, 26)]])
def test_a_missing_difference_is_an_error(tmp_path: Path, chain: list[dict[str, Any]]) -> None:
    with pytest.raises(DataError, match="difference is missing"):
        parse_binance_capture(write(tmp_path / "x", SNAPSHOT, *chain))


def test_without_a_snapshot_there_is_no_book_and_it_is_said(tmp_path: Path) -> None:
    capture = parse_binance_capture(write(tmp_path / "x", FIRST, SECOND))
    assert capture.book is None
    assert capture.ignored == {"depthUpdate without a snapshot": 2}


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    trade = {"e": "trade", "T": 5, "t": 1, "p": "2", "q": "3", "m": True, "X": "MARKET", "s": "X"}
    fund = {**trade, "t": 2, "p": "0", "X": "INSURANCE_FUND"}
    mark = {"stream": "x@markPrice", "data": {"e": "markPriceUpdate", "s": "X"}}
    capture = parse_binance_capture(write(tmp_path / "x", trade, fund, mark))
    assert capture.tape.side.tolist() == [-1]
    assert capture.ignored == {"trade INSURANCE_FUND": 1, "markPriceUpdate": 1}


def test_two_symbols_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one symbol"):
        parse_binance_capture(write(tmp_path / "x", FIRST, {**SECOND, "s": "Y"}))
    with pytest.raises(DataError, match="one symbol"):
        parse_binance_capture(write(tmp_path / "y"))


def test_broken_files_say_where(tmp_path: Path) -> None:
    path = write(tmp_path / "x", FIRST)
    path.write_text(path.read_text() + '17 {"e": "trade", "X": "MARKET"}\n')
    with pytest.raises(DataError, match="x line 2"):
        parse_binance_capture(path)
    path.write_text("17 {not json\n")
    with pytest.raises(DataError, match="x line 1"):
        parse_binance_capture(path)
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(b"17 {}\n" * 500)[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        parse_binance_capture(packed)
    with pytest.raises(DataError, match="cannot be read"):
        parse_binance_capture(tmp_path / "absent.gz")
