"""It learns what there is to learn, and nothing where there is nothing. All seeds are in the
published figures (docs/results/grpo_signal_market.json); here are a few of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo import GRPOTrainingService
from agent_gym.training.grpo.proof import LEARNING, Case, LengthBias, learn, length_bias
from agent_gym.training.grpo.signal_market import SignalMarket, SignalMarketConfig
from tests.training.grpo_samples import MARKET, learner

torch.set_num_threads(1)
SHORT = LEARNING.model_copy(update={"updates": 25})
PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "results" / "grpo_signal_market.json"


@pytest.mark.parametrize("scaling", ["std", "none", "batch"])
@pytest.mark.parametrize("seed", [1, 4])
def test_it_reaches_the_optimum_exactly(scaling, seed):
    found = learn(Case(config=SHORT.model_copy(update={"scaling": scaling})), seed)
    assert found.scores[0] < 0
    assert found.scores[25] == found.best


def test_reward_to_go_reaches_it_too():
    found = learn(Case(config=SHORT.model_copy(update={"credit": "reward_to_go"})), 1)
    assert found.scores[25] == found.best


@pytest.mark.parametrize("seed", [0, 1])
def test_flipped_rewards_end_at_the_worst(seed):
    found = learn(Case("flipped", SHORT), seed)
    assert found.scores[25] == found.worst


def test_constant_rewards_leave_every_bit_as_it_was():
    found = learn(Case("constant", SHORT), 1)
    assert found.result.model_before == found.result.model_after == found.policy.version
    assert {update.zero_share for update in found.result.updates} == {1.0}
    assert found.scores[0] == found.scores[25]


def test_shuffled_rewards_improve_nothing_on_average():
    """One seed may go up or down by luck, so only the mean over ten says anything."""
    ended = [learn(Case("shuffled", SHORT), seed) for seed in range(10)]
    gains = np.array([one.expected[25] - one.expected[0] for one in ended])
    assert gains.mean() < 2 * gains.std(ddof=1) / np.sqrt(10)
    assert np.mean([one.expected[25] for one in ended]) < 0.25 * ended[0].best


def test_groups_of_mixed_snapshots_learn_slower():
    def after_6(twist, seed):
        case = Case(twist, LEARNING.model_copy(update={"updates": 6}), regime_sd=6.0)
        return learn(case, seed).expected[6]

    pairs = [(after_6("true", seed), after_6("mixed", seed)) for seed in range(5)]
    assert all(right > mixed for right, mixed in pairs)
    assert np.mean([right - mixed for right, mixed in pairs]) > 0.5


def test_luck_that_a_group_shares_changes_nothing():
    short = LEARNING.model_copy(update={"updates": 4})
    plain, lucky = learn(Case(config=short), 0), learn(Case(config=short, regime_sd=6.0), 0)
    for name, array in plain.policy.weights.items():
        assert np.allclose(array, lucky.policy.weights[name], atol=1e-8)


def test_per_sequence_means_learn_from_length_and_the_constant_does_not():
    game = LengthBias(groups=128)
    right, wrong = length_bias("dr_grpo", 0, game)
    assert right == pytest.approx(0.5, abs=0.01)
    assert wrong == pytest.approx(0.5, abs=0.01)
    right, wrong = length_bias("grpo", 0, LengthBias(groups=64))
    assert right < 0.1
    assert wrong > 0.9


def test_it_learns_from_one_recorded_set():
    own = learner()
    seeds = Seeds(5)
    record = MARKET.play(own.policy, MARKET.snapshots(seeds.child("s"), 125), 8, seeds.child("p"))
    config = LEARNING.model_copy(update={"epochs": 60})
    result = GRPOTrainingService(config).train_on(own, record)
    held_out = MARKET.snapshots(Seeds(0).child("held-out"), 200)
    assert MARKET.score(own.policy, held_out) == MARKET.best(held_out)
    assert result.updates[0].steps == 60
    assert result.updates[0].entropy > 0.9  # the clip keeps it near to what was recorded
    assert len(result.trained_ids) == 1000


def test_the_bounds_of_the_market_are_what_they_should_be():
    many = MARKET.snapshots(Seeds(1), 4000)
    assert MARKET.best(many) == pytest.approx(16 * (0.5 - 0.1), abs=0.15)
    assert MARKET.worst(many) == pytest.approx(16 * (-0.5 - 0.1), abs=0.15)
    even = MARKET.policy(Seeds(0))
    flat = even.with_weights({n: 0 * a for n, a in even.weights.items() if n.startswith("layers")})
    assert MARKET.expected(flat, many) == pytest.approx(-16 * 0.1 * 2 / 3, abs=0.05)
    played = MARKET.play(even, MARKET.snapshots(Seeds(2), 300), 8, Seeds(3))
    assert played.returns.mean() == pytest.approx(-1.07, abs=0.25)


def test_luck_falls_on_the_snapshot_and_not_on_the_member():
    market = SignalMarket(SignalMarketConfig(regime_sd=5.0))
    snapshots = market.snapshots(Seeds(4), 8)
    still = np.zeros((8, 8, 16))
    returns = market.rewards(snapshots, still).sum(axis=-1)
    assert np.array_equal(returns, np.repeat(snapshots.luck[:, None], 8, axis=1))


def test_the_published_figures_say_what_is_claimed():
    if not PUBLISHED.exists():
        pytest.skip("scripts/grpo_proof.py has not been run")
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    cases = published["cases"]
    for name in ("std", "none", "batch", "reward_to_go"):
        assert cases[name]["at_best"] >= 9
        assert len(cases[name]["seeds"]) == 10
    assert cases["flipped"]["at_worst"] == 10
    assert cases["constant"]["unchanged"] == 10
    low, high = cases["shuffled"]["gain_interval"]
    assert low < 0 < high
    assert published["mixed"]["slower_seeds"] >= 9
    assert all(abs(p - 0.5) <= 0.01 for one in published["length_bias"]["dr_grpo"] for p in one)
    assert all(r < 0.1 < 0.9 < w for r, w in published["length_bias"]["grpo"])
    stored = cases["std"]["seeds"][1]  # and they are made by this code
    again = learn(Case(), stored["seed"])
    assert again.scores[60] == pytest.approx(stored["greedy"]["60"])
    assert again.expected[60] == pytest.approx(stored["expected"]["60"], abs=0.01)
