"""The recurrent tier: what it learns, what it must not learn from, and how it is resumed."""

import io
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from agent_gym.agents.torch_parts import arrays_of
from agent_gym.agents.umc.tiers import Series
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.fitting import FitState, RecurrentFit
from agent_gym.agents.umc.tiers.recurrent.inference import RecurrentFilter
from agent_gym.agents.umc.tiers.recurrent.losses import free_energy
from agent_gym.agents.umc.tiers.recurrent.network import RecurrentNetwork
from agent_gym.agents.umc.tiers.recurrent.sampling import Past
from agent_gym.agents.umc.tiers.recurrent.tier import RecurrentTier
from agent_gym.agents.umc.tiers.recurrent.weights import model_of
from agent_gym.agents.umc.tiers.yardsticks import HiddenLevel, TurningDrift, unit_series
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.seeds import Seeds

SMALL = RecurrentConfig(
    embedding=16,
    memory=16,
    latent=4,
    heads=5,
    head_width=8,
    width=16,
    sequence_bars=32,
    batch_sequences=16,
    steps=100,
    look_every=25,
    learning_rate=1e-2,
    last_learning_rate=5e-4,
)
TINY = SMALL.model_copy(
    update={"memory": 6, "batch_sequences": 3, "steps": 12, "warm_steps": 6, "look_every": 5}
)
PAST, LATER = 3_000, 3_000


@cache
def level():
    """Linear-Gaussian bars, and the tier fitted on the first of them."""
    series = HiddenLevel().draw(PAST + LATER, Seeds(0))
    tier = RecurrentTier(SMALL)
    tier.fit(series.rows(0, PAST), Seeds(1))
    return series, tier


def noisy(seed, bars=300):
    """A market with two inputs, one of which is often not known."""
    rng = Seeds(seed).child("noisy").rng()
    inputs = rng.standard_normal((bars, 2))
    inputs[rng.random(bars) < 0.3, 1] = np.nan
    ones = np.ones(bars)
    return Series(rng.standard_normal(bars), ones, ones, inputs, ("one", "two"))


def batch_of(config, series, start=0):
    past = Past(config, series, Seeds(1))
    noise = Seeds(2).rng().standard_normal((1, config.sequence_bars, config.latent))
    memories = np.zeros((1, config.memory), np.float32)
    return past.columns, past.sequences(np.array([start]), memories, noise.astype(np.float32))


def test_the_loss_falls_and_the_score_rises():
    _, tier = level()
    first, *_, last = tier.looks[1:]
    assert last.loss < first.loss - 0.1
    assert tier.looks[-1].held_out_score > tier.looks[0].held_out_score + 0.05


def test_it_comes_within_two_hundredths_of_the_exact_filter():
    series, tier = level()
    memory = tier.begin()
    tier.filter(series.rows(0, PAST), memory)
    told = tier.filter(series.rows(PAST, PAST + LATER), memory)
    truth = HiddenLevel().scores(series)[PAST:]
    plain = -0.5 * (np.log(2 * np.pi) + series.returns[PAST:] ** 2)
    assert (truth - plain).mean() > 0.08  # so much there is to learn
    assert (truth - told.score).mean() < 0.02


def test_heads_disagree_where_they_were_never_taught():
    _, tier = level()
    usual = HiddenLevel().draw(400, Seeds(7))
    strange = unit_series(6.0 * np.sign(usual.returns))
    on, off = (tier.filter(bars, tier.begin()).error[20:] for bars in (usual, strange))
    assert (off[:, None] > on[None, :]).mean() > 0.8  # the area under the curve
    again = HiddenLevel().draw(400, Seeds(8))
    same = tier.filter(again, tier.begin()).error[20:]
    assert abs((same[:, None] > on[None, :]).mean() - 0.5) < 0.15


def test_d13_d15_the_hidden_state_does_not_collapse():
    tier = RecurrentTier(SMALL.model_copy(update={"steps": 40, "look_every": 20}))
    tier.fit(TurningDrift().draw(2_000, Seeds(0)), Seeds(1))
    assert tier.looks[-1].kl > 0.05
    dear = {"steps": 40, "look_every": 20, "kl_weight": 100.0, "free_nats": 0.0}
    pressed = RecurrentTier(SMALL.model_copy(update=dear))
    pressed.fit(TurningDrift().draw(2_000, Seeds(0)), Seeds(1))
    assert pressed.looks[-1].kl < tier.looks[-1].kl / 4  # so it could have


