from __future__ import annotations

import itertools

import numpy as np
import pytest
from feature_samples import QUICK, make_bars, poisoned, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.features import (
    FEATURES,
    BarRow,
    FeatureConfig,
    FeatureStream,
    compute_features,
)

SEEDS = st.integers(0, 2**31)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, holes=st.booleans(), quick=st.booleans())
def test_every_prefix_gives_the_same_bits(seed: int, holes: bool, quick: bool) -> None:
    config = QUICK if quick else FeatureConfig()
    bars = make_bars(60 if quick else 200, seed=seed, holes=holes)
    whole = compute_features(bars, config)
    for t in range(len(bars)):
        prefix = compute_features(bars.rows(0, t + 1), config)
        assert prefix.values[t].tobytes() == whole.values[t].tobytes()
        assert (prefix.mask[t] == whole.mask[t]).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    holes=st.booleans(),
    share=st.floats(0.0, 1.0),
    poison=st.sampled_from([np.nan, 1e9, 0.0, -1.0, np.inf, 1e300]),
)
def test_a_poisoned_future_changes_no_past(
    seed: int, holes: bool, share: float, poison: float
) -> None:
    bars = make_bars(120, seed=seed, holes=holes)
    t = int(share * (len(bars) - 1))
    clean = compute_features(bars, QUICK)
    spoilt = compute_features(poisoned(bars, t, poison), QUICK)
    assert spoilt.values[: t + 1].tobytes() == clean.values[: t + 1].tobytes()
    assert np.isfinite(spoilt.values[spoilt.mask]).all()


@pytest.mark.parametrize("column", range(len(FEATURES)))
def test_the_poison_check_sees_a_leak_in_each_feature(column: int) -> None:
    """A planted fault: shifting a column by one bar uses the future, and the check must say so."""
    bars = make_bars(120, seed=1)
    t = 80

    def leaky(poison: float | None) -> bytes:
        given_bars = bars if poison is None else poisoned(bars, t, poison)
        values = np.roll(compute_features(given_bars, QUICK).values[:, column], -1)
        return values[: t + 1].tobytes()

    if FEATURES[column].endswith(("_sin", "_cos")):
        assert leaky(np.nan) == leaky(None)  # the clock is known in advance: nothing leaks
    else:
        assert leaky(np.nan) != leaky(None)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, holes=st.booleans(), cuts=st.lists(st.integers(0, 90), max_size=6))
def test_any_chunking_gives_the_same_bits(seed: int, holes: bool, cuts: list[int]) -> None:
    bars = make_bars(90, seed=seed, holes=holes)
    whole = compute_features(bars, QUICK)
    stream = FeatureStream(bars.period_ns, QUICK)
    edges = [0, *sorted(cuts), len(bars)]
    pieces = [stream.extend(bars.rows(a, b)).values for a, b in itertools.pairwise(edges)]
    assert np.concatenate(pieces).tobytes() == whole.values.tobytes()


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, holes=st.booleans(), extras=st.booleans())
def test_a_live_bar_gives_the_bits_of_the_series(seed: int, holes: bool, extras: bool) -> None:
    bars = make_bars(250, seed=seed, holes=holes, extras=extras)
    whole = compute_features(bars)
    stream = FeatureStream(bars.period_ns)
    columns = bars.columns()
    columns.pop("open")
    for t in range(len(bars)):
        row = {name: float(column[t]) for name, column in columns.items()}
        values, mask = stream.update(BarRow(int(bars.ts[t]), **row))
        assert values.tobytes() == whole.values[t].tobytes()
        assert mask.tobytes() == whole.mask[t].tobytes()


def test_history_then_live_continues() -> None:
    bars = make_bars(300, seed=3)
    stream = FeatureStream(bars.period_ns)
    stream.extend(bars.rows(0, 299))
    assert (
        stream.extend(bars.rows(299, 300)).values[0].tobytes()
        == compute_features(bars).values[299].tobytes()
    )


def test_a_stream_that_forgets_is_caught() -> None:
    """Negative control: without the carried memory the live bar would differ."""
    bars = make_bars(300, seed=3)
    fresh = FeatureStream(bars.period_ns).extend(bars.rows(299, 300))
    assert fresh.values[0].tobytes() != compute_features(bars).values[299].tobytes()


def test_two_runs_agree_and_streams_share_nothing() -> None:
    bars = make_bars(200, seed=4)
    first = compute_features(bars)
    compute_features(make_bars(200, seed=5))
    assert same_bits(first, compute_features(bars))


def test_time_must_advance() -> None:
    bars = make_bars(10)
    stream = FeatureStream(bars.period_ns)
    stream.extend(bars)
    with pytest.raises(DataError, match="time goes back"):
        stream.extend(bars)
    with pytest.raises(DataError, match="time goes back"):
        stream.update(BarRow(int(bars.ts[-1]), 2.0, 1.0, 1.5, 1.0))


def test_bars_of_another_period_are_refused() -> None:
    with pytest.raises(DataError, match="another period"):
        FeatureStream(60).extend(make_bars(3))
    with pytest.raises(ConfigError, match="longer than nothing"):
        FeatureStream(0)
