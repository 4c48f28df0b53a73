"""The choice among tiers, what it is reported by, and the words of the generative model."""

import io
import logging
import math

import numpy as np
import pytest
from scipy.special import entr

from agent_gym.agents.umc.efe import label_information, row_mixture
from agent_gym.agents.umc.market_gi import (
    MarketGI,
    MarketGIConfig,
    begin_coherence,
    coherence,
    follow_coherence,
    plain_scores,
)
from agent_gym.agents.umc.tiers import Forecasts, Series
from agent_gym.agents.umc.tiers.information import DRAWS
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.tier import RecurrentTier
from agent_gym.agents.umc.tiers.selection import choose_model, mean_and_error
from agent_gym.agents.umc.tiers.yardsticks import HiddenLevel, TurningDrift, unit_series
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds

LIGHT, HEAVY = "umc/exact", "umc/kalman"
RECURRENT = Ref(
    use="umc/recurrent",
    params={
        "memory": 6,
        "embedding": 4,
        "width": 6,
        "head_width": 4,
        "heads": 2,
        "sequence_bars": 16,
        "batch_sequences": 2,
        "steps": 8,
        "warm_steps": 4,
        "look_every": 4,
    },
)
LEVEL = HiddenLevel(persistence=0.95, share=0.5)


def fitted(series, *tiers, seed=0):
    refs = tuple(Ref(use=tier) if isinstance(tier, str) else tier for tier in tiers)
    model = MarketGI(MarketGIConfig(tiers=refs) if refs else MarketGIConfig())
    model.fit(series, Seeds(seed))
    return model


def walk(seed, bars):
    return unit_series(Seeds(seed).child("walk").rng().standard_normal(bars))


def forecasts(seed=1, bars=20, heads=4):
    rng = Seeds(seed).child("told").rng()
    chance = rng.dirichlet(np.ones(heads), bars)
    mean, variance = rng.normal(size=(bars, heads)), rng.uniform(0.5, 2.0, (bars, heads))
    return Forecasts(chance, mean, variance, rng.normal(size=bars), chance)


def test_the_tier_that_foretells_better_is_chosen_and_fitted_on_all(caplog):
    with caplog.at_level(logging.INFO):
        model = fitted(LEVEL.draw(2_000, Seeds(1)))
    report = model.report
    assert report.chosen == model.tier.name == HEAVY
    assert f"{HEAVY} is chosen" in caplog.text
    assert report.bars == 400
    light, heavy = report.scores
    assert (light.lead, light.lead_error) == (None, None)
    assert heavy.lead == pytest.approx(heavy.score - light.score)
    assert heavy.lead > heavy.lead_error > 0.0
    assert heavy.lead_error < heavy.error  # the same bars are compared
    alone = fitted(LEVEL.draw(2_000, Seeds(1)), HEAVY)
    for name, array in alone.tier.weights().items():  # fitted on the whole past, like one alone
        assert model.tier.weights()[name].tobytes() == array.tobytes(), name


def test_the_lighter_stays_where_the_lead_is_luck():
    luck = Seeds(3).rng().standard_normal(4_000)
    noise = Seeds(4).rng().standard_normal(4_000)
    chosen = [
        choose_model(("light", "heavy"), [luck, luck + lead + 0.3 * noise]).chosen
        for lead in (-0.1, 0.0, 0.1)
    ]
    assert chosen == ["light", "light", "heavy"]


def test_the_standard_error_sees_that_neighbours_hang_together():
    runs = np.repeat(Seeds(1).rng().standard_normal(200), 50)
    _, error = mean_and_error(runs)
    assert error == pytest.approx(1.0 / math.sqrt(200), rel=0.5)
    assert error > 4.0 * runs.std() / math.sqrt(runs.size)  # what independent bars would give


def test_no_bar_of_the_tail_reaches_the_fit_that_is_judged():
    series = LEVEL.draw(1_000, Seeds(1))
    poisoned = series.returns.copy()
    poisoned[900:] = 7.0
    scores = []
    for returns in (series.returns, poisoned):
        model = MarketGI(MarketGIConfig(held_out_share=0.2))
        model.fit(unit_series(returns), Seeds(0))
        scores.append(model.choose(series.rows(0, 800), series.rows(800, 900)).scores)
    assert scores[0] == scores[1]


