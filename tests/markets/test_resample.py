from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import EXTRA_COLUMNS, PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import write_bars
from agent_gym.markets.quality import check_bars
from agent_gym.markets.readers import FundingRates, attach_funding, read_bars
from agent_gym.markets.resample import resample

MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
START_NS = 1_704_067_200 * 10**9  # Monday, 2024-01-01


def make_bars(n: int, *, first: int = 0, period_ns: int = MINUTE_NS, seed: int = 0) -> Bars:
    rng = Seeds(seed).child("bars").rng()
    close = 100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum())
    open_ = np.r_[close[:1], close[:-1]]
    return Bars(
        instrument=Instrument(),
        period_ns=period_ns,
        ts=START_NS + period_ns * (first + np.arange(n)),
        open=open_,
        high=np.maximum(open_, close) * (1 + 0.01 * rng.random(n)),
        low=np.minimum(open_, close) * (1 - 0.01 * rng.random(n)),
        close=close,
        volume=rng.random(n),
        extra={name: rng.random(n) for name in EXTRA_COLUMNS},
        provenance=Provenance(source="file", origin="a.csv"),
    )


def take(bars: Bars, places: Any) -> Bars:
    prices = {name: getattr(bars, name)[places] for name in PRICE_COLUMNS}
    extra = {name: column[places] for name, column in bars.extra.items()}
    return replace(bars, ts=bars.ts[places], extra=extra, **prices)


def slow(bars: Bars, period_ns: int) -> dict[int, dict[str, float]]:
    """Every bucket, aggregated one bar at a time."""
    made: dict[int, dict[str, float]] = {}
    seen: dict[int, int] = {}
    for row, ts in enumerate(bars.ts):
        opens = int(ts) - int(ts) % period_ns
        now = {name: float(column[row]) for name, column in bars.columns().items()}
        seen[opens] = seen.get(opens, 0) + 1
        if opens not in made:
            made[opens] = now
            continue
        bar = made[opens]
        bar["high"], bar["low"] = max(bar["high"], now["high"]), min(bar["low"], now["low"])
        bar["close"], bar["obi"] = now["close"], now["obi"]
        for name in ("volume", "trades", "taker_buy", "ofi", "funding", "spread"):
            bar[name] += now[name]
    for opens, bar in made.items():
        bar["spread"] /= seen[opens]
    return made


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(30, 200),
    first=st.integers(0, 70),
    times=st.sampled_from([2, 5, 15]),
    seed=st.integers(0, 9),
)
def test_every_column_is_aggregated_as_by_hand(n: int, first: int, times: int, seed: int) -> None:
    bars = make_bars(n, first=first, seed=seed)
    period_ns = times * MINUTE_NS
    made = resample(bars, period_ns)
    expected = slow(bars, period_ns)
    whole = [
        opens
        for opens in expected
        if opens >= bars.ts[0] and opens + period_ns <= bars.ts[-1] + MINUTE_NS
    ]
    assert made.ts.tolist() == whole
    for name, column in made.columns().items():
        np.testing.assert_allclose(column, [expected[opens][name] for opens in whole], rtol=1e-12)
    (record,) = made.provenance.details["resample"]
    assert record["first_bars_dropped"] == sum(1 for ts in bars.ts if ts < whole[0])
    assert record["last_bars_dropped"] == sum(1 for ts in bars.ts if ts >= whole[-1] + period_ns)
    assert record["partial_bars"] == 0
    assert check_bars(made, source_name="made").ok


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(20, 150), lost=st.sets(st.integers(0, 149), max_size=30))
def test_a_longer_series_never_changes_an_earlier_bar(cut: int, lost: set[int]) -> None:
    bars = take(make_bars(150, first=3), np.setdiff1d(np.arange(150), sorted(lost)))
    whole = resample(bars, "5m")
    try:
        early = resample(bars.rows(0, cut), "5m")
    except DataError:
        return
    n = len(early)
    np.testing.assert_array_equal(early.ts, whole.ts[:n])
    for name, column in early.columns().items():
        np.testing.assert_array_equal(column, whole.columns()[name][:n])


def test_poison_after_a_bucket_does_not_reach_it() -> None:
    bars = make_bars(120)
    clean = resample(bars, "1h")
    poisoned = replace(bars, high=np.where(np.arange(120) >= 60, 1e12, bars.high))
    assert resample(poisoned, "1h").high[0] == clean.high[0]
    assert resample(poisoned, "1h").high[1] == 1e12


