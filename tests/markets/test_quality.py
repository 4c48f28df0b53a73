from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.faults import BAD_ROWS
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.quality import KINDS, Expected, check_bars, format_time

HOUR_NS = 3_600 * 10**9
START_NS = 1_704_067_200 * 10**9


def make_bars(n: int = 200, **extra: np.ndarray) -> Bars:
    rng = Seeds(0).child("bars").rng()
    close = 100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum())
    open_ = np.r_[close[:1], close[:-1]]
    return Bars(
        instrument=Instrument(),
        period_ns=HOUR_NS,
        ts=START_NS + HOUR_NS * np.arange(n),
        open=open_,
        high=np.maximum(open_, close) * 1.01,
        low=np.minimum(open_, close) * 0.99,
        close=close,
        volume=rng.random(n),
        extra=extra,
        provenance=Provenance(source="file", origin="a.csv"),
    )


def put(bars: Bars, column: str, row: int, value: float) -> Bars:
    values = (bars.extra[column] if column in bars.extra else getattr(bars, column)).copy()
    values[row - 1] = value
    if column in bars.extra:
        return replace(bars, extra={**bars.extra, column: values})
    return replace(bars, **{column: values})


def take(bars: Bars, places: Any) -> Bars:
    prices = {name: getattr(bars, name)[places] for name in PRICE_COLUMNS}
    extra = {name: column[places] for name, column in bars.extra.items()}
    return replace(bars, ts=bars.ts[places], extra=extra, **prices)


def check(bars: Bars, **options: Any) -> Any:
    return check_bars(bars, source_name="a.csv", **options)


def test_a_clean_series_has_no_issue() -> None:
    report = check(make_bars(trades=np.full(200, np.nan)))
    assert report.ok
    assert report.counts == {}
    assert report.issues == ()
    assert report.as_dict()["first"] == "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        ("nan", "open", np.nan),
        ("nan", "volume", np.nan),
        ("inf", "high", np.inf),
        ("inf", "low", -np.inf),
        ("inf", "trades", np.inf),
        ("non_positive_price", "close", 0.0),
        ("non_positive_price", "low", -5.0),
        ("negative_volume", "volume", -1.0),
        ("negative_volume", "trades", -1.0),
        ("high_below_low", "high", 1.0),
        ("low_above_body", "low", 1e6 - 1),
        ("low_above_body", "open", 1.0),
        ("high_below_body", "open", 1e6),
    ],
)
def test_a_bad_cell_is_found_with_row_time_and_value(kind: str, column: str, value: float) -> None:
    bars = put(make_bars(trades=np.ones(200)), column, 18, value)
    if kind == "low_above_body" and column == "low":
        bars = put(bars, "high", 18, 1e6)
    report = check(bars)
    assert report.counts == {kind: 1}
    (issue,) = report.issues
    assert (issue.kind, issue.row, issue.source) == (kind, 18, "a.csv")
    assert issue.ts_ns == START_NS + 17 * HOUR_NS
    assert str(float(value)) in issue.value
    assert "row 18 (2024-01-01T17:00:00Z)" in issue.where
    assert column in f"{issue.reason} {issue.value}"


def test_high_below_the_body_alone() -> None:
    bars = make_bars()
    body_top = max(bars.open[4], bars.close[4])
    assert check(put(bars, "high", 5, body_top)).ok
    assert check(put(bars, "high", 5, np.nextafter(body_top, 0))).counts == {"high_below_body": 1}


def test_repeated_and_unordered_times_are_told_apart() -> None:
    bars = make_bars(10)
    repeated = take(bars, [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 1])
    report = check(repeated)
    assert report.counts == {"duplicate_time": 2}
    assert [issue.row for issue in report.issues] == [4, 12]
    swapped = take(bars, [0, 1, 2, 4, 3, 5, 6, 7, 8, 9])
    report = check(swapped)
    assert report.counts == {"out_of_order": 1}
    assert report.issues[0].row == 5
    assert check(take(bars, slice(None, None, -1))).counts == {"out_of_order": 9}


def test_a_gap_is_named_from_to_with_its_size() -> None:
    report = check(take(make_bars(50), np.r_[0:10, 13:30, 31:50]))
    assert report.counts == {"gap": 2}
    assert (report.missing_bars, report.longest_gap_bars) == (4, 3)
    first = report.issues[0]
    assert (first.row, first.value) == (11, "3 missing")
    assert first.reason == "no bars from 2024-01-01T10:00:00Z to 2024-01-01T12:00:00Z"


def test_the_rows_of_the_file_are_named_when_given() -> None:
    bars = put(make_bars(20), "close", 3, np.nan)
    assert check(bars, rows=np.arange(101, 121)).issues[0].row == 103


def test_a_series_of_another_period_is_not_called_a_gap() -> None:
    report = check(replace(make_bars(50), period_ns=60 * 10**9))
    assert report.counts == {"wrong_period": 1}
    assert "bars of 1m were asked for, these are mostly 1h apart" in report.issues[0].reason
    assert report.missing_bars == 0