def test_a_later_span_may_choose_again():
    past, later = walk(1, 1_000), LEVEL.draw(2_000, Seeds(2))
    model = fitted(past, Ref(use=HEAVY, params={"persistences": []}), Ref(use=LIGHT))
    first = model.report
    again = model.choose(past, later)
    assert again is model.report
    assert again.bars == 2_000
    assert again != first
    weights = model.weights()
    restored = MarketGI(model.config)
    restored.restore(weights)
    with pytest.raises(AgentError, match="fitted here"):
        restored.choose(past, later)


def test_one_tier_holds_nothing_out():
    model = fitted(walk(1, 100), LIGHT)
    assert model.report.scores == ()
    assert model.report.chosen == LIGHT
    assert model.choose(walk(1, 100), walk(2, 100)) == model.report
    with pytest.raises(DataError, match="held-out"):
        fitted(walk(1, 100))


def test_the_same_tier_may_be_there_twice():
    model = fitted(LEVEL.draw(1_500, Seeds(1)), Ref(use=HEAVY, params={"persistences": []}), HEAVY)
    assert model.report.chosen == f"{HEAVY}#2"
    assert len(model.heads) > 1


def test_weights_go_through_a_file():
    series = LEVEL.draw(1_500, Seeds(1))
    model = fitted(series)
    file = io.BytesIO()
    np.savez(file, **model.weights())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        weights = dict(arrays)
    again = MarketGI(MarketGIConfig())
    again.restore(weights)
    assert again.report == model.report
    assert (again.heads, again.inputs) == (model.heads, model.inputs)
    told = [one.filter(series, one.begin()).score.tobytes() for one in (model, again)]
    assert told[0] == told[1]
    with pytest.raises(DataError, match="not among"):
        MarketGI(MarketGIConfig(tiers=(Ref(use=LIGHT),))).restore(weights)
    with pytest.raises(DataError, match="not weights"):
        again.restore({})


def test_nothing_is_followed_before_a_fit():
    with pytest.raises(AgentError, match="chosen"):
        MarketGI(MarketGIConfig()).begin()
    with pytest.raises(ConfigError):
        MarketGI(MarketGIConfig(tiers=(Ref(use="umc/none"),))).fit(walk(1, 100), Seeds(0))


def test_a_fold_goes_on_from_weights_that_have_not_seen_its_held_out_bars():
    series = LEVEL.draw(900, Seeds(1))
    earlier = fitted(series.rows(0, 700), LIGHT, RECURRENT)
    head = RecurrentTier(RecurrentConfig(**RECURRENT.params))
    head.fit(series.rows(0, 560), Seeds(0).child("umc/recurrent"))
    later = MarketGI(earlier.config)
    later.follow(earlier)
    later.fit(series, Seeds(0))
    cold = fitted(series, LIGHT, RECURRENT)
    warm_looks, cold_looks = (m._learned_from().rivals[1].looks for m in (later, cold))
    assert warm_looks[-1].step == 4
    assert cold_looks[-1].step == 8
    for name, array in head.weights().items():
        assert later._starts["umc/recurrent"][name].tobytes() == array.tobytes(), name
    fresh = MarketGI(earlier.config)
    with pytest.raises(AgentError, match="fitted here"):
        later.follow(fresh)


def test_the_words_of_the_model():
    series = LEVEL.draw(1_500, Seeds(1))
    model = fitted(series)
    told = model.filter(series, model.begin())
    assert model.encode(series, model.begin()).tobytes() == told.belief.tobytes()
    assert model.transition(told) is told.mean
    assert model.emission(told) is told.variance
    assert model.free_energy(told) == pytest.approx(-np.nanmean(told.score))
    assert model.free_energy(told) < -plain_scores(series).mean()
    empty = Forecasts(told.chance, told.mean, told.variance, np.full(1_500, np.nan), told.belief)
    with pytest.raises(DataError, match="foretold"):
        model.free_energy(empty)


