"""The laws of UMC on snapshots: exact, found where there is one, else not believed."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_t

from agent_gym.agents.information.mixtures import row_mixture
from agent_gym.agents.umc.linear import LinearBelief, Sums
from agent_gym.agents.umc.snapshots.law import Law, prior_of
from agent_gym.agents.umc.snapshots.lessons import Lessons
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

SLOPES = np.array([0.5, -0.2])


def rows(seed, n, slopes, drift=0.0):
    rng = Seeds(seed).child("rows").rng()
    inputs = np.column_stack([np.ones(n), rng.normal(size=(n, 2)) - 0.4])
    return inputs, inputs[:, 1:] @ slopes + drift + 0.7 * rng.standard_normal(n)


def test_a_planted_law_is_found_with_its_error():
    law = Law.of(Sums.of(*rows(1, 400, SLOPES)))
    assert law.chance > 0.999
    off = (law.slopes - SLOPES) / np.sqrt(np.diag(law.errors))
    assert np.abs(off).max() < 3.0
    assert np.sqrt(law.noise) == pytest.approx(0.7, rel=0.1)


@pytest.mark.parametrize("drift", [0.0, -0.5])
def test_where_there_is_no_law_none_is_believed_even_if_all_drift(drift):
    chances = [Law.of(Sums.of(*rows(k, 400, 0.0 * SLOPES, drift))).chance for k in range(200)]
    assert np.mean(chances) < 0.05
    assert np.mean(np.array(chances) > 0.5) < 0.03


def test_the_chance_is_that_of_bayes():
    """Against the densities of all outcomes, with what is common to all projected out."""
    inputs, moves = rows(3, 12, 0.4 * SLOPES)
    law = Law.of(Sums.of(inputs, moves))
    apart = np.linalg.svd(np.ones((1, 12)))[2][1:]
    shown, told = apart @ inputs[:, 1:], apart @ moves
    prior = prior_of(2)
    size = prior.scale() / prior.shape

    def log_density(shape):
        return multivariate_t(shape=size * shape, df=2.0 * prior.shape).logpdf(told)

    with_law = log_density(np.eye(11) + shown @ np.linalg.solve(prior.precision, shown.T))
    assert 0.05 < law.chance < 0.95
    assert law.chance == pytest.approx(expit(with_law - log_density(np.eye(11))), rel=1e-9)


def test_both_heads_are_in_the_expected_move():
    law = Law.of(Sums.of(*rows(3, 12, 0.4 * SLOPES)))
    seen = rows(4, 5, SLOPES)[0][:, 1:]
    told = seen @ law.slopes
    spread = law.noise * (1.0 + law.belief.doubt(seen))
    heads = row_mixture(
        [1.0 - law.chance, law.chance],
        np.stack([0.0 * told, told], axis=-1),
        np.stack([np.full(5, law.walk), spread], axis=-1),
    )
    for found, wanted in zip(law.move(seen), heads.moments(), strict=True):
        assert np.allclose(found, wanted[:, 0], rtol=1e-12)


def test_before_the_first_lesson_nothing_is_expected():
    law = Law.of(Lessons.none(3).sums["question"].total())
    mean, variance = law.move(np.array([[5.0, -3.0]]))
    assert (mean[0], law.chance) == (0.0, 0.5)
    assert variance[0] > 1.0


def test_rows_count_as_often_as_they_are_said_to():
    inputs, moves = rows(5, 30, SLOPES)
    whole, half = Sums.of(inputs, moves), Sums.of(np.tile(inputs, (2, 1)), np.tile(moves, 2), 0.5)
    prior = LinearBelief.of(np.zeros(3), np.eye(3), 2.0, 1.0)
    assert np.allclose(prior.taught(whole).mean(), prior.taught(half).mean())
    assert prior.taught(whole).shape == prior.taught(half).shape == 17.0


def lesson(seed):
    return {kind: Sums.of(*rows(seed, 20, SLOPES)) for kind in ("question", "perpetual")}


def test_lessons_have_no_order_and_newer_ones_replace_older():
    one = Lessons.of({"a": lesson(1), "b": lesson(2)}, 3)
    other = Lessons.of({"b": lesson(2), "a": lesson(1)}, 3)
    assert one.snapshots == ("a", "b")
    for name, array in one.arrays().items():
        assert array.tobytes() == other.arrays()[name].tobytes()
    newer = one.with_newer(Lessons.of({"b": lesson(3), "c": lesson(4)}, 3))
    wanted = Lessons.of({"a": lesson(1), "b": lesson(3), "c": lesson(4)}, 3)
    assert newer.snapshots == wanted.snapshots
    assert np.array_equal(newer.arrays()["question.cross"], wanted.arrays()["question.cross"])
    assert not np.array_equal(
        newer.arrays()["question.cross"][1], one.arrays()["question.cross"][1]
    )


def test_broken_lessons_are_refused():
    whole = Lessons.of({"a": lesson(1)}, 3).arrays()
    Lessons.restored(("a",), whole, 3)
    with pytest.raises(DataError, match="fit together"):
        Lessons.restored(("a", "b"), whole, 3)
    with pytest.raises(DataError, match="not a number"):
        Lessons.restored(("a",), {**whole, "question.rows": np.array([np.nan])}, 3)
    with pytest.raises(DataError, match="one row of inputs"):
        Sums.of(np.ones((2, 3)), np.ones(3))
