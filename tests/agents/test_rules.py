"""Each rule does what its name says, on ordinary prices and on odd ones."""

import numpy as np
import pytest
import rule_samples as samples
import talib
from rule_samples import RULES, start, walk

from agent_gym.agents.rules.baselines import BuyHoldConfig, RandomConfig, buy_hold, random
from agent_gym.agents.rules.breakout import BreakoutConfig, breakout
from agent_gym.agents.rules.mean_reversion import MeanReversionConfig, mean_reversion
from agent_gym.agents.rules.momentum import MomentumConfig, momentum
from agent_gym.agents.rules.rsi import RsiConfig, rsi
from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
from agent_gym.agents.rules.vol_target import VolTargetConfig, vol_target
from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import configure
from agent_gym.markets.periods import bars_per_year

SECOND_OPINIONS = {
    "sma": (sma_cross, samples.slow_sma_cross, SmaCrossConfig, {"fast": 5, "slow": 13}),
    "sma band": (sma_cross, samples.slow_sma_cross, SmaCrossConfig, {"band": 0.004}),
    "momentum": (momentum, samples.slow_momentum, MomentumConfig, {"threshold": 0.01}),
    "mean": (mean_reversion, samples.slow_mean_reversion, MeanReversionConfig, {"window": 20}),
    "breakout": (breakout, samples.slow_breakout, BreakoutConfig, {}),
    "breakout even": (
        breakout,
        samples.slow_breakout,
        BreakoutConfig,
        {"entry_bars": 9, "exit_bars": 9},
    ),
    "breakout one": (breakout, samples.slow_breakout, BreakoutConfig, {"exit_bars": 1}),
}


@pytest.mark.parametrize("case", list(SECOND_OPINIONS))
@pytest.mark.parametrize("allow_short", [False, True])
def test_a_slow_second_opinion_agrees(case, allow_short):
    factory, slow, kind, params = SECOND_OPINIONS[case]
    config = kind(size=0.7, allow_short=allow_short, **params)
    for seed in range(3):
        bars = walk(700, seed=seed)
        targets = factory(config).targets(start(), bars)
        assert np.array_equal(targets, slow(config, bars))
        assert len(set(targets.tolist())) == (3 if allow_short else 2)


@pytest.mark.parametrize("allow_short", [False, True])
def test_rsi_agrees_with_talib(allow_short):
    config = RsiConfig(period=14, size=0.7, allow_short=allow_short)
    bars = walk(900, seed=2)
    held, expected = 0.0, []
    for index in talib.RSI(bars["close"], 14):
        held = config.size if index < 30 else config.short if index > 70 else held
        expected.append(held)
    assert rsi(config).targets(start(), bars).tolist() == expected
    assert len(set(expected)) == (3 if allow_short else 2)


def test_vol_target_agrees_with_a_slow_second_opinion():
    config = VolTargetConfig(target_vol=0.3, half_life_bars=20, band=0.05)
    bars = walk(400, seed=1, vol=0.008)
    targets = vol_target(config).targets(start(), bars)
    assert targets == pytest.approx(samples.slow_vol_target(config, bars), rel=1e-9)
    changes = np.count_nonzero(np.diff(targets[config.warmup_bars :]))
    assert 0 < changes < 40


def test_vol_target_holds_the_volatility_it_was_told():
    config = VolTargetConfig(target_vol=0.3, half_life_bars=200, band=0.0)
    bars = walk(20_000, seed=4, vol=0.01)
    targets = vol_target(config).targets(start(), bars)
    moves = np.diff(bars["close"]) / bars["close"][:-1]
    held = np.std(targets[:-1][500:] * moves[500:]) * np.sqrt(8760)
    assert held == pytest.approx(0.3, rel=0.05)


def test_vol_target_holds_the_same_yearly_volatility_on_minutes_and_hours():
    # One walk in minutes; every 60th close of it is the same market in hours.
    minutes = walk(600_000, seed=6, vol=0.9 / np.sqrt(525_600))["close"]
    rule = vol_target(VolTargetConfig(target_vol=0.3, half_life_bars=200, band=0.0))
    held = {}
    for period_ns, close in ((MINUTE_NS, minutes), (HOUR_NS, minutes[::60])):
        targets = rule.targets(start(period_ns=period_ns), {"close": close})
        moves = np.diff(close) / close[:-1]
        earned = (targets[:-1] * moves)[500:]
        held[period_ns] = np.std(earned) * np.sqrt(bars_per_year(period_ns))
    assert held[MINUTE_NS] == pytest.approx(0.3, rel=0.05)
    assert held[HOUR_NS] == pytest.approx(held[MINUTE_NS], rel=0.05)


