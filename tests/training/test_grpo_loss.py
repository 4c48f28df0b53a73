from dataclasses import replace

import numpy as np
import pytest
import torch

from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo.loss import (
    LossInputs,
    categorical_entropy,
    categorical_kl,
    effective_sample_share,
    importance_weights,
    policy_loss,
)
from agent_gym.training.grpo.loss_config import (
    CispoSurrogate,
    ClipSurrogate,
    ImportanceConfig,
    LossConfig,
)

torch.set_num_threads(1)
AGGREGATIONS = ("grpo", "bnpo", "dapo", "dr_grpo", "luspo")
SURROGATES = (ClipSurrogate(), ClipSurrogate(low=0.1, high=0.28, dual=None), CispoSurrogate())


def made(seed=0, n=6, t=5, noise=0.35):
    """Return inputs of a small softmax policy: logits with a gradient, lengths 1 to t."""
    rng = Seeds(seed).child("loss").rng()
    logits = torch.tensor(rng.normal(size=(n, t, 3)), requires_grad=True)
    chosen = torch.tensor(rng.integers(0, 3, (n, t, 1)))
    mask = torch.tensor(np.arange(t) < rng.integers(1, t + 1, (n, 1)))

    def inputs(logits):
        log_probs = torch.log_softmax(logits, -1)
        current = log_probs.gather(-1, chosen)[..., 0]
        return LossInputs(
            current=current,
            behaviour=start + noises[0],
            proximal=start + noises[1],
            reference=start + noises[2],
            advantages=advantages,
            mask=mask,
            entropy=categorical_entropy(log_probs),
        )

    start = torch.log_softmax(logits.detach(), -1).gather(-1, chosen)[..., 0]
    noises = [torch.tensor(noise * rng.normal(size=(n, t))) for _ in range(3)]
    advantages = torch.tensor(rng.normal(size=n))
    return logits, inputs


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("surrogate", SURROGATES, ids=["clip", "wide", "cispo"])
def test_the_gradient_is_that_of_finite_differences(surrogate, aggregation, level):
    config = LossConfig(surrogate=surrogate, aggregation=aggregation, level=level, kl=0.05)
    logits, inputs = made()
    if isinstance(surrogate, CispoSurrogate):  # its weight has no gradient: hold it still
        held = inputs(logits).current.detach()
        inputs = hold_ratio(inputs, held)
        config = config.model_copy(update={"kl": 0.0})

    def loss(x):
        return policy_loss(inputs(x), config, 0.1).loss

    (slope,) = torch.autograd.grad(loss(logits), logits)
    step, flat = 1e-6, logits.detach()
    for place in [(0, 0, 0), (1, 0, 2), (3, 0, 1), (5, 0, 0)]:
        move = torch.zeros_like(flat)
        move[place] = step
        found = (loss(flat + move) - loss(flat - move)) / (2 * step)
        assert abs(float(found) - float(slope[place])) < 1e-7


def hold_ratio(inputs, held):
    """Return inputs whose proximal policy moves with the current one, so that the ratio stays."""

    def moved(logits):
        made = inputs(logits)
        proximal = made.proximal + (made.current - held).detach()
        return replace(made, proximal=proximal, behaviour=made.behaviour + proximal - made.proximal)

    return moved


def test_the_gradient_check_would_see_a_wrong_gradient():
    logits, inputs = made()
    config = LossConfig(aggregation="bnpo")
    (slope,) = torch.autograd.grad(policy_loss(inputs(logits), config).loss, logits)
    (other,) = torch.autograd.grad(
        policy_loss(inputs(logits), LossConfig(aggregation="grpo")).loss, logits
    )
    assert (slope - other).abs().max() > 1e-3


def plain(current, behaviour, advantages, mask=None, **more):
    as_tensor = [torch.tensor(x, dtype=torch.float64) for x in (current, behaviour, advantages)]
    mask = torch.ones_like(as_tensor[0]) if mask is None else torch.tensor(mask)
    return LossInputs(as_tensor[0].requires_grad_(), *as_tensor[1:], mask.bool(), **more)


def gradient(inputs, config):
    report = policy_loss(inputs, config)
    (slope,) = torch.autograd.grad(report.loss, inputs.current)
    return slope, report


def test_at_the_first_step_the_ratio_is_one_and_nothing_is_clipped():
    inputs = plain([[-1.0, -2.0]], [[-1.0, -2.0]], [0.7])
    for surrogate in SURROGATES:
        slope, report = gradient(inputs, LossConfig(surrogate=surrogate))
        assert report.figures.ratio_max == 1.0
        assert report.figures.clip_share == 0.0
        assert report.figures.approx_kl == 0.0
        assert slope.tolist() == [[-0.35, -0.35]]  # the plain policy gradient, over 2 decisions