def test_d4_information_is_about_the_heads_and_weighs_them_by_their_chance():
    model, told = fitted(walk(1, 200), LIGHT), forecasts()
    gained = model.info_gain(told)
    for t in range(20):
        mixture = row_mixture(told.chance[t], told.mean[t], told.variance[t])
        expected = label_information(mixture, np.arange(4), DRAWS[:, None])
        assert gained[t] == pytest.approx(float(expected), abs=1e-10)
    assert (gained <= entr(told.chance).sum(axis=1)).all()
    flat = np.zeros((20, 4))
    equal = Forecasts(told.chance, flat, flat + 1.0, told.score, told.belief)
    assert np.abs(model.info_gain(equal)).max() < 1e-12


def test_d20_two_beliefs_come_closer_on_the_same_bars():
    series = LEVEL.draw(2_000, Seeds(1))
    model = fitted(series, HEAVY)
    one, other = model.begin(), model.begin()
    model.filter(unit_series(np.full(5, 3.0)), one)
    model.filter(unit_series(np.full(5, -3.0)), other)
    kept = one.copy()
    share = model.kl_contraction(series.rows(0, 30), one, other)
    assert 0.0 < share < 0.95
    assert one.tobytes() == kept.tobytes()
    slow = fitted(
        TurningDrift().draw(2_000, Seeds(1)), Ref(use=HEAVY, params={"persistences": [0.998]})
    )
    begun, shown = slow.begin(), slow.begin()
    slow.filter(unit_series(np.full(5, 3.0)), shown)
    assert slow.kl_contraction(series.rows(0, 30), begun, shown) > share  # it forgets later
    with pytest.raises(DataError, match="differ"):
        model.kl_contraction(series.rows(0, 30), one, one)


def test_d2_coherence_is_the_trailing_lead_and_cannot_be_had_by_lying():
    rng = Seeds(1).child("scores").rng()
    scores, plain = rng.normal(-1.5, 0.3, 1_300), rng.normal(-1.4, 0.3, 1_300)
    scores[[0, 700]] = np.nan
    found = coherence(scores, plain)
    lead = (scores - plain)[~np.isnan(scores)]
    assert found[-1] == pytest.approx(min(1.0, math.exp(lead[-500:].mean())))
    assert found[0] == 1.0
    assert found[700] == found[699]
    assert ((found > 0.0) & (found <= 1.0)).all()
    assert coherence(plain + 0.1, plain).min() == 1.0
    assert coherence(plain - 0.5, plain)[-1] == pytest.approx(math.exp(-0.5))


@pytest.mark.parametrize("cut", [1, 499, 500, 777])
def test_coherence_is_the_same_in_pieces_and_knows_nothing_of_later(cut):
    rng = Seeds(2).child("scores").rng()
    scores, plain = rng.normal(-1.5, 1.0, 900), rng.normal(-1.5, 1.0, 900)
    whole, memory = coherence(scores, plain), begin_coherence()
    pieces = [follow_coherence(scores[:cut], plain[:cut], memory)]
    pieces += [
        follow_coherence(scores[t : t + 1], plain[t : t + 1], memory) for t in range(cut, 900)
    ]
    assert np.concatenate(pieces).tobytes() == whole.tobytes()
    poisoned = scores.copy()
    poisoned[cut:] = -1e9
    assert coherence(poisoned, plain)[:cut].tobytes() == whole[:cut].tobytes()
    last = max(0, 900 - max(cut, 400))
    assert coherence(poisoned, plain)[-1] < math.exp(-8.0 * last / 500)


def test_one_bar_far_out_does_not_speak_for_all_others():
    scores = np.full(500, -1.0)
    scores[7] = -1e7
    assert coherence(scores, np.full(500, -1.0))[-1] == pytest.approx(math.exp(-10.0 / 500))


def test_the_baseline_is_a_gaussian_of_the_expected_deviation():
    sigma = np.array([np.nan, 0.01, 0.02])
    bars = Series(np.array([0.0, 0.01, -0.04]), sigma, sigma, np.empty((3, 0)), ())
    expected = [
        -0.5 * z * z - math.log(s * math.sqrt(2 * math.pi)) for z, s in ((1, 0.01), (2, 0.02))
    ]
    assert np.isnan(plain_scores(bars)[0])
    assert plain_scores(bars)[1:] == pytest.approx(expected)