@pytest.mark.parametrize("period_ns", [MINUTE_NS, HOUR_NS, DAY_NS])
def test_a_told_period_is_the_same_as_its_bars_per_year(period_ns):
    bars = walk(300, seed=2, vol=0.02)
    said = vol_target(VolTargetConfig(bars_per_year=bars_per_year(period_ns)))
    told = vol_target(VolTargetConfig()).targets(start(period_ns=period_ns), bars)
    assert said.targets(start(period_ns=None), bars).tobytes() == told.tobytes()
    assert said.targets(start(), bars).tobytes() == told.tobytes()


@pytest.mark.parametrize("period_ns", [None, 0])
def test_vol_target_without_any_period_says_what_to_do(period_ns):
    rule, began = vol_target(VolTargetConfig()), start(period_ns=period_ns)
    for door in (rule.reset, lambda at: rule.lanes([at]), lambda at: rule.targets(at, walk(9))):
        with pytest.raises(AgentError, match="bars_per_year, such as 8760"):
            door(began)


# One setting and another value for every field; with both, short or long, on the same walk.
FIELDS = {
    buy_hold: (BuyHoldConfig, {}, {"size": 0.5}),
    random: (RandomConfig, {"allow_short": True}, {"hold_bars": 7, "size": 0.5}),
    vol_target: (
        VolTargetConfig,
        {"target_vol": 0.3},
        {
            "target_vol": 0.5,
            "bars_per_year": 365.0,
            "half_life_bars": 10.0,
            "warmup_bars": 60,
            "band": 0.02,
            "max_size": 0.3,
        },
    ),
    sma_cross: (
        SmaCrossConfig,
        {"allow_short": True},
        {"fast": 10, "slow": 70, "band": 0.01, "size": 0.5},
    ),
    momentum: (
        MomentumConfig,
        {"allow_short": True},
        {"lookback": 20, "threshold": 0.02, "size": 0.5},
    ),
    mean_reversion: (
        MeanReversionConfig,
        {"allow_short": True},
        {"window": 30, "entry_z": 1.5, "exit_z": 0.1, "size": 0.5},
    ),
    breakout: (
        BreakoutConfig,
        {"allow_short": True},
        {"entry_bars": 30, "exit_bars": 10, "size": 0.5},
    ),
    rsi: (
        RsiConfig,
        {"allow_short": True},
        {"period": 10, "oversold": 40.0, "overbought": 60.0, "size": 0.5},
    ),
}


@pytest.mark.parametrize("factory", list(FIELDS), ids=lambda factory: factory.__name__)
def test_every_field_acts(factory):
    kind, base, others = FIELDS[factory]
    assert set(kind.model_fields) == set(base) | set(others)
    bars = walk(600, seed=7)
    usual = factory(kind(**base)).targets(start(), bars)
    if "allow_short" in base:
        others = others | {"allow_short": False}
        assert usual.min() < 0
    for field, value in others.items():
        changed = factory(kind(**(base | {field: value}))).targets(start(), bars)
        assert changed.tobytes() != usual.tobytes(), field
        if field == "allow_short":
            assert changed.min() >= 0


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("power", [-40, 40])
def test_the_unit_of_the_price_does_not_matter(name, power):
    # A power of two scales every float exactly, so not one bit of a target may change.
    rule, bars = RULES[name](), walk(300, seed=5)
    scaled = {column: values * 2.0**power for column, values in bars.items()}
    usual = rule.targets(start(), bars)
    assert rule.targets(start(), scaled).tobytes() == usual.tobytes()


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("price", [1e-12, 0.1, 1.0, 1 / 3, 1e12])
def test_a_price_that_stands_still_gives_one_steady_target(name, price):
    targets = RULES[name]().targets(
        start(), {column: np.full(500, price) for column in ("high", "low", "close")}
    )
    assert np.isfinite(targets).all()
    if name == "rules/random":
        return
    steady = {"rules/buy-hold": 0.8, "rules/vol-target": 1.0}.get(name, 0.0)
    assert set(targets[10:].tolist()) == {steady}


