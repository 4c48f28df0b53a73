"""Evolution runs, keeps its elite, and makes a crowd better where there is something to learn."""

import numpy as np
import pytest

from agent_gym.agents.echo import EchoConfig, Search
from agent_gym.agents.echo.elites import Elites
from agent_gym.agents.echo.scores import crowding, live_fitness
from agent_gym.core import AgentError, Seeds, StoreError
from tests.agents.echo_samples import led, walk, waves

MOMENTUM = {"size": 20, "weights": {"momentum": 1.0}, "window_bars": 200, "candidates": 12}
SEARCHES = ["cma", "map_elites"]


def late_growth(path, evolution, every, seed):
    """Return the crowd's mean growth over the last bars, which its last generation never saw."""
    config = EchoConfig(**MOMENTUM, evolution=evolution, evolve_every_bars=every, seed=seed)
    crowd = led(config, path, seed)
    return crowd, float(crowd._lived()[-199:].sum(axis=0).mean())


@pytest.mark.parametrize("evolution", SEARCHES)
def test_d33_evolution_runs_and_improves_on_a_planted_landscape(evolution):
    gains, controls = [], []
    for seed in range(4):
        evolved, after = late_growth(waves(1_600, seed), evolution, 200, seed)
        _, before = late_growth(waves(1_600, seed), evolution, None, seed)
        assert evolved.generations == 7
        assert sum(row.replaced for row in evolved.history) > 0
        gains.append(after - before)
        noise = walk(1_600, seed)
        one, two = (late_growth(noise, evolution, every, seed)[1] for every in (200, None))
        controls.append(one - two)
    low = np.mean(gains) - 3.2 * np.std(gains, ddof=1) / 2.0  # 95 % of Student's t, 3 degrees
    assert low > 0.02
    assert np.mean(controls) < low


def test_without_a_period_nobody_is_renewed():
    crowd, _ = late_growth(waves(600, 1), "cma", None, 1)
    assert crowd.generations == 0
    assert len(crowd.history) == 0


@pytest.mark.parametrize("evolution", SEARCHES)
def test_the_elite_stays_and_nobody_is_replaced_by_a_worse_one(evolution):
    config = EchoConfig(**MOMENTUM, evolution=evolution, evolve_every_bars=300, elite=0.25)
    path = waves(301, 2)
    before = led(config, path[:300])
    fitness, points = before.fitness, next(iter(before.points.values())).copy()
    after = next(iter(led(config, path).points.values()))
    last = led(config.model_copy(update={"evolve_every_bars": None}), path)
    elite = np.argsort(-last.fitness, kind="stable")[:5]
    np.testing.assert_array_equal(after[elite], points[elite])
    assert fitness.shape == (20,)
    (row,) = led(config, path).history
    assert row.after >= row.before
    assert 0 < row.replaced <= 15


@pytest.mark.parametrize("dim", [2, 12])
def test_the_search_goes_on_to_the_bit_from_what_was_kept(dim):
    def told(search, generations):
        for generation in generations:
            points = search.ask(Seeds(3).child(generation))
            search.tell(points, ((points - 0.3) ** 2).sum(axis=1))
        return search

    whole, half = told(Search(dim), range(8)), told(Search(dim), range(4))
    again = Search(dim)
    again.put_back(*half.kept())
    told(again, range(4, 8))
    assert again.diagonal is (dim > 10)
    assert whole.mean.tobytes() == again.mean.tobytes()
    with pytest.raises(StoreError):
        Search(dim + 1).put_back(*half.kept())


def test_a_search_refuses_a_loss_that_is_no_number():
    search = Search(2, 6)
    points = search.ask(Seeds(1))
    with pytest.raises(AgentError, match="finite"):
        search.tell(points, np.full(6, np.nan))
    elites = Elites(2, 6)
    with pytest.raises(AgentError, match="finite"):
        elites.tell(points, np.full(6, np.nan), np.zeros((6, 3)))


def test_an_archive_keeps_the_best_of_unlike_kinds():
    elites = Elites(1, 16)
    for generation in range(30):
        points = elites.ask(Seeds(2).child(generation))
        kinds = np.column_stack([0.0 * points, 2.0 * points - 1.0, 0.0 * points])
        elites.tell(points, (points[:, 0] - 0.9) ** 2, kinds)
    np.testing.assert_allclose(elites.points.ravel(), [0.25, 0.5, 0.75, 0.9], atol=0.03)


def test_crowding_punishes_the_like_and_not_the_unlike():
    dice = Seeds(1).rng()
    best, other = dice.normal(0.1, 1.0, 400), dice.normal(0.0, 1.0, 400)
    growth = np.column_stack([best, best * 0.5, other])
    shared = crowding(growth, best[:, None])
    np.testing.assert_allclose(shared[:2], 1.0)
    assert shared[2] < 0.2
    free, crowded = live_fitness(growth, 0.3, 0.0), live_fitness(growth, 0.3, 2.0)
    np.testing.assert_allclose(free - crowded, [0.0, 2.0, 2.0 * shared[2]], atol=1e-12)


@pytest.mark.parametrize("evolution", SEARCHES)
def test_every_generation_is_told_in_the_history(evolution):
    config = EchoConfig(size=16, window_bars=60, evolve_every_bars=50, evolution=evolution)
    crowd = led(config, walk(161, 1))
    rows = [row.as_dict() for row in crowd.history]
    assert [row["bar"] for row in rows[::8]] == [50, 100, 150]
    assert {row["family"] for row in rows} == {family.value for family in crowd.heads}
    assert [row["number"] for row in rows[::8]] == [1, 2, 3]