def test_two_steps_give_the_same_as_one_and_both_are_recorded() -> None:
    bars = make_bars(24 * 60)
    once, twice = resample(bars, "4h"), resample(resample(bars, "1h"), "4h")
    for name, column in once.columns().items():
        np.testing.assert_allclose(column, twice.columns()[name], rtol=1e-12)
    assert [step["to"] for step in twice.provenance.details["resample"]] == ["1h", "4h"]


def test_the_same_period_changes_nothing() -> None:
    bars = make_bars(10)
    assert resample(bars, "1m") is bars


def test_weeks_open_on_monday_and_days_at_midnight() -> None:
    bars = make_bars(24 * 30, first=5, period_ns=HOUR_NS)
    weeks, days = resample(bars, "1w"), resample(bars, "1d")
    assert (weeks.ts[0] - START_NS) // DAY_NS == 7
    assert {(ts // DAY_NS - 4) % 7 for ts in weeks.ts.tolist()} == {0}
    assert {ts % DAY_NS for ts in days.ts.tolist()} == {0}


def test_missing_values_stay_missing_in_sums_and_are_left_out_of_means() -> None:
    bars = make_bars(10)
    extra = {name: column.copy() for name, column in bars.extra.items()}
    for column in extra.values():
        column[1] = np.nan
    extra["spread"][5:] = np.nan
    made = resample(replace(bars, extra=extra), "5m")
    for name in ("trades", "taker_buy", "ofi", "funding"):
        assert np.isnan(made.extra[name][0])
        assert not np.isnan(made.extra[name][1])
    np.testing.assert_allclose(made.extra["spread"][0], np.delete(extra["spread"][:5], 1).mean())
    assert np.isnan(made.extra["spread"][1])
    assert made.extra["obi"][0] == extra["obi"][4]


def test_a_bucket_with_bars_missing_inside_is_counted() -> None:
    bars = take(make_bars(60), np.setdiff1d(np.arange(60), [7, 20, 21, 22, 23, 24]))
    made = resample(bars, "5m")
    (record,) = made.provenance.details["resample"]
    assert record["partial_bars"] == 1
    assert len(made) == 11
    assert made.provenance.repairs == {"gaps_kept": 1}


def test_kept_gaps_of_a_resampled_file_are_known_to_the_reader(tmp_path: Path) -> None:
    bars = take(make_bars(60), np.setdiff1d(np.arange(60), np.arange(20, 30)))
    made = resample(bars, "5m")
    write_bars(tmp_path / "made.parquet", made)
    assert read_bars(tmp_path / "made.parquet").fingerprint == made.fingerprint


def test_funding_of_a_longer_bar_is_the_sum_of_what_falls_due_in_it() -> None:
    bars = make_bars(72, period_ns=HOUR_NS)
    bars = replace(bars, extra={})
    due = START_NS + 8 * HOUR_NS * np.arange(10)
    rates = FundingRates(due, 1e-4 * np.arange(1.0, 11.0), "funding.csv")
    days = resample(attach_funding(bars, rates), "1d")
    np.testing.assert_allclose(days.extra["funding"], [6e-4, 15e-4, 24e-4])
    direct = attach_funding(resample(bars, "1d"), rates)
    np.testing.assert_allclose(direct.extra["funding"], days.extra["funding"])


@pytest.mark.parametrize("period", ["90s", "30s", "1m30s", "0m"])
def test_a_period_that_is_not_a_multiple_is_refused(period: str) -> None:
    with pytest.raises(ConfigError):
        resample(make_bars(100), period)


def test_bars_off_the_utc_grid_or_out_of_order_are_refused() -> None:
    bars = make_bars(100)
    with pytest.raises(DataError, match="UTC grid"):
        resample(replace(bars, ts=bars.ts + 1), "1h")
    with pytest.raises(DataError, match="order of time"):
        resample(take(bars, slice(None, None, -1)), "1h")


@pytest.mark.parametrize("n", [0, 1, 59])
def test_too_short_a_series_is_an_error_and_not_an_empty_one(n: int) -> None:
    with pytest.raises(DataError, match="too short"):
        resample(make_bars(n), "1h")
