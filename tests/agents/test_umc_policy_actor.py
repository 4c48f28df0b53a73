import subprocess
import sys

import numpy as np
import pytest
import torch

from agent_gym.agents.umc.policy import Actor, ActorConfig, Lessons
from agent_gym.agents.umc.policy.actor import DEVIATION, LEVELS, MEAN, scaled
from agent_gym.agents.umc.policy.learning import ActorFit, ActorNetwork
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

POSITIONS = np.array([-2.0, -0.5, 0.0, 1.0])
CONFIG = ActorConfig(width=12, members=3, layers=3)
COLUMNS = 5


@pytest.fixture(scope="module")
def network():
    network = ActorNetwork(CONFIG, COLUMNS, POSITIONS, Seeds(1))
    with torch.no_grad():
        for i in range(CONFIG.layers + 1):
            network.get_parameter(f"weight_{i}").mul_(3.0 if i < CONFIG.layers else 20.0)
            network.get_parameter(f"bias_{i}")[..., 0] = 0.3
    return network


@pytest.fixture(scope="module")
def weights(network):
    found = {name: p.detach().numpy().copy() for name, p in network.named_parameters()}
    frame = {MEAN: np.linspace(-1.0, 1.0, COLUMNS), DEVIATION: np.linspace(0.5, 2.0, COLUMNS)}
    return {**found, **frame, LEVELS: POSITIONS}


def states(bars=400):
    return 1.5 * Seeds(4).child("states").rng().standard_normal((bars, COLUMNS))


def test_d6_chances_while_acting_are_those_of_training(network, weights):
    actor, seen = Actor(weights), states()
    rows = scaled(seen, weights[MEAN], weights[DEVIATION]).astype(np.float32)
    shown = torch.from_numpy(rows).expand(CONFIG.members, *rows.shape)
    with torch.no_grad():
        trained = network.log_chances(shown).exp().mean(dim=0).numpy()
    for k, position in enumerate(POSITIONS):
        acted = np.vstack([actor.decide(row[None], np.array([position]))[1] for row in seen])
        assert np.abs(acted - trained[:, k]).max() < 1e-6
    assert np.abs(trained[:, 0] - trained[:, 3]).max() > 0.01  # what is held matters
    assert trained.std(axis=0).max() > 0.05  # and so does what is seen


def test_it_takes_the_likeliest_level_and_holds_it(weights):
    actor, seen = Actor(weights), states()
    memory = actor.begin()
    targets, chances = actor.decide(seen, memory)
    assert np.array_equal(targets, POSITIONS[np.argmax(chances, axis=1)])
    assert np.abs(chances.sum(axis=1) - 1.0).max() < 1e-12
    assert memory.tolist() == [targets[-1]]
    assert len(np.unique(targets)) > 2
    other = actor.decide(seen[:1], np.array([1.0]))[1]
    assert not np.array_equal(other, actor.decide(seen[:1], np.array([-2.0]))[1])


@pytest.mark.parametrize("piece", [1, 7, 399])
def test_any_pieces_give_the_same_bits(weights, piece):
    actor, seen = Actor(weights), states()
    whole = actor.decide(seen, actor.begin())
    memory = actor.begin()
    pieces = [actor.decide(seen[i : i + piece], memory) for i in range(0, len(seen), piece)]
    assert np.array_equal(whole[0], np.concatenate([targets for targets, _ in pieces]))
    assert np.array_equal(whole[1], np.concatenate([chances for _, chances in pieces]))


def test_d11_acting_draws_nothing_and_changes_nothing(weights):
    kept = {name: array.copy() for name, array in weights.items()}
    actor, seen = Actor(weights), states()
    first = actor.decide(seen, actor.begin())
    torch.manual_seed(99)
    again = Actor(weights).decide(seen, actor.begin())
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert all(np.array_equal(kept[name], weights[name]) for name in kept)


