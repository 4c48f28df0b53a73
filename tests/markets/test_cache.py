from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.cache import BarCache
from agent_gym.markets.cache_months import month_span, months_of, runs_of
from agent_gym.markets.cache_names import exchange_folder, symbol_folder
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import read_native, write_bars

JANUARY, FEBRUARY = month_span("2024-01")
KEY = ("binance", "BTC/USDT", "1h")
REAL = Provenance(source="exchange", origin="binance", details={"server": "exchange"})


def hours(indices: range | list[int], start: int = JANUARY, shift: float = 0.0) -> Bars:
    ts = np.array([start + n * HOUR_NS for n in indices], dtype=np.int64)
    close = 100.0 + (ts - JANUARY) / HOUR_NS + shift
    return Bars(
        instrument=Instrument(symbol="BTC/USDT", exchange="binance", tick=0.01),
        period_ns=HOUR_NS,
        ts=ts,
        open=close,
        high=close + 1.0,
        low=close - 1.0,
        close=close,
        volume=np.ones(ts.size),
        provenance=REAL,
    )


def month_file(root: Path, month: str = "2024-01") -> Path:
    return root / "binance" / "BTC-USDT" / "1h" / f"{month}.parquet"


def test_what_was_stored_comes_back_to_the_bit(tmp_path: Path) -> None:
    bars = hours(range(2000))
    cache = BarCache(tmp_path)
    written = cache.store(bars)
    assert [path.name for path in written] == [f"2024-0{n}.parquet" for n in (1, 2, 3)]
    assert written[0] == month_file(tmp_path)
    back = BarCache(tmp_path).load(*KEY, JANUARY, int(bars.ts[-1]))
    assert back.fingerprint == bars.fingerprint
    assert back.provenance == bars.provenance
    part = cache.load(*KEY, JANUARY + 5 * HOUR_NS, JANUARY + 9 * HOUR_NS)
    assert part.fingerprint == bars.rows(5, 10).fingerprint


def test_complete_and_partial_months_are_known(tmp_path: Path) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(745)))
    months = cache.months(*KEY)
    assert [(m.month, m.rows, m.complete) for m in months] == [
        ("2024-01", 744, True),
        ("2024-02", 1, False),
    ]
    assert cache.missing(*KEY, JANUARY, FEBRUARY - 1) == []
    assert cache.missing(*KEY, JANUARY, FEBRUARY + 3 * HOUR_NS) == [
        (FEBRUARY + HOUR_NS, FEBRUARY + 3 * HOUR_NS + 1)
    ]


def test_an_empty_cache_lacks_everything(tmp_path: Path) -> None:
    cache = BarCache(tmp_path / "none")
    assert cache.missing(*KEY, 5, 9) == [(5, 10)]
    assert cache.months(*KEY) == ()
    with pytest.raises(DataError, match="does not hold the whole span"):
        cache.load(*KEY, 5, 9)
    assert not (tmp_path / "none").exists()
    assert cache.store(hours([])) == []


def test_a_hole_counts_as_known_only_if_it_was_asked_for(tmp_path: Path) -> None:
    holed = hours([0, 1, 2, 7, 8])
    guess, asked = BarCache(tmp_path / "a"), BarCache(tmp_path / "b")
    guess.store(holed)
    asked.store(holed, covered=(JANUARY, JANUARY + 9 * HOUR_NS))
    end = JANUARY + 8 * HOUR_NS
    assert guess.missing(*KEY, JANUARY, end) == [(JANUARY + 3 * HOUR_NS, JANUARY + 7 * HOUR_NS)]
    assert asked.missing(*KEY, JANUARY, end) == []
    assert len(asked.load(*KEY, JANUARY, end)) == 5
    with pytest.raises(DataError, match="1 missing spans"):
        guess.load(*KEY, JANUARY, end)


def test_an_interrupted_month_is_completed(tmp_path: Path) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(100, 200)))
    cache.store(hours(range(100)))
    cache.store(hours(range(200, 744)))
    assert [(m.rows, m.complete) for m in cache.months(*KEY)] == [(744, True)]
    back = cache.load(*KEY, JANUARY, FEBRUARY - 1)
    assert back.fingerprint == hours(range(744)).fingerprint


