from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.quality import Expected, check_bars
from agent_gym.markets.repair import RepairPolicy, admit, remedy, repair_bars

HOUR_NS = 3_600 * 10**9
START_NS = 1_704_067_200 * 10**9
ALL = RepairPolicy(gaps="fill", duplicates="first", order="sort", bad_rows="drop", off_grid="drop")


def make_bars(n: int = 100, **extra: np.ndarray) -> Bars:
    rng = Seeds(0).child("bars").rng()
    close = 100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum())
    return Bars(
        instrument=Instrument(),
        period_ns=HOUR_NS,
        ts=START_NS + HOUR_NS * np.arange(n),
        open=close,
        high=close * 1.01,
        low=close * 0.99,
        close=close,
        volume=1.0 + rng.random(n),
        extra=extra,
        provenance=Provenance(source="file", origin="a.csv"),
    )


def take(bars: Bars, places: Any) -> Bars:
    prices = {name: getattr(bars, name)[places] for name in PRICE_COLUMNS}
    extra = {name: column[places] for name, column in bars.extra.items()}
    return replace(bars, ts=bars.ts[places], extra=extra, **prices)


def put(bars: Bars, column: str, places: Any, value: float) -> Bars:
    values = getattr(bars, column).copy()
    values[places] = value
    return replace(bars, **{column: values})


def counts_of(bars: Bars) -> dict[str, int]:
    return check_bars(bars, source_name="a.csv").counts


@settings(max_examples=40, deadline=None)
@given(
    gaps=st.sampled_from(["refuse", "keep", "fill"]),
    duplicates=st.sampled_from(["refuse", "first", "last"]),
    order=st.sampled_from(["refuse", "sort"]),
    bad_rows=st.sampled_from(["refuse", "drop"]),
)
def test_a_clean_series_is_not_touched_by_any_policy(**choice: Any) -> None:
    bars = make_bars()
    same, counts = repair_bars(bars, RepairPolicy(**choice), as_of_ns=START_NS + 100 * HOUR_NS)
    assert same is bars
    assert counts == {}
    assert admit(bars, RepairPolicy(**choice), source_name="a.csv").fingerprint == bars.fingerprint


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_repairs_are_counted_and_what_comes_out_passes_the_check(data: st.DataObject) -> None:
    n = 80
    bars = make_bars(n)
    inner = st.integers(1, n - 2)
    lost = sorted(data.draw(st.sets(inner, max_size=6)))
    bad = sorted(data.draw(st.sets(inner, max_size=4)) - set(lost))
    twice = sorted(data.draw(st.sets(inner, max_size=4)) - set(lost) - set(bad))
    bars = put(bars, "close", bad, np.nan)
    present = np.setdiff1d(np.arange(n), lost)
    spoiled = take(bars, np.r_[present, np.array(twice, dtype=np.int64)])
    mended, counts = repair_bars(spoiled, ALL)
    expected = {
        "bad_rows_dropped": len(bad),
        "duplicates_dropped": len(twice),
        "gaps_filled": len(lost) + len(bad),
    }
    assert counts == {name: count for name, count in expected.items() if count}
    assert mended.provenance.repairs == counts
    assert counts_of(mended) == {}
    assert len(mended) == n
    whole = np.setdiff1d(present, bad)
    np.testing.assert_array_equal(mended.close[whole], make_bars(n).close[whole])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000))
def test_sorting_brings_back_the_original(seed: int) -> None:
    bars = make_bars(30)
    shuffled = take(bars, Seeds(seed).child("shuffle").rng().permutation(30))
    mended, counts = repair_bars(shuffled, RepairPolicy(order="sort"))
    assert mended.fingerprint == bars.fingerprint
    assert counts.get("rows_sorted", 0) == counts_of(shuffled).get("out_of_order", 0)


def test_a_filled_bar_is_flat_quiet_and_honest_about_what_nobody_knows() -> None:
    ones = np.ones(20)
    bars = make_bars(20, trades=ones, taker_buy=ones, ofi=ones, spread=ones, funding=ones, obi=ones)
    mended, counts = repair_bars(take(bars, np.r_[0:5, 8:20]), RepairPolicy(gaps="fill"))
    assert counts == {"gaps_filled": 3}
    np.testing.assert_array_equal(mended.ts, bars.ts)
    for name in ("open", "high", "low", "close"):
        np.testing.assert_array_equal(getattr(mended, name)[5:8], bars.close[4])
    for name in ("trades", "taker_buy", "ofi"):
        np.testing.assert_array_equal(mended.extra[name][5:8], 0.0)
    np.testing.assert_array_equal(mended.volume[5:8], 0.0)
    for name in ("spread", "funding", "obi"):
        assert np.isnan(mended.extra[name][5:8]).all()
        assert not np.isnan(mended.extra[name][8:]).any()


def test_kept_gaps_are_counted_and_admitted() -> None:
    holed = take(make_bars(), np.r_[0:10, 13:100])
    kept = admit(holed, RepairPolicy(gaps="keep"), source_name="a.csv")
    assert kept.provenance.repairs == {"gaps_kept": 3}
    assert kept.fingerprint == holed.fingerprint
    filled = admit(kept, RepairPolicy(gaps="fill"), source_name="a.csv")
    assert filled.provenance.repairs == {"gaps_filled": 3}


def test_counts_add_up_over_two_repairs() -> None:
    once, _ = repair_bars(take(make_bars(), np.r_[0:10, 11:100]), RepairPolicy(gaps="fill"))
    twice, _ = repair_bars(take(once, np.r_[0:20, 22:100]), RepairPolicy(gaps="fill"))
    assert twice.provenance.repairs == {"gaps_filled": 3}