@pytest.mark.parametrize(
    "name", ["rules/sma-cross", "rules/mean-reversion", "rules/rsi", "rules/momentum"]
)
def test_still_prices_after_a_storm_do_not_trade_on_rounding(name):
    rng_bars = walk(997, seed=11, first=1e9, vol=0.2)
    close = np.concatenate([rng_bars["close"], np.full(20_000, 0.1)])
    targets = RULES[name]().targets(start(), {"close": close})
    calm = targets[997 + 20 :]
    assert len(set(calm.tolist())) == 1


def test_running_sums_do_not_drift():
    # The sum of a window after a price of 1e15 has passed through it: a plain running sum would
    # keep the rounding error of 1e15 for ever and get the crossings of small prices wrong.
    rng = walk(5_000, seed=12)["close"]
    close = np.concatenate([np.full(100, 1e15), rng])
    config = SmaCrossConfig(fast=5, slow=20, allow_short=True)
    targets = sma_cross(config).targets(start(), {"close": close})
    expected = samples.slow_sma_cross(config, {"close": close})
    assert np.array_equal(targets[200:], expected[200:])


def test_sums_of_squares_do_not_drift():
    # The same for the deviation, whose squares lose twice the digits.
    close = np.concatenate([np.full(100, 1e15), walk(3_000, seed=13)["close"]])
    config = MeanReversionConfig(window=20, allow_short=True)
    targets = mean_reversion(config).targets(start(), {"close": close})
    expected = samples.slow_mean_reversion(config, {"close": close})
    assert np.array_equal(targets[1_000:], expected[1_000:])


def test_momentum_follows_a_trend_and_mean_reversion_fades_a_jump():
    rising = {"close": np.linspace(1.0, 2.0, 200)}
    assert momentum(MomentumConfig()).targets(start(), rising)[48:].tolist() == [1.0] * 152
    jump = {"close": np.concatenate([walk(100)["close"], [200.0]])}
    config = MeanReversionConfig(allow_short=True)
    assert mean_reversion(config).targets(start(), jump)[-1] == -1.0


@pytest.mark.parametrize(
    ("name", "bars"),
    [
        ("rules/sma-cross", 6),
        ("rules/momentum", 5),
        ("rules/mean-reversion", 7),
        ("rules/breakout", 6),
        ("rules/rsi", 4),
        ("rules/vol-target", 4),
    ],
)
def test_out_until_enough_has_been_seen(name, bars):
    rule = RULES[name]()
    first = [rule.targets(start(), walk(bars + 1, seed=seed)) for seed in range(40)]
    assert all((targets[:bars] == 0.0).all() for targets in first)
    assert any(targets[bars] != 0.0 for targets in first)


def test_random_depends_on_the_seed_holds_and_is_even():
    rule = random(RandomConfig(hold_bars=4, allow_short=True, size=0.5))
    close = {"close": np.ones(40_000)}
    one, other = rule.targets(start(1), close), rule.targets(start(2), close)
    assert one.tobytes() != other.tobytes()
    draws = one.reshape(-1, 4)
    assert (draws == draws[:, :1]).all()
    values, counts = np.unique(draws[:, 0], return_counts=True)
    assert values.tolist() == [-0.5, 0.0, 0.5]
    assert np.abs(counts / 10_000 - 1 / 3).max() < 0.02
    again = draws[1:, 0] == draws[:-1, 0]
    assert abs(again.mean() - 1 / 3) < 0.02


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (SmaCrossConfig, {"fast": 50, "slow": 50}),
        (BreakoutConfig, {"entry_bars": 5, "exit_bars": 6}),
        (MeanReversionConfig, {"entry_z": 1.0, "exit_z": 1.0}),
        (RsiConfig, {"oversold": 70, "overbought": 60}),
        (RandomConfig, {"hold_bars": 0}),
        (MomentumConfig, {"size": 1.5}),
        (VolTargetConfig, {"target_vol": 0}),
        (SmaCrossConfig, {"fsat": 3}),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, params):
    with pytest.raises(ConfigError):
        configure(kind, params, where="test")
