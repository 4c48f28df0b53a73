import numpy as np
import pytest
import torch

from agent_gym.agents.umc.policy import ActorConfig, Lessons
from agent_gym.agents.umc.policy.learning import (
    ActorNetwork,
    free_energy_loss,
    growth_loss,
    trust_loss,
)
from agent_gym.core.seeds import Seeds

LEVELS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
MEMBERS, SEQUENCES, BARS, HELD = 2, 3, 12, LEVELS.size
SHAPE = (MEMBERS, SEQUENCES, BARS, HELD, HELD)
SMALL = ActorConfig(width=6, layers=3, members=MEMBERS)


def drawn(name, shape):
    numbers = Seeds(5).child(name).rng().standard_normal(shape)
    return torch.tensor(numbers, dtype=torch.float32)


def told_by(network):
    return network.log_chances(drawn("states", (MEMBERS, SEQUENCES * BARS, 4))).view(SHAPE)


def gradients(loss_of):
    network = ActorNetwork(SMALL, 4, LEVELS, Seeds(2))
    loss_of(told_by(network)).sum().backward()
    return {name: parameter.grad for name, parameter in network.named_parameters()}


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda told: free_energy_loss(told, drawn("G", SHAPE), 8.0),
        lambda told: growth_loss(told, drawn("growth", SHAPE)),
    ],
    ids=["free energy", "realised growth"],
)
def test_d1_each_loss_alone_reaches_every_number_of_the_network(loss_of):
    found = gradients(loss_of)
    assert len(found) == 2 * (SMALL.layers + 1)
    for name, gradient in found.items():
        assert gradient is not None, name
        assert bool((gradient != 0.0).all()), name


def test_growth_that_is_the_same_for_all_levels_teaches_nothing():
    found = gradients(lambda told: growth_loss(told, torch.full(SHAPE, 0.3)))
    assert max(float(gradient.abs().max()) for gradient in found.values()) < 1e-7


def test_d2_d12_free_energy_is_no_number_that_learning_may_lower():
    believed, paid = (drawn(name, SHAPE).requires_grad_() for name in ("G", "growth"))
    told = told_by(ActorNetwork(SMALL, 4, LEVELS, Seeds(2)))
    before = drawn("before", SHAPE).requires_grad_()
    total = free_energy_loss(told, believed, 8.0) + growth_loss(told, paid)
    (total + trust_loss(told, before)).sum().backward()
    assert [part.grad for part in (believed, paid, before)] == [None, None, None]


def test_the_lowest_free_energy_is_at_chances_in_proportion_to_its_exponential():
    table, precision = drawn("table", (1, 7, 5)), 2.0
    best = torch.log_softmax(-precision * table, dim=-1)
    lowest = float(free_energy_loss(best, table, precision))
    assert abs(lowest + float(torch.logsumexp(-precision * table, -1).mean()) / precision) < 1e-6
    other = torch.log_softmax(drawn("logits", (1, 7, 5)), dim=-1)
    above = float(free_energy_loss(other, table, precision)) - lowest
    assert above > 0.1
    assert abs(above - float(trust_loss(other, best)) / precision) < 1e-6  # so it is the lowest


@pytest.mark.parametrize(("precision", "still"), [(2.0, True), (8.0, False)])
def test_at_the_optimum_nothing_pulls_and_elsewhere_something_does(precision, still):
    table = drawn("table", (1, 7, 5))
    logits = (-2.0 * table).requires_grad_()
    free_energy_loss(torch.log_softmax(logits, dim=-1), table, precision).sum().backward()
    assert (float(logits.grad.abs().max()) < 1e-7) == still


def plain_growth(told, growth):
    """The same bar by bar, for torch to find the gradient itself."""
    chances, held = told.exp(), torch.full((MEMBERS, SEQUENCES, HELD), 1.0 / HELD)
    total = torch.zeros(MEMBERS, SEQUENCES)
    for t in range(BARS):
        joint = held[..., None] * chances[:, :, t]
        total = total + (joint * growth[:, :, t]).sum(dim=(-2, -1))
        held = joint.sum(dim=-2)
    return -total.mean(dim=1) / BARS


def test_growth_and_its_gradient_go_through_time():
    growth, found = drawn("growth", SHAPE), []
    for loss_of in (growth_loss, plain_growth):
        logits = drawn("logits", SHAPE).requires_grad_()
        loss = loss_of(torch.log_softmax(logits, dim=-1), growth)
        (loss * torch.tensor([1.0, 3.0])).sum().backward()
        found.append((loss.detach(), logits.grad))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-6)
    assert torch.allclose(found[0][1], found[1][1], atol=1e-7)
    cut = drawn("logits", SHAPE).requires_grad_()
    alone = growth.clone()
    alone[:, :, 1:] = 0.0
    growth_loss(torch.log_softmax(cut, dim=-1), alone).sum().backward()
    assert float(cut.grad[:, :, 1:].abs().max()) == 0.0  # nothing was paid after the first bar


def test_chances_of_one_are_positions_and_growth_is_theirs_after_costs():
    rng = Seeds(3).rng()
    ahead = np.append(0.02 * rng.standard_normal(BARS - 1), np.nan)
    lessons = Lessons(
        np.zeros((BARS, 1)), np.zeros((BARS, HELD)), np.zeros(BARS), ahead, 0.001, LEVELS
    )
    taken = rng.integers(HELD, size=BARS)
    told = torch.full((1, 1, BARS, HELD, HELD), -100.0)
    told[0, 0, np.arange(BARS), :, taken] = 0.0
    growth = torch.tensor(lessons.growth()[None, None], dtype=torch.float32)
    position = LEVELS[taken]
    by_hand = np.log(
        1.0 + position * np.nan_to_num(ahead) - 0.001 * np.abs(np.diff(position, prepend=0.0))
    )
    assert np.abs(lessons.growth_of(position) - by_hand).max() < 1e-15
    first = lessons.growth()[0, :, taken[0]].mean()  # a sequence begins with every level held alike
    wanted = -(by_hand[1:].sum() + first) / BARS
    assert abs(float(growth_loss(told, growth)) - wanted) < 1e-7


def test_trust_is_a_divergence():
    told = torch.log_softmax(drawn("logits", SHAPE), dim=-1)
    other = torch.log_softmax(drawn("other", SHAPE), dim=-1)
    assert float(trust_loss(told, told).abs().max()) == 0.0
    assert float(trust_loss(told, other).min()) > 0.1