def test_later_bars_do_not_change_earlier_decisions(weights):
    actor, seen = Actor(weights), states()
    poisoned = seen.copy()
    poisoned[200:] = 1e9
    before = actor.decide(seen, actor.begin())
    after = actor.decide(poisoned, actor.begin())
    assert np.array_equal(before[0][:200], after[0][:200])
    assert not np.array_equal(before[1][200:], after[1][200:])


def test_an_ensemble_is_the_mean_of_its_members(weights):
    seen = states(1)
    named = [name for name in weights if name.startswith(("weight_", "bias_"))]
    alone = [
        Actor({**weights, **{name: weights[name][k : k + 1] for name in named}})
        for k in range(CONFIG.members)
    ]
    chances = [actor.decide(seen, actor.begin())[1] for actor in alone]
    together = Actor(weights).decide(seen, np.zeros(1))[1]
    assert np.abs(np.mean(chances, axis=0) - together).max() < 1e-12
    assert np.std(chances, axis=0).max() > 1e-3


def test_what_does_not_fit_is_refused(weights):
    actor = Actor(weights)
    for seen, memory in (
        (np.zeros((3, COLUMNS + 1)), np.zeros(1)),
        (np.zeros(COLUMNS), np.zeros(1)),
        (np.zeros((3, COLUMNS)), np.zeros(2)),
        (np.full((3, COLUMNS), np.nan), np.zeros(1)),
        (np.zeros((3, COLUMNS)), np.array([np.inf])),
    ):
        with pytest.raises(DataError):
            actor.decide(seen, memory)
    for name, array in (
        (LEVELS, POSITIONS[:3]),
        (LEVELS, POSITIONS[::-1]),
        (MEAN, np.zeros(2)),
        (DEVIATION, np.zeros(COLUMNS + 1)),
        ("bias_1", np.zeros((3, 1, 11))),
        ("weight_3", np.zeros((2, 12, 4))),
    ):
        with pytest.raises(DataError):
            Actor({**weights, name: array})
    for name in weights:
        with pytest.raises(DataError):
            Actor({key: array for key, array in weights.items() if key != name})


def lessons(bars=60, **changed):
    parts = {
        "states": np.zeros((bars, 2)),
        "worth": np.zeros((bars, 3)),
        "unit_cost": np.zeros(bars),
        "returns_ahead": np.append(np.zeros(bars - 1), np.nan),
        "cost": 0.0005,
        "levels": np.array([-1.0, 0.0, 1.0]),
    }
    return Lessons(**{**parts, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"states": np.zeros((59, 2))},
        {"states": np.zeros(60)},
        {"states": np.full((60, 2), np.nan)},
        {"worth": np.zeros((60, 4))},
        {"worth": np.full((60, 3), np.inf)},
        {"unit_cost": np.zeros((60, 1))},
        {"unit_cost": np.full(60, -1.0)},
        {"returns_ahead": np.full(60, np.nan)},
        {"cost": -0.1},
        {"cost": float("nan")},
        {"levels": np.array([-1.0, 0.5, 1.0])},
        {"levels": np.array([1.0, 0.0, -1.0])},
        {"levels": np.array([0.0])},
    ],
)
def test_lessons_that_do_not_fit_together_are_refused(changed):
    assert len(lessons()) == 60
    with pytest.raises(DataError):
        lessons(**changed)


def test_too_few_bars_are_refused():
    with pytest.raises(DataError, match="too few"):
        ActorFit(ActorConfig(sequence_bars=48), lessons(), Seeds(1))
    ActorFit(ActorConfig(sequence_bars=47), lessons(), Seeds(1))


def test_a_bar_that_ruins_counts_as_a_great_loss():
    crashed = np.zeros(60)
    crashed[5] = 1.5
    grown = lessons(returns_ahead=crashed).growth()
    assert np.isfinite(grown).all()
    assert grown[5, 1, 0] == np.log(0.01)


def test_acting_needs_no_torch():
    code = "import sys, agent_gym.agents.umc.policy; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