def test_d15_the_hidden_state_is_drawn_with_a_noise_of_its_own():
    columns, batch = batch_of(SMALL, noisy(1))
    network = RecurrentNetwork(SMALL, columns, Seeds(3))
    drawn = free_energy(network, batch).emission
    otherwise = free_energy(network, replace(batch, noise=-batch.noise)).emission
    assert not torch.equal(drawn, otherwise)
    again = free_energy(network, replace(batch, noise=batch.noise.clone())).emission
    assert torch.equal(drawn, again)


def test_d1_every_parameter_gets_a_gradient():
    columns, batch = batch_of(SMALL, noisy(1))
    network = RecurrentNetwork(SMALL, columns, Seeds(3))
    free_energy(network, batch).total.mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert bool((parameter.grad != 0.0).any()), name


def gradient(series, bar):
    columns, batch = batch_of(SMALL, series)
    network = RecurrentNetwork(SMALL, columns, Seeds(3))
    free_energy(network, batch).total[0, bar].backward()
    return {
        name: parameter.grad.numpy().tobytes()
        for name, parameter in network.named_parameters()
        if parameter.grad is not None
    }


def test_d14_no_gradient_comes_from_beyond_the_horizon():
    bar, reach = 10, SMALL.horizon_bars
    series = HiddenLevel().draw(300, Seeds(5))
    whole = gradient(series, bar)
    for first, equal in ((bar + reach + 1, True), (bar + reach, False)):
        returns = series.returns.copy()
        returns[first:] += 3.0
        assert (gradient(unit_series(returns), bar) == whole) is equal


def test_what_is_followed_is_what_was_trained():
    series = noisy(2)
    columns, batch = batch_of(SMALL, series)
    network = RecurrentNetwork(SMALL, columns, Seeds(3))
    for parameter in network.parameters():  # shortcuts and gaps begin at 0, so move them
        torch.nn.init.uniform_(parameter, -0.3, 0.3, generator=torch.Generator().manual_seed(1))
    normaliser = Past(SMALL, series, Seeds(1)).normaliser
    follower = RecurrentFilter(model_of(arrays_of(network), normaliser, series.names))
    told = follower.filter(series.rows(0, SMALL.sequence_bars), follower.begin())
    with torch.no_grad():
        outlook = network(batch.values, batch.known, batch.start).outlook
    mean = (outlook.logits.exp() * outlook.means).sum(dim=-1)[0].numpy()
    assert np.abs(mean - told.mean).max() < 1e-5
    assert np.abs(mean).max() > 0.05


def test_a_fit_is_resumed_to_the_bit():
    series = noisy(3)
    straight = RecurrentFit(TINY, series, Seeds(4))
    straight.run()
    begun = RecurrentFit(TINY, series, Seeds(4))
    for _ in range(7):
        begun.step()
    file = io.BytesIO()
    np.savez(file, **begun.state().arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        state = FitState(dict(arrays), json.loads(json.dumps(begun.state().values)))
    resumed = RecurrentFit(TINY, series, Seeds(4))
    resumed.restore(state)
    resumed.run()
    assert resumed.looks == straight.looks
    assert resumed.step_count == straight.step_count
    for name, array in straight.model().items():
        assert resumed.model()[name].tobytes() == array.tobytes(), name
    with pytest.raises(DataError, match="another fit"):
        RecurrentFit(TINY, series, Seeds(5)).restore(state)
    with pytest.raises(AgentError, match="over"):
        straight.step()


def test_a_warm_fit_is_never_worse_on_the_held_out_bars_than_where_it_began():
    tier = RecurrentTier(TINY)
    tier.fit(noisy(3), Seeds(1))
    tier.refit(noisy(4), Seeds(2))
    assert tier.looks[-1].step <= TINY.warm_steps
    best = max(look.held_out_score for look in tier.looks)
    fit = tier.start(noisy(4), Seeds(2), warm=True)
    assert fit.looks[0].held_out_score == pytest.approx(best, abs=1e-12)
    with pytest.raises(DataError, match="other inputs"):
        tier.refit(HiddenLevel().draw(300, Seeds(0)), Seeds(2))


def test_bars_before_any_deviation_are_not_learned_from():
    series = noisy(3)
    returns, expected, sigma = series.returns.copy(), np.ones(300), np.ones(300)
    expected[:2], sigma[0], returns[0] = np.nan, 1e-6, 0.0
    late = Series(returns, expected, sigma, series.inputs, series.names)
    fits = [RecurrentFit(TINY, bars, Seeds(1)) for bars in (late, late.rows(2, 300))]
    for fit in fits:
        fit.run()
    assert fits[0].looks == fits[1].looks
    wrong = Series(returns, expected, np.zeros(300), series.inputs, series.names)
    with pytest.raises(DataError, match="deviation"):
        RecurrentFit(TINY, wrong, Seeds(1))
