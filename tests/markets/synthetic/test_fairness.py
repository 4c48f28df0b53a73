"""No one may earn by the way a market is made: not by funding, not by names, not by reversal."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.types import FloatArray
from agent_gym.markets.synthetic import REGIMES, GeneratorConfig, SyntheticMarket, generate

SEEDS = range(40)
PERIODS = 600
# The free lunch is about 1 bp in 8 hours; a calm market makes it visible with few bars. Funding is
# kept from following the price: where carry alone moves it, the two would drive each other up.
CALM = {
    "volatility.level": -10.0,
    "jumps.cap": 1e-4,
    "prints.gap_rate": 0.0,
    "funding.price_share": 0.0,
}


def hours(seed: int, *, carry: bool) -> SyntheticMarket:
    config = GeneratorConfig(preset="btc-1h", n_bars=8 * PERIODS, carry=carry, overrides=CALM)
    return generate(config, Seeds(seed))


def short_results_bp(market: SyntheticMarket) -> FloatArray:
    """What a short earns from one settlement to the next, funding included."""
    bars = market.bars
    due = np.flatnonzero(bars.ts % (8 * HOUR_NS) == 0)
    opens, funding = bars.open[due], bars.extra["funding"][due]
    result: FloatArray = (-(opens[1:] / opens[:-1] - 1.0) + funding[1:]) * 1e4
    return result


def mean_and_error(carry: bool) -> tuple[float, float]:
    means = [short_results_bp(hours(seed, carry=carry)).mean() for seed in SEEDS]
    return float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(len(means)))


def test_shorts_earn_nothing_when_the_price_carries_the_funding() -> None:
    mean, error = mean_and_error(carry=True)
    assert error < 0.02  # a fiftieth of the lunch, so that little can hide in it
    assert abs(mean) < 3.0 * error


def test_without_carry_shorts_would_have_a_free_lunch() -> None:
    """The negative control of the test above: it must see a lunch of the usual size, and surely.

    The mean funding of a seed wanders slowly: its error over 40 seeds is 0.16 bp, a sixth of the
    lunch. Less the funding itself, which the same dice pay, the error is ten times smaller.
    """
    free, carried, funded = [], [], []
    for seed in SEEDS:
        market = hours(seed, carry=False)
        due = market.bars.ts % (8 * HOUR_NS) == 0
        funded.append(market.bars.extra["funding"][due][1:].mean() * 1e4)
        free.append(short_results_bp(market).mean())
        carried.append(short_results_bp(hours(seed, carry=True)).mean())
    for lunch in (np.array(free), np.array(free) - np.array(carried)):
        assert lunch.mean() > 5.0 * lunch.std(ddof=1) / np.sqrt(len(lunch))
        assert 0.5 < lunch.mean() < 2.0
    rest = np.array(free) - np.array(funded)
    assert abs(rest.mean()) < 3.0 * rest.std(ddof=1) / np.sqrt(len(rest)) < 0.06


@pytest.mark.parametrize("preset", ["btc-1m", "btc-1h"])
def test_the_drift_of_a_period_is_the_funding_that_ends_it(preset: str) -> None:
    market = generate(GeneratorConfig(preset=preset, n_bars=4000), Seeds(2))
    due = np.flatnonzero(market.bars.ts % (8 * HOUR_NS) == 0)
    drift = np.add.reduceat(market.truth.drift, due)[:-1]
    np.testing.assert_allclose(drift, market.bars.extra["funding"][due][1:], atol=1e-12)


def test_funding_has_the_level_spread_and_memory_of_real_funding() -> None:
    rates = []
    for seed in range(12):
        bars = generate(GeneratorConfig(preset="btc-1h", n_bars=8 * 1500), Seeds(seed)).bars
        due = bars.ts % (8 * HOUR_NS) == 0
        rates.append(bars.extra["funding"][due][1:] * 1e4)
    every = np.concatenate(rates)
    assert 0.8 < every.mean() < 1.5
    assert 1.7 < every.std() < 2.8
    assert 0.3 < np.mean(np.isclose(every, 1.0)) < 0.45
    near = np.mean([np.corrcoef(row[:-1], row[1:])[0, 1] for row in rates])
    far = np.mean([np.corrcoef(row[:-21], row[21:])[0, 1] for row in rates])
    assert 0.65 < near < 0.9
    assert 0.2 < far < 0.6


def test_the_price_has_no_drift_of_its_own() -> None:
    config = GeneratorConfig(preset="btc-1h", n_bars=8 * PERIODS, carry=False, overrides=CALM)
    growth = []
    for seed in SEEDS:
        bars = generate(config, Seeds(seed)).bars
        growth.append(bars.close[-1] / bars.open[0] - 1.0)
    error = np.std(growth, ddof=1) / np.sqrt(len(growth))
    assert abs(np.mean(growth)) < 3.5 * error


def test_a_regime_says_nothing_of_the_segment_after_it() -> None:
    after: dict[int, list[float]] = {}
    for seed in range(6):
        market = generate(GeneratorConfig(n_bars=60 * 1440), Seeds(seed))
        log_close = np.log(market.bars.close)
        change = np.flatnonzero(np.diff(market.truth.regime)) + 1
        change = change[change + 60 < len(market.bars)]
        for place in change:
            regime = int(market.truth.regime[place - 1])
            after.setdefault(regime, []).append(log_close[place + 59] - log_close[place - 1])
    for regime, moves in after.items():
        error = np.std(moves) / np.sqrt(len(moves))
        assert abs(np.mean(moves)) < 4.0 * error + 2e-4, REGIMES[regime]


def test_regimes_separate_in_hindsight() -> None:
    market = generate(GeneratorConfig(n_bars=120 * 1440), Seeds(3))
    returns = np.diff(np.log(market.bars.close), prepend=np.log(market.bars.open[0]))
    by_name = {name: returns[market.truth.regime == i].mean() for i, name in enumerate(REGIMES[:3])}
    assert by_name["trend_up"] > 0.0 > by_name["trend_down"]


def test_an_asked_drift_is_published_and_moves_the_price() -> None:
    config = GeneratorConfig(n_bars=30 * 1440, carry=False, drift=(0.0, 0.2, 0.2, 0.0))
    market = generate(config, Seeds(4))
    truth = market.truth
    np.testing.assert_allclose(
        truth.drift, np.array(config.drift)[truth.activity] * truth.direction * truth.sigma
    )
    returns = np.diff(np.log(market.bars.close), prepend=np.log(market.bars.open[0]))
    scored = returns / truth.sigma
    up, down = truth.drift > 0.0, truth.drift < 0.0
    assert scored[up].mean() > 0.1
    assert scored[down].mean() < -0.1
    named_up = truth.regime[up]
    assert set(named_up.tolist()) == {REGIMES.index("trend_up")}
