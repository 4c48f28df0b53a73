"""The known markets: their laws hold, their bars are bars, their truth stays out of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import Ref, Seeds
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import configure, entry
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.exchange.costs import Costs
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import PRICE_COLUMNS
from agent_gym.markets.features import compute_features
from agent_gym.markets.known import KNOWN, NULLS, draw, full_name
from agent_gym.markets.source import open_market

SHOWN = {"known/m2": ("signal_mispricing",), "known/m4": ("signal_04",)}  # what is meant to be seen
LEADING = {"known/m2", "known/m4"}


def drawn(name, seed=1, **params):
    return draw(Ref(use=name, params=params), Seeds(seed))


def returns_of(bars):
    return bars.close / bars.open - 1.0


def same_bars(first, second):
    return first.fingerprint == second.fingerprint


def test_the_names_are_those_of_the_suite():
    assert len(KNOWN) == 11
    assert [full_name(name.removeprefix("known/")) for name in KNOWN] == list(KNOWN)
    assert NULLS == ("known/n1", "known/n2", "known/n3", "known/n4")
    with pytest.raises(ConfigError, match="m9"):
        full_name("m9")


@pytest.mark.parametrize("name", KNOWN)
def test_drawn_bars_are_those_of_the_market(name):
    ref = Ref(use=name, params={"n_bars": 500})
    both = draw(ref, Seeds(3))
    assert same_bars(both.bars, open_market(ref, Seeds(3)))
    assert not same_bars(both.bars, open_market(ref, Seeds(4)))
    assert "drift" in both.truth
    assert {column.shape for column in both.truth.values()} == {(500,)}
    assert both.bars.provenance.origin == name
    assert len(entry("market", name).config.model_fields) >= 1


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "known/b1"])
def test_a_longer_market_begins_with_the_shorter(name):
    short, long = drawn(name, n_bars=300), drawn(name, n_bars=700)
    for column, values in short.bars.columns().items():
        np.testing.assert_array_equal(values, long.bars.columns()[column][:300])
    for column, values in short.truth.items():
        np.testing.assert_array_equal(values, long.truth[column][:300])


@pytest.mark.parametrize("name", KNOWN)
def test_bars_can_be_traded_and_have_real_wicks(name):
    bars = drawn(name, n_bars=3_000).bars
    Tape.of(bars, Costs())
    np.testing.assert_array_equal(bars.open[1:], bars.close[:-1])
    assert bars.instrument.kind == "spot"
    above = bars.high > np.maximum(bars.open, bars.close)
    below = bars.low < np.minimum(bars.open, bars.close)
    assert above.mean() > 0.5
    assert below.mean() > 0.5
    assert np.unique(bars.volume).size > 2_900
    assert bars.volume.min() * bars.close.min() > 1e8


def test_m1_drifts_as_its_truth_says():
    path = drawn("known/m1", n_bars=400_000)
    returns, regime = returns_of(path.bars), path.truth["regime"]
    assert set(np.unique(path.truth["drift"]).round(9)) == {-6e-4, 6e-4}
    error = 0.006 / np.sqrt(200_000)
    assert abs(returns[regime == 1].mean() - 6e-4) < 4 * error
    assert abs(returns[regime == 0].mean() + 6e-4) < 4 * error
    assert abs((np.diff(regime) != 0).mean() - 0.005) < 5e-4
    assert abs(regime.mean() - 0.5) < 0.05
    assert abs((returns - path.truth["drift"]).std() - 0.006) < 5e-5


def test_b1_is_m1_until_it_breaks():
    whole, broken = drawn("known/m1", n_bars=2_000), drawn("known/b1", n_bars=2_000, break_at=0.25)
    np.testing.assert_array_equal(whole.bars.close[:500], broken.bars.close[:500])
    assert not (whole.bars.close[500:] == broken.bars.close[500:]).any()
    assert not broken.truth["drift"][500:].any()
    assert broken.truth["broken"].sum() == 1_500


@pytest.mark.parametrize("name", ["known/m2", "known/m2-hidden"])
def test_m2_goes_back_to_its_value(name):
    path = drawn(name, n_bars=200_000)
    level, returns = path.truth["mispricing"], returns_of(path.bars)
    assert abs(level.std() - 0.002 / np.sqrt(1 - 0.98**2)) < 5e-4
    slope = np.polyfit(level[:-1], returns[1:], 1)[0]
    assert abs(slope + 0.02) < 0.006
    np.testing.assert_allclose(path.truth["drift"][1:], -0.02 * level[:-1])


def test_m2_shows_the_mispricing_and_hidden_shows_nothing():
    seen, hidden = drawn("known/m2", n_bars=1_000), drawn("known/m2-hidden", n_bars=1_000)
    np.testing.assert_array_equal(seen.bars.close, hidden.bars.close)
    assert list(seen.bars.extra) == ["signal_mispricing"]
    assert list(hidden.bars.extra) == []
    level = seen.bars.extra["signal_mispricing"] * 0.002 / np.sqrt(1 - 0.98**2)
    np.testing.assert_allclose(level, seen.truth["mispricing"])


def test_m3_switches_the_sign_of_its_memory():
    path = drawn("known/m3", n_bars=300_000)
    returns, regime = returns_of(path.bars), path.truth["regime"]
    for state, sign in ((0, -1.0), (1, 1.0)):
        at = np.flatnonzero(regime[1:] == state) + 1
        slope = np.polyfit(returns[at - 1], returns[at], 1)[0]
        assert abs(slope - sign * 0.08) < 0.012
    assert abs(np.corrcoef(returns[1:], returns[:-1])[0, 1]) < 0.03


def test_m4_has_one_signal_that_leads_among_decoys():
    path = drawn("known/m4", n_bars=300_000)
    returns, shown = returns_of(path.bars), path.bars.extra
    assert len(shown) == 11
    leads = {name: np.corrcoef(column[:-1], returns[1:])[0, 1] for name, column in shown.items()}
    assert abs(leads.pop("signal_04") - 0.05) < 0.008
    assert max(map(abs, leads.values())) < 0.008
    for column in shown.values():
        assert abs(column.std() - 1.0) < 0.05
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1] - 0.9) < 0.01
    other = drawn("known/m4", n_bars=300, decoys=2, place=1)
    np.testing.assert_array_equal(other.truth["signal"], other.bars.extra["signal_01"])
    with pytest.raises(ConfigError, match="place"):
        drawn("known/m4", decoys=2, place=4)


def test_m5_changes_how_wild_it_is_and_nothing_else():
    path = drawn("known/m5", n_bars=200_000)
    returns, regime = returns_of(path.bars), path.truth["regime"]
    assert abs(returns[regime == 0].std() - 0.003) < 1e-4
    assert abs(returns[regime == 1].std() - 0.009) < 2e-4
    assert abs(np.corrcoef(returns[1:], returns[:-1])[0, 1]) < 0.02
    drift = returns_of(drawn("known/m5", n_bars=2_000, drift_bp=50.0).bars).mean()
    assert abs(drift - 50e-4) < 8e-4


@pytest.mark.parametrize("name", NULLS)
def test_a_null_is_a_fair_game(name):
    path = drawn(name, n_bars=100_000)
    returns = returns_of(path.bars)
    error = returns.std() / np.sqrt(returns.size)
    assert abs(returns.mean()) < 4 * error
    assert not path.truth["drift"].any()
    for lag in (1, 2, 24):
        after, before = returns[lag:], np.sign(returns[:-lag])
        assert abs((after * before).mean()) < 4 * error


def test_n2_has_clusters_and_tails_and_n1_has_not():
    def facts(name):
        returns = returns_of(drawn(name, n_bars=60_000).bars)
        squares = returns**2
        clusters = np.corrcoef(np.abs(returns[1:]), np.abs(returns[:-1]))[0, 1]
        return clusters, (squares**2).mean() / squares.mean() ** 2

    clusters, tails = facts("known/n2")
    assert clusters > 0.1
    assert tails > 6
    clusters, tails = facts("known/n1")
    assert abs(clusters) < 0.02
    assert abs(tails - 3.0) < 0.15


def test_n3_draws_blocks_of_the_returns_it_is_given():
    law = {"n_bars": 5_000, "reversion": 0.9, "shock_pct": 1.0, "sigma_pct": 0.1}
    source = {"use": "known/m2-hidden", "params": law}
    real = open_market(Ref(**source), Seeds(1).child("source"))
    pool = real.close[1:] / real.close[:-1] - 1.0
    kept = drawn("known/n3", n_bars=4_000, source=source, flip_signs=False)
    pool = np.sort(pool - pool.mean())
    place = np.clip(np.searchsorted(pool, returns_of(kept.bars)), 1, pool.size - 1)
    beside = np.abs(pool[[place - 1, place]] - returns_of(kept.bars)).min(axis=0)
    assert beside.max() < 1e-12

    def memory(path):
        returns = returns_of(path.bars)
        return abs(np.corrcoef(returns[1:], returns[:-1])[0, 1])

    flipped = drawn("known/n3", n_bars=4_000, source=source)
    sizes = np.abs(returns_of(kept.bars)), np.abs(returns_of(flipped.bars))
    np.testing.assert_allclose(*sizes, atol=1e-12)
    assert memory(kept) > 0.2
    assert memory(flipped) < 0.06
    single = drawn("known/n3", n_bars=4_000, source=source, flip_signs=False, block_bars=1.0)
    assert memory(single) < 0.06
    with pytest.raises(ConfigError, match="too short"):
        drawn("known/n3", source={"use": "known/n1", "params": {"n_bars": 50}})


def test_n4_looks_alive_and_says_nothing_ahead():
    bars = drawn("known/n4", n_bars=100_000).bars
    returns = returns_of(bars)
    for name in ("taker_buy", "obi", "ofi"):
        column = bars.extra[name] / bars.volume if name != "obi" else bars.extra[name]
        assert np.corrcoef(column, returns)[0, 1] > 0.2, name
        assert abs(np.corrcoef(column[:-1], returns[1:])[0, 1]) < 0.013, name
    assert np.corrcoef(np.log(bars.volume), np.abs(returns))[0, 1] > 0.1
    assert abs(np.corrcoef(np.log(bars.volume[:-1]), returns[1:])[0, 1]) < 0.013
    assert compute_features(bars.rows(0, 2_000)).mask[1_000, 9:13].all()


def readable(bars):
    """Yield every column that an agent can read, by name: bars, extra columns, features, masks."""
    yield from bars.columns().items()
    names, rows = compute_features(bars).observations(np.float64)
    yield from zip(names, rows.T, strict=True)


def leaks(bars, truth, shown=()):
    """Return the readable columns that tell a truth, at the same bar or one beside it."""
    found = []
    for name, column in readable(bars):
        for secret, values in truth.items():
            for lag in (-1, 0, 1):
                a, b = np.roll(column, lag)[500:-1], values[500:-1]
                if name in shown or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
                    continue
                if np.array_equal(a, b) or abs(np.corrcoef(a, b)[0, 1]) > 0.9:
                    found.append((name, secret, lag))
    return found


@pytest.mark.parametrize("name", KNOWN)
def test_the_truth_is_in_no_column_that_an_agent_can_read(name):
    path = drawn(name, n_bars=6_000)
    shown = {each for column in SHOWN.get(name, ()) for each in (column, column + "_known")}
    assert leaks(path.bars, path.truth, shown) == []


@pytest.mark.parametrize("name", sorted(LEADING))
def test_the_shown_signals_are_the_only_exception(name):
    path = drawn(name, n_bars=6_000)
    assert {column for column, _, _ in leaks(path.bars, path.truth)} == set(SHOWN[name])


@pytest.mark.parametrize("secret", ["regime", "drift"])
def test_a_planted_leak_is_found(secret):
    path = drawn("known/m1", n_bars=6_000)
    spoilt = replace(path.bars, extra={"signal_oops": -3.0 * path.truth[secret] + 1.0})
    assert ("signal_oops", secret, 0) in leaks(spoilt, path.truth)
    # A leak that only changes the volume a little is one still.
    louder = replace(path.bars, volume=1e9 * (2.0 + np.roll(path.truth["regime"], 1)))
    assert any(column == "volume" for column, _, _ in leaks(louder, path.truth))


def test_a_world_shows_signals_by_name_beside_the_features():
    config = MarketConfig(
        market=Ref(use="known/m4", params={"n_bars": 600}),
        market_seed=1,
        random_start=False,
        episode_bars=99,
    )
    world = MarketWorld(config)
    names = world.start("trader", Seeds(0)).feature_names
    path = drawn("known/m4", n_bars=600)
    seen = world.reset(Seeds(0))["trader"].features
    assert seen[names.index("signal_04")] == path.bars.extra["signal_04"][config.warmup_bars]
    assert seen[names.index("signal_04_known")] == 1.0
    one = MarketConfig(market=Ref(use="known/m4", params={"n_bars": 900}), features=("signal_04",))
    names = MarketWorld(one).start("trader", Seeds(0)).feature_names
    assert names[: len(PRICE_COLUMNS) + 1] == (*PRICE_COLUMNS, "signal_04")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("known/m1", {"stay": 1.0}),
        ("known/m1", {"drift_pct": 1.0}),
        ("known/m2", {"reversion": 0.0}),
        ("known/n2", {"reaction": 0.5, "persistence": 0.5}),
        ("known/b1", {"break_at": 1.5}),
        ("known/n1", {"n_bars": 1}),
    ],
)
def test_what_makes_no_market_is_refused(name, params):
    with pytest.raises(ConfigError):
        drawn(name, **params)


def test_a_price_that_leaves_all_bounds_is_refused():
    with pytest.raises(ConfigError, match="bounds"):
        drawn("known/m5", n_bars=20_000, drift_bp=100.0)


CHANGED = {
    "n_bars": 700,
    "drift_bp": 9.0,
    "sigma_pct": 0.7,
    "stay": 0.9,
    "break_at": 0.3,
    "reversion": 0.1,
    "shock_pct": 0.4,
    "autocorrelation": 0.3,
    "correlation": 0.2,
    "memory": 0.5,
    "decoys": 7,
    "place": 2,
    "calm_sigma_pct": 0.2,
    "wild_sigma_pct": 1.2,
    "reaction": 0.05,
    "persistence": 0.7,
    "freedom": 8.0,
    "source": {"use": "known/n1", "params": {"n_bars": 1_000}},
    "block_bars": 10.0,
    "flip_signs": False,
}


@pytest.mark.parametrize("name", KNOWN)
def test_every_parameter_changes_the_market(name):
    plain = drawn(name, n_bars=600)
    for field in entry("market", name).config.model_fields:
        other = drawn(name, **({"n_bars": 600} | {field: CHANGED[field]}))
        assert not same_bars(plain.bars, other.bars), field


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from([name for name in KNOWN if name != "known/n3"]),
    seed=st.integers(0, 10**6),
    n=st.integers(2, 400),
)
def test_any_seed_gives_whole_bars(name, seed, n):
    bars = drawn(name, seed, n_bars=n).bars
    assert len(bars) == n
    for column in bars.columns().values():
        assert np.isfinite(column).all()
    assert (bars.low > 0.0).all()
    assert configure(entry("market", name).config, {"n_bars": n}, where="test").n_bars == n