@pytest.mark.parametrize(
    ("ratio", "advantage", "clipped"),
    [(1.3, 1.0, True), (1.3, -1.0, False), (0.7, 1.0, False), (0.7, -1.0, True), (3.5, -1.0, True)],
)
def test_the_clip_holds_what_has_gone_far_enough(ratio, advantage, clipped):
    inputs = plain([[np.log(ratio)]], [[0.0]], [advantage])
    slope, report = gradient(inputs, LossConfig(surrogate=ClipSurrogate(dual=3.0)))
    assert (slope == 0).all() == clipped
    # the last case is the dual clip: the loss of a bad action that became likely is bounded
    expected = -3.0 if ratio > 3 else {True: 1.2, False: ratio}[clipped and ratio > 1] * advantage
    if ratio == 0.7 and clipped:
        expected = -0.8
    assert float(report.loss.detach()) == pytest.approx(-expected)


def test_without_the_dual_clip_a_bad_action_is_not_bounded():
    inputs = plain([[np.log(50.0)]], [[0.0]], [-1.0])
    loose, _ = gradient(inputs, LossConfig(surrogate=ClipSurrogate(dual=None)))
    tight, _ = gradient(inputs, LossConfig())
    assert float(loose) == pytest.approx(50.0)
    assert float(tight) == 0.0


def test_cispo_keeps_the_gradient_of_what_a_clip_would_drop():
    inputs = plain([[np.log(9.0)]], [[0.0]], [1.0])
    slope, report = gradient(inputs, LossConfig(surrogate=CispoSurrogate(maximum=5.0)))
    assert float(slope) == pytest.approx(-5.0)
    assert report.figures.clip_share == 1.0


def test_the_sequence_level_uses_the_mean_log_ratio():
    inputs = plain([[0.3, -0.1, 9.9]], [[0.0, 0.0, 0.0]], [1.0], [[True, True, False]])
    report = policy_loss(inputs, LossConfig(level="sequence", aggregation="luspo"))
    assert float(report.loss.detach()) == pytest.approx(-2 * np.exp(0.1))


def test_aggregations_by_hand():
    ones = plain([[0.0] * 4, [0.0] * 4], [[0.0] * 4] * 2, [1.0, 3.0], [[1, 0, 0, 0], [1, 1, 1, 0]])
    expected = {
        "grpo": (1 + 3) / 2,
        "bnpo": (1 + 9) / 4,
        "dapo": (1 + 9) / 4,
        "dr_grpo": (1 + 9) / (2 * 4),
        "luspo": (1 + 9) / 2,
    }
    for name, value in expected.items():
        assert float(policy_loss(ones, LossConfig(aggregation=name)).loss.detach()) == -value
    longer = LossConfig(aggregation="dr_grpo", length=10)
    assert float(policy_loss(ones, longer).loss.detach()) == -10 / 20
    more = replace(ones, n_items=20.0, n_sequences=5.0)
    assert float(policy_loss(more, LossConfig(aggregation="dapo")).loss.detach()) == -0.5
    assert float(policy_loss(more, LossConfig()).loss.detach()) == -10 / 20


def test_padding_does_not_matter_whatever_is_in_it():
    mask = [[True, True, False]]
    a = plain([[-1.0, -2.0, 0.0]], [[-1.1, -1.9, 0.0]], [1.0], mask)
    b = plain([[-1.0, -2.0, 900.0]], [[-1.1, -1.9, -900.0]], [1.0], mask)
    for name in AGGREGATIONS:
        config = LossConfig(aggregation=name)
        (slope_a, one), (slope_b, two) = gradient(a, config), gradient(b, config)
        assert torch.equal(slope_a, slope_b)
        assert one.figures == two.figures


def test_importance_weights_are_cut_and_have_no_gradient():
    behaviour, mask = torch.tensor([[0.0, 0.0], [0.0, 0.0]]), torch.ones(2, 2)
    proximal = torch.tensor([[1.0, -1.0], [2.0, 2.0]], requires_grad=True)
    token = importance_weights(behaviour, proximal, mask, ImportanceConfig(cap=2.0))
    assert not token.requires_grad
    assert torch.allclose(token, torch.tensor([[2.0, 0.36787944], [2.0, 2.0]]))
    whole = importance_weights(behaviour, proximal, mask, ImportanceConfig(level="sequence", cap=3))
    assert torch.allclose(whole, torch.tensor([[1.0], [3.0]]))
    band = importance_weights(behaviour, proximal, mask, ImportanceConfig(band=2.0))
    assert torch.equal(band[1], torch.zeros(2))
    assert torch.equal(band[0], token[0])


