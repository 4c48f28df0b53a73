"""What every tier promises, whatever it is made of."""

import io
import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from agent_gym.agents.umc.tiers import Series, Tier
from agent_gym.core.errors import AgentGymError, DataError
from agent_gym.core.registry import Ref, make, names
from agent_gym.core.seeds import Seeds

SMALL = {
    "embedding": 6,
    "memory": 8,
    "latent": 2,
    "heads": 3,
    "head_width": 5,
    "width": 7,
    "sequence_bars": 16,
    "batch_sequences": 4,
    "steps": 12,
    "warm_steps": 6,
    "look_every": 6,
}
TIERS = {"umc/exact": {}, "umc/kalman": {}, "umc/recurrent": SMALL}
BARS, PAST = 420, 260
every_tier = pytest.mark.parametrize("use", sorted(TIERS))


def tier(use):
    return make("tier", Ref(use=use, params=TIERS[use]))


@cache
def market():
    """A market with gaps in an input, whose deviation is not known at first."""
    rng = Seeds(4).child("market").rng()
    returns = rng.standard_normal(BARS) * 0.01
    returns[0] = 0.0
    sigma = np.sqrt(np.cumsum(returns**2) / np.maximum(np.arange(BARS), 1))
    sigma[0] = 1e-6
    expected = np.concatenate([[np.nan, np.nan], sigma[1:-1]])
    inputs = np.column_stack([rng.standard_normal(BARS), rng.random(BARS)])
    inputs[rng.random(BARS) < 0.3, 1] = np.nan
    return Series(returns, expected, sigma, inputs, ("signal", "rare"))


@cache
def fitted(use):
    found = tier(use)
    found.fit(market().rows(0, PAST), Seeds(1))
    return found


def follow(use, series, memory=None):
    model = fitted(use)
    return model.filter(series, model.begin() if memory is None else memory)


def parts(told):
    return told.chance, told.mean, told.variance, told.score, told.belief


def same(left, right):
    return all(
        a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(parts(left), parts(right), strict=True)
    )


def changed(series, start, value):
    """The series with every number from a bar on replaced."""
    arrays = [series.returns, series.expected_sigma, series.sigma, series.inputs]
    copies = [array.copy() for array in arrays]
    for array in copies:
        array[start:] = value
    return Series(*copies, series.names)


def test_the_list_of_tiers_is_the_one_tested_here():
    assert set(names("tier")) == set(TIERS)


@every_tier
def test_the_contract_is_there(use):
    model = fitted(use)
    assert isinstance(model, Tier)
    assert model.name == use
    told = follow(use, market())
    assert told.mean.shape == told.variance.shape == told.chance.shape == (BARS, len(model.heads))
    assert len(set(model.heads)) == len(model.heads)
    assert (told.variance > 0.0).all()
    assert (told.chance >= 0.0).all()
    assert np.abs(told.chance.sum(axis=1) - 1.0).max() < 1e-12
    assert np.isfinite(told.mean).all()
    assert np.isfinite(told.belief).all()
    assert np.isnan(told.score[:2]).all()  # no deviation was known before these two
    assert np.isfinite(told.score[3:]).all()
    assert model.begin().dtype == np.float64
    assert model.begin().ndim == 1


@every_tier
@pytest.mark.parametrize("bars", [1, 2, 7, 300])
def test_d37_a_prefix_is_told_the_same(use, bars):
    told, short = follow(use, market()), follow(use, market().rows(0, bars))
    for whole, begun in zip(parts(told), parts(short), strict=True):
        assert whole[:bars].tobytes() == begun.tobytes()


@every_tier
@pytest.mark.parametrize("poison", [np.nan, 1e9, 1e-9])
def test_d37_later_bars_change_nothing_earlier(use, poison):
    at = 300
    told, poisoned = follow(use, market()), follow(use, changed(market(), at, poison))
    for clean, dirty in zip(parts(told), parts(poisoned), strict=True):
        assert clean[:at].tobytes() == dirty[:at].tobytes()
    assert told.score[at:].tobytes() != poisoned.score[at:].tobytes()  # so the poison is one


@every_tier
@pytest.mark.parametrize("cuts", [range(1, BARS), [3, 3, 111, 390], []])
def test_d21_pieces_are_the_whole_bit_for_bit(use, cuts):
    series, model = market(), fitted(use)
    memory, whole_memory = model.begin(), model.begin()
    edges = [0, *cuts, BARS]
    pieces = [
        model.filter(series.rows(start, stop), memory) for start, stop in itertools.pairwise(edges)
    ]
    whole = model.filter(series, whole_memory)
    for i, part in enumerate(parts(whole)):
        assert np.concatenate([parts(piece)[i] for piece in pieces]).tobytes() == part.tobytes()
    assert memory.tobytes() == whole_memory.tobytes()