def test_a_bar_may_come_twice_but_not_with_two_values(tmp_path: Path) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(10)))
    cache.store(hours(range(5, 15)))
    assert len(cache.load(*KEY, JANUARY, JANUARY + 14 * HOUR_NS)) == 15
    before = month_file(tmp_path).read_bytes()
    with pytest.raises(DataError, match=r"differs.*2024-01\.parquet.*Delete this file"):
        cache.store(hours(range(14, 20), shift=0.5))
    assert month_file(tmp_path).read_bytes() == before


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 400)), min_size=1, max_size=5),
    st.tuples(st.integers(0, 1200), st.integers(0, 300)),
)
def test_missing_is_the_complement_of_what_was_stored(
    parts: list[tuple[int, int]], request: tuple[int, int]
) -> None:
    with TemporaryDirectory() as name:
        cache = BarCache(Path(name))
        known: set[int] = set()
        for first, count in parts:
            cache.store(hours(range(first, first + count)))
            known |= set(range(first, first + count))
        start, stop = request[0], sum(request)
        spans = cache.missing(*KEY, JANUARY + start * HOUR_NS, JANUARY + stop * HOUR_NS)
        lacking = {
            n
            for n in range(start, stop + 1)
            if any(low <= JANUARY + n * HOUR_NS < high for low, high in spans)
        }
        assert lacking == set(range(start, stop + 1)) - known
        if not lacking:
            ends = JANUARY + start * HOUR_NS, JANUARY + stop * HOUR_NS
            assert len(cache.load(*KEY, *ends)) == stop - start + 1


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, damage: str) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(744)))
    path = month_file(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-100]
    if damage == "flip":
        content[200] ^= 0xFF
    path.write_bytes({"empty": b"", "text": b"hello"}.get(damage, bytes(content)))
    for attempt in (
        lambda: cache.load(*KEY, JANUARY, FEBRUARY - 1),
        lambda: cache.missing(*KEY, JANUARY, FEBRUARY - 1),
        lambda: cache.months(*KEY),
        lambda: cache.store(hours(range(5))),
    ):
        with pytest.raises(DataError) as caught:
            attempt()
        assert caught.value.where == str(path)
        assert "Delete this file" in str(caught.value.remedy)


def test_a_file_in_the_wrong_place_is_refused(tmp_path: Path) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(744)))
    good = month_file(tmp_path)
    elsewhere = tmp_path / "binance" / "ETH-USDT" / "1h" / "2024-01.parquet"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(good.read_bytes())
    with pytest.raises(DataError, match="BTC/USDT on binance"):
        cache.load("binance", "ETH/USDT", "1h", JANUARY, FEBRUARY - 1)
    good.rename(month_file(tmp_path, "2024-02"))
    with pytest.raises(DataError, match="another month"):
        cache.load(*KEY, FEBRUARY, FEBRUARY + 5)


def test_a_file_of_the_test_network_in_the_markets_folder_is_refused(tmp_path: Path) -> None:
    fake = REAL.model_copy(update={"sandbox": True})
    bars = hours(range(744))
    object.__setattr__(bars, "provenance", fake)
    with pytest.raises(ConfigError, match="do not mix"):
        BarCache(tmp_path).store(bars)
    BarCache(tmp_path, sandbox=True).store(bars)
    hidden = tmp_path / "binance.sandbox" / "BTC-USDT" / "1h" / "2024-01.parquet"
    assert hidden.is_file()
    target = month_file(tmp_path)
    target.parent.mkdir(parents=True)
    target.write_bytes(hidden.read_bytes())
    with pytest.raises(DataError, match="sandbox=True"):
        BarCache(tmp_path).load(*KEY, JANUARY, FEBRUARY - 1)


def test_bars_of_two_servers_are_not_joined(tmp_path: Path) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(10)))
    other = hours(range(10, 20))
    object.__setattr__(
        other, "provenance", REAL.model_copy(update={"details": {"server": "http://127.0.0.1:1"}})
    )
    with pytest.raises(DataError, match="different servers"):
        cache.store(other)
    object.__setattr__(other, "ts", other.ts + 31 * DAY_NS)
    cache.store(other, covered=(FEBRUARY, FEBRUARY + 20 * HOUR_NS))
    cache.store(hours(range(744)))
    with pytest.raises(DataError, match="different servers"):
        cache.load(*KEY, JANUARY, FEBRUARY + HOUR_NS)


