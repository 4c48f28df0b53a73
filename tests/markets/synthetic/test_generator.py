from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ConfigError, Ref, Seeds
from agent_gym.core.clock import HOUR_NS, MINUTE_NS
from agent_gym.markets.bars import EXTRA_COLUMNS
from agent_gym.markets.quality import check_bars
from agent_gym.markets.source import open_market
from agent_gym.markets.synthetic import (
    CLASSES,
    PRESETS,
    REGIMES,
    GeneratorConfig,
    SyntheticMarket,
    generate,
    source,
)

DAY = 1440
TRUTH_PREFIX = ("activity", "sigma", "drift", "direction", "jump")


def make(seed: int = 1, n_bars: int = 3 * DAY, **params: object) -> SyntheticMarket:
    return generate(GeneratorConfig(n_bars=n_bars, **params), Seeds(seed))  # type: ignore[arg-type]


@pytest.mark.parametrize("preset", PRESETS)
def test_bars_are_sound_and_on_the_grid(preset: str) -> None:
    bars = make(preset=preset, n_bars=2000).bars
    assert check_bars(bars, source_name="synthetic").ok
    tick = bars.instrument.tick
    for name in ("open", "high", "low", "close", "spread"):
        column = bars.columns()[name]
        np.testing.assert_array_equal(column, np.round(column / tick) / round(1 / tick))
    assert (bars.extra["taker_buy"] >= 0.0).all()
    assert (bars.extra["taker_buy"] <= bars.volume + 1e-9).all()
    assert (bars.extra["trades"] >= 1.0).all()
    assert (bars.extra["spread"] >= tick - 1e-12).all()


def test_bars_have_wicks_beyond_open_and_close() -> None:
    bars = make().bars
    upper = bars.high > np.maximum(bars.open, bars.close)
    assert 0.5 < upper.mean() < 0.95


@given(n=st.integers(1, 700), more=st.integers(1, 700), seed=st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_a_longer_series_begins_with_the_shorter_one(n: int, more: int, seed: int) -> None:
    short, long = make(seed, n), make(seed, n + more)
    np.testing.assert_array_equal(short.bars.ts, long.bars.ts[:n])
    for name, column in short.bars.columns().items():
        np.testing.assert_array_equal(column, long.bars.columns()[name][:n], err_msg=name)
    for name in TRUTH_PREFIX:
        np.testing.assert_array_equal(
            getattr(short.truth, name), getattr(long.truth, name)[:n], err_msg=name
        )


def test_same_seed_same_bits_and_other_seed_other_market() -> None:
    first, again, other = make(5), make(5), make(6)
    assert first.bars.fingerprint == again.bars.fingerprint
    assert first.bars.fingerprint != other.bars.fingerprint
    assert (
        abs(np.corrcoef(np.diff(np.log(first.bars.close)), np.diff(np.log(other.bars.close)))[0, 1])
        < 0.1
    )


def test_streams_are_independent_so_an_edit_changes_only_what_depends_on_it() -> None:
    plain = make()
    takers = make(overrides={"takers.noise": -5.0})
    for name in ("open", "high", "low", "close", "volume", "trades", "spread", "funding"):
        np.testing.assert_array_equal(plain.bars.columns()[name], takers.bars.columns()[name])
    assert not np.array_equal(plain.bars.extra["taker_buy"], takers.bars.extra["taker_buy"])
    sizes = make(overrides={"sizes.level": -1.0})
    np.testing.assert_array_equal(plain.bars.close, sizes.bars.close)
    np.testing.assert_array_equal(plain.bars.extra["trades"], sizes.bars.extra["trades"])
    assert not np.array_equal(plain.bars.volume, sizes.bars.volume)


def test_activity_is_drawn_without_looking_at_the_price() -> None:
    plain, wild = make(), make(overrides={"volatility.level": -5.0, "jumps.rate_per_min": 0.01})
    np.testing.assert_array_equal(plain.truth.activity, wild.truth.activity)
    np.testing.assert_array_equal(plain.truth.direction, wild.truth.direction)
    assert not np.array_equal(plain.bars.close, wild.bars.close)


def test_funding_falls_due_at_midnight_eight_and_sixteen_only() -> None:
    bars = make(n_bars=5 * DAY, start_ns=HOUR_NS * 5 + MINUTE_NS * 7).bars
    funding = bars.extra["funding"]
    due = bars.ts % (8 * HOUR_NS) == 0
    assert (funding[~due] == 0.0).all()
    assert np.count_nonzero(funding[due]) >= 0.9 * due.sum()
    assert np.abs(funding).max() <= 30e-4


def test_truth_is_in_no_column_of_the_bars() -> None:
    market = make()
    assert set(market.bars.columns()) <= {"open", "high", "low", "close", "volume", *EXTRA_COLUMNS}
    told = json.dumps(market.bars.describe())
    assert not any(name in told for name in (*REGIMES[1:], *CLASSES[2:]))
    hidden = (market.truth.sigma, market.truth.drift)
    for column in market.bars.columns().values():
        assert not any(np.array_equal(column, secret) for secret in hidden)


def test_truth_names_every_bar() -> None:
    truth = make(n_bars=20 * DAY).truth
    assert len(truth) == 20 * DAY
    assert set(truth.activity_names()) == set(CLASSES)
    assert set(truth.regime_names()) <= set(REGIMES)
    assert {"range", "trend_up", "trend_down"} <= set(truth.regime_names())
    assert truth.jump.any()
    assert not truth.jump.all()


def test_start_and_price_are_as_asked() -> None:
    market = make(start_ns=12 * HOUR_NS, overrides={"start_price": 200.0}, n_bars=10)
    assert market.bars.ts[0] == 12 * HOUR_NS
    assert 199.0 < market.bars.open[0] < 201.0


def test_a_start_between_bars_is_refused() -> None:
    with pytest.raises(ConfigError, match="multiples of their period"):
        make(start_ns=MINUTE_NS + 1)


@pytest.mark.parametrize("name", ["volatility.levle", "levle", "volatility.level.more", ""])
def test_an_unknown_override_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no parameter is named"):
        make(overrides={name: 1.0})


def test_a_price_of_few_ticks_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1000 ticks"):
        make(overrides={"start_price": 5.0})


def test_a_wrong_override_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigError, match=r"moves\.mean"):
        make(overrides={"moves.mean": -1.0})


def test_the_registry_makes_the_named_markets() -> None:
    assert source is not None  # the module registers on import
    for preset in PRESETS:
        ref = Ref(use=f"synthetic/{preset}", params={"n_bars": 50})
        bars = open_market(ref, Seeds(3))
        assert len(bars) == 50
        expected = generate(GeneratorConfig(preset=preset, n_bars=50), Seeds(3)).bars  # type: ignore[arg-type]
        assert bars.fingerprint == expected.fingerprint
