"""Auxiliary teams: found by selection, held near by behaviour, on a budget that is exact."""

import numpy as np
import pytest

from agent_gym.agents.marl import Crowd, NetworkConfig
from agent_gym.agents.marl.crowd import LAST_LAYER
from agent_gym.core import AgentError, Seeds
from agent_gym.training.marl.amal.auxiliaries import Probes
from agent_gym.training.marl.amal.cem import CrossEntropy, by_ranks
from agent_gym.training.marl.amal.space import LARGEST_SHIFT, ShiftSpace, distances, divergences
from agent_gym.training.marl.collection import Episodes
from tests.training.amal_samples import amal, session_of, small_amal
from tests.training.marl_samples import parts, shaken, small


def searched(generations=40, dim=6, **changes):
    """Return how far the mean is from the best point at last, and how far it was at first."""
    search = CrossEntropy(dim, amal(num_auxiliary_agents=20, **changes), Seeds(1))
    best = np.linspace(-1.0, 1.0, dim)
    for _ in range(generations):
        shifts = search.ask()
        search.tell(shifts, -np.square(shifts - best).sum(axis=1))
    return np.linalg.norm(search.mean - best), np.linalg.norm(best)


def test_selection_finds_the_best_point_and_chance_does_not():
    found, start = searched(cem_recentre=1.0)
    assert found < 0.2 * start
    blind, start = searched(cem_selection=False)
    assert blind == start


def test_without_a_landscape_it_goes_nowhere_for_long():
    search = CrossEntropy(6, amal(num_auxiliary_agents=20), Seeds(1))
    rng = Seeds(2).rng()
    for _ in range(40):
        search.tell(search.ask(), rng.standard_normal(20))
    assert np.linalg.norm(search.mean) < 2.0


def test_every_shift_has_its_mirror_image():
    shifts = CrossEntropy(3, amal(num_auxiliary_agents=6), Seeds(1)).ask()
    assert np.allclose(shifts[:3], -shifts[3:])
    assert len(CrossEntropy(3, amal(num_auxiliary_agents=5), Seeds(1)).ask()) == 5