def test_a_link_out_of_the_cache_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.parquet"
    write_bars(outside, hours(range(744)))
    before = outside.read_bytes()
    cache = BarCache(tmp_path / "cache")
    path = month_file(tmp_path / "cache")
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    with pytest.raises(DataError, match="link leads out"):
        cache.store(hours(range(744)))
    with pytest.raises(DataError, match="link leads out"):
        cache.load(*KEY, JANUARY, FEBRUARY - 1)
    assert outside.read_bytes() == before
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(DataError, match="link leads out"):
        cache.store(hours(range(744)))
    assert not (tmp_path / "2024-01.parquet").exists()


def test_a_failed_write_leaves_the_old_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BarCache(tmp_path)
    cache.store(hours(range(10)))
    before = month_file(tmp_path).read_bytes()

    def full(*_: object) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr("agent_gym.markets.cache.write_bars", full)
    with pytest.raises(StoreError):
        cache.store(hours(range(10, 20)))
    assert month_file(tmp_path).read_bytes() == before
    assert len(read_native(month_file(tmp_path))) == 10


# --- names -------------------------------------------------------------------------------------

HOSTILE = [
    "../x",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a/../../b",
    "BTC\x00USDT",
    "BTC\nUSDT",
    "BTC%2e%2e",
    "a#/../",
    "a?..",
    "~root",
    "C:\\x",
    "CON",
    "nul",
    "com1",
    " BTC/USDT",
    "BTC\u2215USDT",
    "BTC\uff0fUSDT",
    "\u2024\u2024/x",
    "\u0412\u0422\u0421/USDT",
    "BTC\u202e/USDT",
    "x" * 300,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_never_leaves_the_root(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    cache = BarCache(root)
    bars = hours(range(3))
    object.__setattr__(bars, "instrument", Instrument(symbol="BTC/USDT", exchange=name))
    with pytest.raises(ConfigError):
        cache.store(bars)
    with pytest.raises(ConfigError):
        cache.missing(name, "BTC/USDT", "1h", 0, 1)
    object.__setattr__(bars, "instrument", Instrument(symbol=name, exchange="binance"))
    try:
        for path in cache.store(bars):
            assert path.resolve().is_relative_to(root.resolve())
            assert path.parent.parent.parent.name == "binance"
    except ConfigError:
        assert not root.exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"root"}


@given(st.text(max_size=70))
def test_any_symbol_gives_one_plain_folder_or_an_error(symbol: str) -> None:
    try:
        folder = symbol_folder(symbol)
    except ConfigError:
        return
    assert folder.isascii()
    assert not set(folder) & set("/\\.:\0~ ")
    assert len(Path(folder).parts) == 1
    assert folder.upper() not in ("CON", "NUL", "AUX", "PRN")


SYMBOLS = st.text(alphabet="ABab09/:._-%\u5e01\u5b89", min_size=1, max_size=12)


@given(SYMBOLS, SYMBOLS)
def test_two_symbols_never_share_a_folder(left: str, right: str) -> None:
    try:
        same = symbol_folder(left) == symbol_folder(right)
    except ConfigError:
        return
    assert same == (left == right)


def test_real_symbols_have_readable_folders() -> None:
    assert symbol_folder("BTC/USDT") == "BTC-USDT"
    assert symbol_folder("1000PEPE/USDT:USDT") == "1000PEPE-USDT%3AUSDT"
    assert symbol_folder("\u5e01\u5b89/USDT").startswith("%E5%B8%81")
    assert exchange_folder("binanceusdm") == "binanceusdm"


def test_months_split_a_span_without_a_seam() -> None:
    spans = list(months_of(JANUARY + 5, month_span("2024-03")[0] + 7))
    assert [month for month, _ in spans] == ["2024-01", "2024-02", "2024-03"]
    assert [span for _, span in spans] == [
        (JANUARY + 5, FEBRUARY),
        (FEBRUARY, month_span("2024-03")[0]),
        (month_span("2024-03")[0], month_span("2024-03")[0] + 7),
    ]
    assert list(months_of(5, 5)) == []


def test_runs_are_the_stretches_without_a_hole() -> None:
    found = runs_of(hours([0, 1, 2, 5, 9, 10]))
    assert [((a - JANUARY) // HOUR_NS, (b - JANUARY) // HOUR_NS) for a, b in found] == [
        (0, 3),
        (5, 6),
        (9, 11),
    ]
    assert runs_of(hours([])) == ()


def test_load_wants_an_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="start is after the end"):
        BarCache(tmp_path).load(*KEY, 5, 4)