def test_the_clip_is_on_the_proximal_policy_and_the_weight_on_the_behaviour():
    """With both ratios in one the sample would be clipped away; decoupled it still teaches."""
    stale = plain([[0.0]], [[-1.0]], [1.0])
    coupled, _ = gradient(stale, LossConfig())
    decoupled, report = gradient(replace(stale, proximal=torch.tensor([[0.0]])), LossConfig())
    assert float(coupled) == 0.0
    assert float(decoupled) == -2.0  # exp(1), cut at 2
    assert report.figures.ratio_max == 1.0


def test_the_effective_sample_falls_as_policies_part():
    rng, mask = Seeds(0).rng(), torch.ones(200, 4)
    behaviour = torch.zeros(200, 4, dtype=torch.float64)
    shares = [
        effective_sample_share(behaviour, torch.tensor(sd * rng.normal(size=(200, 4))), mask)
        for sd in (0.0, 0.1, 0.5, 2.0)
    ]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[2] == pytest.approx(np.exp(-4 * 0.25), abs=0.12)  # exp(-variance) of log-normals
    assert shares[3] < 0.05
    two = effective_sample_share(
        torch.zeros(2, 1), torch.tensor([[0.0], [-99.0]]), torch.ones(2, 1)
    )
    assert two == 0.5


def off_policy_kl(n=200_000):
    """Return the exact distance, and both estimates of it from another policy's samples."""
    rng = Seeds(3).rng()
    sampler = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    current = torch.log(torch.tensor([0.3, 0.4, 0.3], dtype=torch.float64))
    reference = torch.log(torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64))
    drawn = torch.tensor(rng.choice(3, n, p=sampler.numpy()))
    inputs = LossInputs(
        current=current[drawn][:, None],
        behaviour=sampler.log()[drawn][:, None],
        reference=reference[drawn][:, None],
        advantages=torch.zeros(n, dtype=torch.float64),
        mask=torch.ones(n, 1),
    )
    found = [
        policy_loss(inputs, LossConfig(kl=1.0, kl_times_ratio=times)).figures.kl
        for times in (True, False)
    ]
    return float(categorical_kl(current, reference)), *found


def test_the_estimate_of_the_distance_is_unbiased_only_times_the_ratio():
    exact, times_ratio, plain_estimate = off_policy_kl()
    assert times_ratio == pytest.approx(exact, rel=0.02)
    assert abs(plain_estimate - exact) > 0.1 * exact


def test_an_exact_distance_takes_the_place_of_the_estimate():
    inputs = plain([[0.0]], [[0.0]], [0.0], reference=torch.tensor([[-1.0]]))
    exact = replace(inputs, exact_kl=torch.tensor([[0.25]]))
    assert policy_loss(exact, LossConfig(kl=2.0)).loss.item() == 0.5
    assert policy_loss(inputs, LossConfig(kl=2.0)).loss.item() == pytest.approx(2 * np.exp(-1))


def test_entropy_is_taken_off_by_its_coefficient():
    inputs = plain([[0.0, 0.0]], [[0.0, 0.0]], [1.0], [[True, False]])
    with_entropy = replace(inputs, entropy=torch.tensor([[0.5, 99.0]]))
    base = policy_loss(inputs, LossConfig()).loss
    assert policy_loss(with_entropy, LossConfig(), 0.1).loss.item() == pytest.approx(
        base.item() - 0.05
    )
    assert policy_loss(with_entropy, LossConfig()).figures.entropy == 0.5


def test_what_is_needed_and_not_given_is_an_error():
    inputs = plain([[0.0]], [[0.0]], [1.0])
    with pytest.raises(ValueError, match="reference"):
        policy_loss(inputs, LossConfig(kl=0.1))
    with pytest.raises(ValueError, match="entropy"):
        policy_loss(inputs, LossConfig(), 0.1)


@pytest.mark.parametrize("wrong", [{"length": 5, "aggregation": "grpo"}, {"kl_times_ratio": False}])
def test_settings_without_effect_are_refused(wrong):
    with pytest.raises(ValueError, match=r"length|nothing"):
        LossConfig(**wrong)