def test_fitness_is_by_ranks_so_that_no_scale_wins():
    returns, said = np.array([1e6, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
    assert by_ranks((1.0, 1.0), (returns, said)).tolist() == [1.0, 0.5, 1.5]


def seen_of(policy, rows=12):
    """Return moments of a battle, with everybody alive."""
    _, collector = parts(small(n_envs=rows))
    senses = collector.worlds.senses
    return senses.observations.copy(), senses.legal.copy(), np.ones((rows, 3), np.bool_)


def test_a_crowd_that_is_not_shifted_is_the_policy():
    policy = shaken(parts()[0].policy)
    seen, legal, alive = seen_of(policy)
    crowd = Crowd(policy, np.zeros((4, 9 * 16 + 9)), LAST_LAYER)
    draws = Seeds(0).rng().random((12, 3))
    ours = policy.act(seen, legal, policy.memory(12), draws)
    theirs = crowd.act(seen, legal, policy.memory(12), draws)
    assert np.array_equal(ours.actions, theirs.actions)
    assert np.allclose(ours.log_probs, theirs.log_probs, atol=1e-6)
    assert divergences(crowd, seen, legal, alive) == pytest.approx(np.zeros(4), abs=1e-6)
    assert distances(crowd, seen, legal, alive).max() < 1e-6


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_crowd_plays_each_team_with_its_own_weights(recurrent):
    network = NetworkConfig(hidden=16, recurrent=recurrent)
    policy = shaken(parts(small(network=network))[0].policy)
    seen, legal, _ = seen_of(policy)
    memory = Seeds(4).rng().standard_normal(policy.memory(12).shape).astype(np.float32)
    for names in (LAST_LAYER, LAST_LAYER[:1], tuple(policy.weights)):
        sizes = [policy.weights[name].size for name in names]
        shifts = 0.5 * Seeds(1).rng().standard_normal((3, sum(sizes)))
        found = Crowd(policy, shifts, names).act(seen, legal, memory)
        for team in range(3):
            parts_of = np.split(shifts[team], np.cumsum(sizes)[:-1])
            own = {
                name: (policy.weights[name] + part.reshape(policy.weights[name].shape))
                for name, part in zip(names, parts_of, strict=True)
            }
            own = {name: array.astype(np.float32) for name, array in own.items()}
            rows = slice(4 * team, 4 * team + 4)
            alone = policy.with_weights(policy.weights | own).act(
                seen[rows], legal[rows], memory[rows]
            )
            assert np.array_equal(found.actions[rows], alone.actions)
            assert np.allclose(found.log_probs[rows], alone.log_probs, atol=1e-5)
            assert np.allclose(found.memory[rows], alone.memory, atol=1e-6)


def test_a_crowd_that_does_not_fit_is_refused():
    policy = parts()[0].policy
    with pytest.raises(AgentError, match="do not fit"):
        Crowd(policy, np.zeros((2, 3)), LAST_LAYER)
    seen, legal, _ = seen_of(policy)
    with pytest.raises(AgentError, match="evenly"):
        Crowd(policy, np.zeros((5, 9 * 16 + 9)), LAST_LAYER).act(seen, legal, policy.memory(12))


def test_spaces_are_as_large_as_they_say():
    policy = parts()[0].policy
    total = sum(array.size for array in policy.weights.values())
    sizes = {"bias": 9, "subspace": 16, "last_layer": 9 * 16 + 9, "all": total}
    for space, size in sizes.items():
        assert ShiftSpace(policy, amal(cem_space=space), Seeds(0)).dim == size


@pytest.mark.parametrize("space", ["bias", "subspace", "last_layer", "all"])
def test_teams_are_as_far_away_as_wanted_and_none_too_far(space):
    session = session_of(small_amal(cem_space=space, cem_kl=0.1, cem_max_kl=0.12))
    for _ in range(3):
        session.iterate()
        mixer = session.mixer
        assert 0.05 < mixer.auxiliaries.kl < 0.12


@pytest.mark.parametrize("space", ["bias", "all"])
def test_where_there_is_no_choice_shifts_do_not_grow_without_end(space):
    """They once grew until what is not legal was done: such moments give no divergence."""
    session = session_of(small_amal(cem_space=space))
    session.iterate()
    auxiliaries, policy = session.mixer.auxiliaries, session.learner.policy
    seen, legal, alive = session.mixer.probes
    alone = np.zeros_like(legal)
    alone[..., 1] = True
    for _ in range(40):
        auxiliaries.play(policy, Probes(seen, alone, alive), 1)
        auxiliaries.search.tell(auxiliaries.shifts, np.abs(auxiliaries.shifts).max(axis=1))
        auxiliaries.shifts = auxiliaries.search.ask()
    auxiliaries.play(policy, Probes(seen, alone, alive), 1)
    assert 10.0 < np.abs(auxiliaries.shifts).max() < 1.1 * LARGEST_SHIFT
    chances = np.exp(auxiliaries.space.crowd(policy, auxiliaries.shifts).on_same(seen, legal))
    assert np.isfinite(chances).all()
    assert not chances[np.broadcast_to(~legal, chances.shape)].any()


def test_the_share_of_auxiliary_steps_is_exact():
    session = session_of(small_amal(auxiliary_share=0.23, late_share=0.23, num_auxiliary_agents=3))
    for _ in range(10):
        session.iterate()
    steps = session.mixer.auxiliaries.steps
    assert session.env_steps == 10 * 80 + steps
    assert steps == pytest.approx(0.23 * session.env_steps, abs=3)


def test_a_generation_lasts_as_long_as_it_should_and_is_scored_by_its_own_battles():
    session = session_of(small_amal(evolution_frequency=3))
    generations, returns = [], []
    for _ in range(9):
        session.iterate()
        generations.append(session.mixer.auxiliaries.search.generation)
        returns.append(session.told[-1].cem_return)
    assert generations == [0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert returns[:3] == [None] * 3
    assert returns[3] is not None
    assert session.mixer.auxiliaries.mean_returns().tolist() == [0.0] * 4


def steps_of(returns, **changes):
    """Return how many auxiliary steps come after a team was paid like that."""
    session = session_of(small_amal(late_share=0.0, **changes))
    for paid in returns:
        batch, _ = session.collector.collect(session.learner.policy)
        mixed = session.mixer.mix(batch, Episodes(1, 0, paid), session.learner.policy)
    return mixed.env_steps - batch.env_steps


def test_auxiliary_teams_play_while_the_primary_one_is_stuck():
    assert steps_of([5.0] * 12) > 0
    assert steps_of([5.0 + i for i in range(12)]) == 0
    assert steps_of([5.0 + i for i in range(12)], least_headway=9.0) > 0
    assert steps_of([5.0] * 3) == 0, "nothing is known yet"


@pytest.mark.parametrize("what", ["return", "information", "diversity"])
def test_each_rank_can_decide_who_is_an_elite(what):
    """With all weight on one score, the elites are the best by that score."""
    names = ("return", "information", "diversity")
    weights = {f"cem_{name}_weight": float(name == what) for name in names}
    session = session_of(small_amal(evolution_frequency=100, **weights))
    for _ in range(3):
        session.iterate()
    auxiliaries, probes = session.mixer.auxiliaries, session.mixer.probes
    scores = auxiliaries.scores(session.learner.policy, probes)
    fitness = auxiliaries.fitness(session.learner.policy, probes)
    best = scores[names.index(what)].argmax()
    assert fitness[best] == fitness.max()
    assert len(np.unique(scores[names.index(what)])) > 1
