from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from scipy.stats import spearmanr

from agent_gym.core import ConfigError
from agent_gym.core.clock import MINUTE_NS
from agent_gym.evaluation.realism import bootstrap_bands, facts_of, published_bands
from agent_gym.evaluation.realism.bands import strict_bands
from agent_gym.evaluation.realism.series import Series, infer_tick
from agent_gym.markets import Bars, Instrument
from tests.evaluation.realism_samples import DAY, gaussian_bars, made, real_minutes

FACTS = {fact.name: fact for fact in facts_of(MINUTE_NS)}


def value(name: str, bars: Bars) -> float:
    found = FACTS[name].compute(bars)
    assert found is not None
    return found


def plain(column: np.ndarray, lag: int) -> float:
    x = column - column.mean()
    return float((x[:-lag] * x[lag:]).mean() / (x * x).mean())


def test_facts_agree_with_their_textbook_formulas() -> None:
    bars = made(3, 14)
    r = np.diff(np.log(bars.close))
    size = np.abs(r)
    assert value("std_bp", bars) == pytest.approx(r.std() * 1e4)
    assert value("acf_r1", bars) == pytest.approx(plain(r, 1), rel=1e-6)
    assert value("acf_abs60", bars) == pytest.approx(plain(size, 60), rel=1e-6)
    assert value("sp_vol_absr", bars) == pytest.approx(spearmanr(bars.volume[1:], size)[0])
    top = np.sort(size)[::-1]
    count = size.size // 100
    assert value("hill1%", bars) == pytest.approx(
        1 / np.log(top[:count] / top[count]).mean(), rel=0.02
    )
    blocks = r[: r.size // 5 * 5].reshape(-1, 5).sum(axis=1)
    assert value("VR5", bars) == pytest.approx(blocks.var() / (5 * r.var()))
    squares = r**2
    lever = np.mean([np.corrcoef(r[:-k], squares[k:])[0, 1] for k in range(1, 11)])
    assert value("lev1_10", bars) == pytest.approx(lever, abs=2e-3)
    assert value("zero_ret", bars) == pytest.approx(np.mean(r == 0.0))


def test_gaussian_minutes_have_no_tail_no_memory_and_no_pattern() -> None:
    bars = gaussian_bars(28)
    assert abs(value("acf_abs10", bars)) < 0.03
    assert abs(value("kurt60", bars)) < 1.0
    assert value("hill1%", bars) > 5.0
    assert value("hour_ratio", bars) < 1.2
    assert abs(value("VR60", bars) - 1.0) < 0.15


def test_a_fact_without_its_column_or_length_is_none_and_never_zero() -> None:
    bars = made(3, 14)
    bare = Bars(
        bars.instrument,
        bars.period_ns,
        bars.ts,
        bars.open,
        bars.high,
        bars.low,
        bars.close,
        bars.volume,
    )
    assert FACTS["ln_sd"].compute(bare) is None
    assert FACTS["imb_acf1"].compute(bare) is None
    assert FACTS["acf_abs1440"].compute(bars.rows(0, DAY)) is None
    assert FACTS["std_bp"].compute(bare) is not None


def test_facts_of_an_unknown_period_are_refused() -> None:
    with pytest.raises(ConfigError, match="no facts are known"):
        facts_of(5 * MINUTE_NS)


@pytest.mark.parametrize(
    ("prices", "tick"),
    [([42314.0, 42331.9, 42350.4], 0.1), ([1.01, 1.02, 1.04], 0.01), ([5.0, 10.0, 25.0], 5.0)],
)
def test_the_tick_is_found_from_prices(prices: list[float], tick: float) -> None:
    assert infer_tick(np.array(prices)) == pytest.approx(tick)


def test_published_bands_hold_the_fitted_ones_and_name_their_source() -> None:
    union, strict = published_bands(MINUTE_NS), strict_bands(MINUTE_NS)
    assert set(union.by_fact) == set(strict.by_fact) == set(FACTS)
    for name, band in strict.by_fact.items():
        assert union.by_fact[name].low <= band.low < band.high <= union.by_fact[name].high
    assert "BTC" in union.source


def widths(make: Callable[[int, int], Bars], seeds: Iterable[int]) -> list[float]:
    """The width of a band of 42 days over that of 14 days, for facts of the bars' own shape."""
    names = ("body_frac", "acf_lr1", "imb_sd", "corr_ln_lv", "acf_ln1")
    found = []
    for seed in seeds:
        short, long = (bootstrap_bands(make(seed, days)).by_fact for days in (14, 42))
        found += [(long[n].high - long[n].low) / (short[n].high - short[n].low) for n in names]
    return found


def test_bootstrap_bands_hold_the_fact() -> None:
    bands, series = bootstrap_bands(made(5, 42)), Series(made(5, 42))
    for name in ("std_bp", "acf_lr1", "body_frac", "sp_vol_range", "ln_sd"):
        sums = FACTS[name].day_sums(series)
        assert sums is not None
        assert bands.by_fact[name].holds(sums.total())


def test_bands_narrow_with_the_root_of_the_length() -> None:
    """Days of the imitation are independent, so three times as many give 1 / sqrt(3) = 0.58.

    Fourteen days know their own spread to about a fifth; twenty ratios know it to a twentieth.
    """
    found = widths(lambda seed, days: gaussian_bars(days, seed), range(4))
    assert 0.5 < np.median(found) < 0.66


def test_bands_of_a_market_with_memory_narrow_too() -> None:
    """Days that remember each other tell less: a month holds storms that a fortnight did not."""
    assert 0.5 < np.median(widths(made, (5, 6, 7, 8))) < 0.8


def test_bands_of_real_minutes_match_what_was_published() -> None:
    """The published bands are of the whole year; the year's facts must lie in them."""
    bars = real_minutes("2024-01-01", "2024-12-31T23:59")
    series = Series(bars)
    strict = strict_bands(MINUTE_NS).by_fact
    for name, fact in FACTS.items():
        sums = fact.day_sums(series)
        assert sums is not None
        assert strict[name].holds(sums.total()), name


def test_a_resample_of_days_keeps_pairs_across_midnight() -> None:
    """Two days of opposite sign: pairs at a lag of a day must count, not vanish at midnight."""
    n = 8 * DAY
    base = np.random.Generator(np.random.PCG64(1)).normal(0.0, 1e-3, DAY)
    returns = np.concatenate([base * (1 + 0.01 * day) for day in range(8)])
    close = 100.0 * np.exp(np.cumsum(returns))
    ts = 1_704_067_200_000_000_000 + MINUTE_NS * np.arange(n)
    bars = Bars(
        Instrument(tick=1e-6), MINUTE_NS, ts, close, close * 1.001, close * 0.999, close, close
    )
    assert value("acf_abs1440", bars) > 0.8
    assert bootstrap_bands(bars).by_fact["acf_abs1440"].low > 0.5
