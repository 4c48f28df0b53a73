"""What the actor learns in a market whose optimum is known, and in one that holds nothing."""

import numpy as np
import pytest

from agent_gym.agents.umc.planner_kernel import iterate_values
from agent_gym.agents.umc.policy import Actor, ActorConfig, Lessons
from agent_gym.agents.umc.policy.learning import ActorFit
from agent_gym.core.seeds import Seeds

DRIFT, SIGMA, STAY = 6e-4, 6e-3, 0.995
LEVELS = np.array([-1.0, 0.0, 1.0])
GRID = np.linspace(0.0, 1.0, 201)
SHORT = ActorConfig(
    width=16,
    members=2,
    steps=400,
    sequence_bars=64,
    look_every=50,
    patience_looks=8,
    learning_rate=0.01,
)


def ahead_of(belief):
    return STAY * belief + (1.0 - STAY) * (1.0 - belief)


def moved(belief, seen):
    """The chance that the drift is up, after one more return."""
    odds = np.exp(2.0 * DRIFT * seen / SIGMA**2) * ahead_of(belief)
    return odds / (odds + 1.0 - ahead_of(belief))


def optimum(cost):
    """What each level is worth at each belief, in deviations of a bar: the optimum by induction."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(31)
    chain, rows = np.zeros((GRID.size, GRID.size)), np.arange(GRID.size)
    for sign, chance in ((1.0, ahead_of(GRID)), (-1.0, 1.0 - ahead_of(GRID))):
        for node, share in zip(nodes, shares / shares.sum(), strict=True):
            place = moved(GRID, sign * DRIFT + SIGMA * node) * (GRID.size - 1)
            cell = np.minimum(place.astype(int), GRID.size - 2)
            np.add.at(chain, (rows, cell), chance * share * (1.0 - place + cell))
            np.add.at(chain, (rows, cell + 1), chance * share * (place - cell))
    paid = DRIFT / SIGMA * (2.0 * ahead_of(GRID) - 1.0)[:, None] * LEVELS
    worth = np.empty_like(paid)
    costs = cost / SIGMA * np.abs(LEVELS[:, None] - LEVELS)
    assert iterate_values(chain, paid, costs, np.array([1e-8, 100_000.0]), worth)
    return worth


def market(bars, seed, cost, worth):
    rng = Seeds(seed).child("market").rng()
    up = np.cumsum(rng.random(bars + 1) > STAY) % 2
    seen = np.where(up == 1, DRIFT, -DRIFT) + SIGMA * rng.standard_normal(bars + 1)
    belief, beliefs = 0.5, np.empty(bars)
    for t in range(bars):
        belief = beliefs[t] = float(moved(belief, seen[t]))
    at = np.column_stack([np.interp(beliefs, GRID, column) for column in worth.T])
    unit_cost = np.full(bars, cost / SIGMA)
    return Lessons(beliefs[:, None].copy(), at, unit_cost, seen[1:].copy(), cost, LEVELS)


def band(long_from):
    """The beliefs above which it goes long from nothing, and stays long."""
    found = []
    for held in (0.0, 1.0):
        short_of = np.flatnonzero(long_from(held) < 1.0)
        found.append(float(GRID[min(short_of[-1] + 1, GRID.size - 1)]))
    return found


def band_of_actor(actor):
    def long_from(held):
        rows = [actor.decide(np.array([[b]]), np.array([held]))[0][0] for b in GRID]
        return np.array(rows)

    return band(long_from)


def band_of_optimum(worth, cost):
    return band(
        lambda held: LEVELS[np.argmax(worth - cost / SIGMA * np.abs(LEVELS - held), axis=1)]
    )


def trained(lessons, seed=1, config=SHORT):
    fit = ActorFit(config, lessons, Seeds(seed).child("fit"))
    fit.run()
    return Actor(fit.model())


def grown(actor, lessons):
    return lessons.growth_of(actor.decide(lessons.states, actor.begin())[0])


MODEL_ALONE = SHORT.model_copy(
    update={
        "reinforcement_weight_first": 0.0,
        "reinforcement_weight_last": 0.0,
        "trust": 0.0,
        "look_every": SHORT.steps,
    }
)


@pytest.fixture(scope="module")
def costly():
    cost = 5e-4
    worth = optimum(cost)
    return cost, worth, trained(market(8_000, 1, cost, worth))


def test_by_free_energy_alone_it_brackets_the_no_trade_band_of_the_optimum():
    cost = 5e-4
    worth = optimum(cost)
    best_enter, best_hold = band_of_optimum(worth, cost)
    assert (round(best_enter, 2), round(best_hold, 2)) == (0.59, 0.42)
    enter, hold = band_of_actor(trained(market(8_000, 1, cost, worth), config=MODEL_ALONE))
    assert best_enter <= enter < best_enter + 0.06
    assert best_hold - 0.06 < hold <= best_hold


def test_without_costs_there_is_no_band():
    worth = optimum(0.0)
    enter, hold = band_of_actor(trained(market(8_000, 1, 0.0, worth), config=MODEL_ALONE))
    assert abs(enter - 0.5) < 0.02
    assert abs(hold - 0.5) < 0.02


def test_what_was_realised_moves_the_band_but_not_far(costly):
    cost, worth, actor = costly
    best_enter, best_hold = band_of_optimum(worth, cost)
    enter, hold = band_of_actor(actor)
    assert enter - hold > 0.1
    assert abs(enter - best_enter) < 0.1
    assert abs(hold - best_hold) < 0.1


def test_in_the_known_market_it_takes_most_of_what_can_be_had(costly):
    cost, worth, actor = costly
    fresh = market(30_000, 77, cost, worth)
    positions = actor.decide(fresh.states, actor.begin())[0]
    best, held = np.empty(len(fresh)), 0.0
    for t, row in enumerate(fresh.worth):
        held = best[t] = LEVELS[np.argmax(row - fresh.unit_cost[t] * np.abs(LEVELS - held))]

    def expected(path):
        drift = DRIFT * (2.0 * ahead_of(fresh.states[:, 0]) - 1.0)
        return np.mean(drift * path - cost * np.abs(np.diff(path, prepend=0.0)))

    assert expected(positions) > 0.93 * expected(best)


def planted(bars, seed, shuffled):
    """Returns that follow a state, or the same returns in another order; nothing is foretold."""
    rng = Seeds(seed).child("planted").rng()
    states = rng.standard_normal((bars, 3))
    ahead = 0.002 * states[:, 0] + SIGMA * rng.standard_normal(bars)
    if shuffled:
        ahead = rng.permutation(ahead)
    cost = 1e-4
    return Lessons(states, np.zeros((bars, 3)), np.full(bars, cost / SIGMA), ahead, cost, LEVELS)


@pytest.mark.parametrize("shuffled", [False, True], ids=["planted", "shuffled"])
def test_shuffled_returns_teach_nothing_that_pays_and_planted_ones_do(shuffled):
    quick = SHORT.model_copy(update={"steps": 150, "width": 8})
    paid = []
    for seed in range(3):
        actor = trained(planted(3_000, seed, shuffled), seed, quick)
        paid.append(grown(actor, planted(8_000, 100 + seed, shuffled)).mean())
    error = SIGMA / np.sqrt(3 * 8_000)  # of the mean, fully invested
    if shuffled:
        assert np.mean(paid) < 2.0 * error
    else:
        assert np.mean(paid) > 6.0 * error