def test_times_off_the_grid_are_found() -> None:
    bars = make_bars(50)
    ts = bars.ts.copy()
    ts[20] += 7
    report = check(replace(bars, ts=ts))
    assert report.counts == {"off_grid": 1, "gap": 1}  # the hour it should have opened is missing
    assert report.issues[0].row == 21


def test_a_grid_that_is_not_on_the_hour_is_accepted() -> None:
    bars = make_bars(50)
    assert check(replace(bars, ts=bars.ts + HOUR_NS // 2)).ok


def test_local_days_over_a_clock_change_are_off_the_grid() -> None:
    day = 24 * HOUR_NS
    winter, summer = START_NS + day * np.arange(89), START_NS + day * np.arange(90, 300) - HOUR_NS
    bars = replace(make_bars(299), ts=np.r_[winter, summer], period_ns=day)
    assert check(bars).counts["off_grid"] == 89


def test_an_unfinished_bar_is_found_only_when_asked() -> None:
    bars = make_bars(10)
    end = START_NS + 10 * HOUR_NS
    assert check(bars).ok
    assert check(bars, expected=Expected(as_of_ns=end)).ok
    report = check(bars, expected=Expected(as_of_ns=end - 1))
    assert report.counts == {"unfinished": 1}
    assert report.issues[0].row == 10


@pytest.mark.parametrize(("n", "short"), [(1000, False), (996, False), (995, False), (994, True)])
def test_more_than_half_a_percent_too_few_is_found(n: int, short: bool) -> None:
    asked = Expected(start_ns=START_NS, end_ns=START_NS + 999 * HOUR_NS)
    report = check(make_bars(n), expected=asked)
    assert report.counts == ({"too_few_bars": 1} if short else {})


def test_a_year_that_holds_one_page_is_refused() -> None:
    year_end = START_NS + 527_039 * 60 * 10**9
    page = replace(make_bars(1000), period_ns=60 * 10**9)
    page = replace(page, ts=START_NS + 60 * 10**9 * np.arange(1000))
    report = check(page, expected=Expected(START_NS, year_end))
    assert report.issues[0].value == "1000 of 527040"


def test_bars_made_by_a_repair_do_not_count_as_loaded() -> None:
    bars = make_bars(100)
    rows = np.arange(1, 101)
    asked = Expected(START_NS, START_NS + 99 * HOUR_NS)
    assert check(bars, rows=rows, expected=asked).ok
    rows[50:60] = 0
    assert check(bars, rows=rows, expected=asked).counts == {"too_few_bars": 1}


def test_examples_are_limited_and_counts_are_not() -> None:
    bars = make_bars(100)
    values = bars.close.copy()
    values[10:60] = np.nan
    report = check(replace(bars, close=values), examples=3)
    assert report.counts == {"nan": 50}
    assert [issue.row for issue in report.issues] == [11, 12, 13]


def test_the_report_is_plain_json() -> None:
    bars = put(put(make_bars(30), "close", 3, np.nan), "high", 9, np.inf)
    text = json.dumps(check(bars).as_dict(), allow_nan=False)
    assert json.loads(text)["counts"] == {"nan": 1, "inf": 1}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_planted_faults_are_counted_exactly(data: st.DataObject) -> None:
    bars = make_bars(60)
    rows = data.draw(st.lists(st.integers(1, 60), unique=True, max_size=12))
    planted: dict[str, int] = {}
    spoil = {
        "nan": ("open", np.nan),
        "inf": ("volume", np.inf),
        "non_positive_price": ("low", 0.0),
        "negative_volume": ("volume", -2.0),
        "high_below_low": ("high", 1e-9),
        "high_below_body": ("close", 1e9),
        "low_above_body": ("close", 1e-9),
    }
    assert set(spoil) == set(BAD_ROWS)
    for row in rows:
        kind = data.draw(st.sampled_from(sorted(spoil)))
        bars = put(bars, spoil[kind][0], row, spoil[kind][1])
        planted[kind] = planted.get(kind, 0) + 1
    assert check(bars).counts == planted


def test_kinds_are_listed_in_the_order_of_the_report() -> None:
    bars = put(make_bars(50), "close", 3, np.nan)
    counts = check(take(bars, np.r_[0:10, 12:50, 20])).counts
    assert list(counts) == [kind for kind in KINDS if kind in counts]
    assert set(counts) == {"nan", "gap", "duplicate_time"}


def test_an_empty_series_is_too_short_for_any_asked_span() -> None:
    assert check(make_bars(0)).ok
    report = check(make_bars(0), expected=Expected(START_NS, START_NS + HOUR_NS))
    assert report.issues[0].value == "0 of 2"


def test_times_are_written_with_the_fraction_they_have() -> None:
    assert format_time(START_NS + 1) == "2024-01-01T00:00:00.000000001Z"
    assert format_time(START_NS + 500_000_000) == "2024-01-01T00:00:00.5Z"