def test_first_and_last_choose_the_values_and_keep_the_place() -> None:
    bars = make_bars(10)
    late = put(bars, "volume", 3, 77.0)
    both = replace(take(bars, [*range(10), 3]), volume=np.r_[bars.volume, late.volume[3]])
    first, _ = repair_bars(both, RepairPolicy(duplicates="first"))
    last, counts = repair_bars(both, RepairPolicy(duplicates="last"))
    assert first.fingerprint == bars.fingerprint
    assert last.fingerprint == late.fingerprint
    assert counts == {"duplicates_dropped": 1}


def test_an_unfinished_bar_is_dropped_only_when_asked() -> None:
    bars = make_bars(10)
    as_of_ns = START_NS + 10 * HOUR_NS - 1
    mended, counts = repair_bars(bars, RepairPolicy(unfinished="drop"), as_of_ns=as_of_ns)
    assert counts == {"unfinished_dropped": 1}
    assert len(mended) == 9
    with pytest.raises(DataError, match="--unfinished drop"):
        admit(bars, RepairPolicy(), source_name="a.csv", expected=Expected(as_of_ns=as_of_ns))


def test_filling_has_a_limit() -> None:
    far = take(make_bars(20), slice(None))
    ts = far.ts.copy()
    ts[-1] += 200 * 365 * 24 * HOUR_NS
    with pytest.raises(DataError, match="too many bars are missing"):
        repair_bars(replace(far, ts=ts), RepairPolicy(gaps="fill"))
    holed = take(make_bars(), np.r_[0:10, 13:100])
    with pytest.raises(DataError, match="at most 2"):
        repair_bars(holed, RepairPolicy(gaps="fill", max_filled_bars=2))


def test_gaps_that_dropped_rows_leave_are_refused_too() -> None:
    bars = put(make_bars(), "close", 40, np.nan)
    with pytest.raises(DataError, match="gap: no bars from 2024-01-02T16:00:00Z") as caught:
        admit(bars, RepairPolicy(bad_rows="drop"), source_name="a.csv")
    assert "row 42" in str(caught.value)
    assert "--gaps fill" in str(caught.value)


def test_filling_does_not_hide_that_most_of_the_span_is_absent() -> None:
    holed = take(make_bars(), np.r_[0:60, 90:100])
    asked = Expected(START_NS, START_NS + 99 * HOUR_NS)
    with pytest.raises(DataError, match="too few bars"):
        admit(holed, RepairPolicy(gaps="fill"), source_name="a.csv", expected=asked)
    policy = RepairPolicy(gaps="fill", coverage="keep")
    assert len(admit(holed, policy, source_name="a.csv", expected=asked)) == 100


@pytest.mark.parametrize(
    ("spoil", "field", "choice"),
    [
        (lambda b: put(b, "close", 7, np.nan), "bad_rows", "drop"),
        (lambda b: put(b, "high", 7, np.inf), "bad_rows", "drop"),
        (lambda b: put(b, "low", 7, -1.0), "bad_rows", "drop"),
        (lambda b: put(b, "volume", 7, -1.0), "bad_rows", "drop"),
        (lambda b: put(b, "high", 7, 1.0), "bad_rows", "drop"),
        (lambda b: take(b, np.r_[0:50, 49:100]), "duplicates", "last"),
        (lambda b: take(b, np.r_[1, 0, 2:100]), "order", "sort"),
        (lambda b: take(b, np.r_[0:50, 53:100]), "gaps", "keep"),
        (lambda b: replace(b, ts=b.ts + (np.arange(100) == 9)), "off_grid", "drop"),
    ],
)
def test_every_fault_is_refused_by_default_and_its_remedy_works(
    spoil: Any, field: str, choice: str
) -> None:
    spoiled = spoil(make_bars())
    with pytest.raises(DataError) as caught:
        admit(spoiled, RepairPolicy(), source_name="a.csv")
    assert f"RepairPolicy({field}={choice!r})" in str(caught.value.remedy)
    assert f"--{field.replace('_', '-')} {choice}" in str(caught.value.remedy)
    assert "row " in str(caught.value.where)
    also_gaps = {field: choice} if field == "gaps" else {field: choice, "gaps": "fill"}
    mended = admit(spoiled, RepairPolicy(**also_gaps), source_name="a.csv")
    assert set(counts_of(mended)) <= {"gap"}
    assert mended.provenance.repairs


def test_the_error_counts_the_other_faults_as_well() -> None:
    spoiled = take(put(make_bars(), "close", [5, 6], np.nan), np.r_[0:50, 53:100])
    with pytest.raises(DataError) as caught:
        admit(spoiled, RepairPolicy(), source_name="a.csv")
    assert caught.value.what == "nan: close: not a number"
    assert caught.value.found == "nan; 2 of this kind in all; also 1 gap"


def test_a_wrong_period_cannot_be_repaired() -> None:
    bars = replace(make_bars(), period_ns=60 * 10**9)
    policy = RepairPolicy(
        gaps="fill", duplicates="last", order="sort", bad_rows="drop", coverage="keep"
    )
    with pytest.raises(DataError, match="Ask for period='1h'"):
        admit(bars, policy.model_copy(update={"max_filled_bars": 10**6}), source_name="a.csv")


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(DataError, match="no bars are left"):
        admit(put(make_bars(5), "close", slice(None), -1.0), ALL, source_name="a.csv")


def test_every_choice_of_the_policy_is_offered_by_a_remedy() -> None:
    kinds = ("gap", "duplicate_time", "out_of_order", "nan", "off_grid", "unfinished")
    offered = " ".join(remedy(kind) for kind in (*kinds, "too_few_bars"))
    for name, field in RepairPolicy.model_fields.items():
        for choice in get_args(field.annotation):
            if choice != "refuse":
                assert f"RepairPolicy({name}={choice!r})" in offered