@every_tier
def test_d11_following_draws_nothing_at_random(use):
    assert same(follow(use, market()), follow(use, market()))


@every_tier
def test_the_same_seed_gives_the_same_model(use):
    again = tier(use)
    again.fit(market().rows(0, PAST), Seeds(1))
    for name, array in fitted(use).weights().items():
        assert again.weights()[name].tobytes() == array.tobytes(), name


@every_tier
def test_bars_after_the_past_do_not_change_a_fit(use):
    again = tier(use)
    again.fit(changed(market(), PAST, 1e9).rows(0, PAST), Seeds(1))
    assert same(again.filter(market(), again.begin()), follow(use, market()))


@every_tier
def test_weights_go_through_a_file_without_pickle(use):
    file = io.BytesIO()
    np.savez(file, **fitted(use).weights())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        weights = {name: arrays[name] for name in arrays.files}
    again = tier(use)
    again.restore(weights, market().names)
    assert again.heads == fitted(use).heads
    assert same(again.filter(market(), again.begin()), follow(use, market()))


@every_tier
def test_what_was_returned_can_be_changed_without_harm(use):
    before = {name: array.copy() for name, array in fitted(use).weights().items()}
    for array in fitted(use).weights().values():
        array[...] = 0
    for name, array in fitted(use).weights().items():
        assert array.tobytes() == before[name].tobytes(), name


@every_tier
def test_other_inputs_are_refused(use):
    series = market()
    other = Series(
        series.returns, series.expected_sigma, series.sigma, series.inputs, ("rare", "signal")
    )
    with pytest.raises(AgentGymError, match="inputs"):
        fitted(use).filter(other, fitted(use).begin())
    with pytest.raises(DataError):
        tier(use).restore(fitted(use).weights(), ("signal",))


@every_tier
def test_nothing_is_told_before_a_fit(use):
    with pytest.raises(AgentGymError, match="fit"):
        tier(use).begin()


@every_tier
def test_a_short_past_is_refused(use):
    with pytest.raises(DataError):
        tier(use).fit(market().rows(0, 12), Seeds(1))


@pytest.mark.parametrize(
    ("use", "params"), [("umc/kalman", {}), ("umc/recurrent", {**SMALL, "components": 1})]
)
def test_d14_a_bar_is_scored_by_what_was_said_before_it(use, params):
    """Where heads are Gaussian, the score must be that of the forecasts one row above."""
    model = make("tier", Ref(use=use, params=params))
    series = market()
    model.fit(series.rows(0, PAST), Seeds(1))
    told = model.filter(series, model.begin())
    spread = np.sqrt(told.variance)
    value = series.returns[1:, None]
    with np.errstate(divide="ignore"):
        chance = np.log(told.chance[:-1])
    ahead = logsumexp(chance + norm.logpdf(value, told.mean[:-1], spread[:-1]), axis=1)
    assert np.abs(ahead[3:] - told.score[4:]).max() < 1e-9
    hindsight = logsumexp(chance + norm.logpdf(value, told.mean[1:], spread[1:]), axis=1)
    assert np.abs(hindsight[3:] - told.score[4:]).max() > 1e-3


@pytest.mark.parametrize("use", ["umc/kalman", "umc/recurrent"])
def test_a_missing_input_is_not_read_as_a_number(use):
    series = market()
    gap = Series(
        series.returns, series.expected_sigma, series.sigma, series.inputs.copy(), series.names
    )
    gap.inputs[300, 0] = math.nan
    wild = Series(
        series.returns, series.expected_sigma, series.sigma, gap.inputs.copy(), series.names
    )
    wild.inputs[300, 0] = math.inf
    assert same(follow(use, gap), follow(use, wild))  # neither is known
    assert not same(follow(use, gap), follow(use, series))


@every_tier
def test_d18_d24_the_size_of_returns_does_not_matter(use):
    """A market that moves four times as much is the same market in its own deviations."""
    series = market()
    wilder = Series(
        4.0 * series.returns,
        4.0 * series.expected_sigma,
        4.0 * series.sigma,
        series.inputs,
        series.names,
    )
    again = tier(use)
    again.fit(wilder.rows(0, PAST), Seeds(1))
    told, scaled = follow(use, series), again.filter(wilder, again.begin())
    assert scaled.mean.tobytes() == (4.0 * told.mean).tobytes()
    assert scaled.variance.tobytes() == (16.0 * told.variance).tobytes()
    assert scaled.chance.tobytes() == told.chance.tobytes()
    assert scaled.score[3:] == pytest.approx(told.score[3:] - math.log(4.0), abs=1e-12)
