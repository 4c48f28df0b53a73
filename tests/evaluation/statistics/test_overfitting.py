"""Probability of overfitting: known cases, brute force, laws; and the count of trials."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import effective_trials, pbo


def noise(*names, rows=480, columns=20):
    return Seeds(21).child(*names).rng().normal(size=(rows, columns))


def slowly(matrix, blocks):
    """Return logits and Sharpe ratios split by split, straight from the definition."""
    edges = [len(matrix) * i // blocks for i in range(blocks + 1)]
    parts = [np.arange(edges[i], edges[i + 1]) for i in range(blocks)]
    logits, pairs = [], []
    for chosen in combinations(range(blocks), blocks // 2):
        picking = np.concatenate([parts[i] for i in chosen])
        judging = np.setdiff1d(np.arange(len(matrix)), picking)
        before, after = (
            matrix[half].mean(axis=0) / matrix[half].std(axis=0, ddof=1)
            for half in (picking, judging)
        )
        winner = int(np.argmax(before))
        share = rankdata(after)[winner] / (matrix.shape[1] + 1)
        logits.append(np.log(share / (1 - share)))
        pairs.append((before[winner], after[winner]))
    return np.array(logits), np.array(pairs)


@pytest.mark.parametrize(("rows", "columns", "blocks"), [(96, 7, 6), (96, 6, 8), (160, 2, 8)])
def test_all_splits_at_once_are_the_splits_one_by_one(rows, columns, blocks):
    matrix = 0.01 * noise("slow", rows=rows, columns=columns) + 0.001
    found, (logits, pairs) = pbo(matrix, blocks), slowly(matrix, blocks)
    assert found.logits == pytest.approx(logits)
    assert found.pbo == np.mean(logits <= 0.0)
    assert found.degradation == pytest.approx(np.polyfit(*pairs.T, 1)[0])
    assert found.loss == np.mean(pairs[:, 1] < 0.0)


def test_sixteen_blocks_make_the_splits_of_the_paper():
    assert pbo(noise("count", rows=64, columns=3)).splits == 12_870


# Bailey et al. 2016: strategies that all earn exactly nothing over the whole time. What was won in
# one half was lost in the other, so the winner of one is the loser of the other in every split.
def test_full_overfitting_of_the_paper():
    matrix = noise("full", rows=1_000, columns=100)
    matrix = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    found = pbo(matrix)
    assert found.pbo == 1.0
    assert found.loss == 1.0
    assert found.degradation < -0.9


def test_noise_is_a_coin_toss_and_skill_is_found():
    luck = [pbo(noise("luck", i), 10).pbo for i in range(40)]
    assert np.mean(luck) == pytest.approx(0.5, abs=0.08)
    skill = []
    for i in range(10):
        matrix = noise("skill", i)
        matrix[:, 3] += 0.25
        found = pbo(matrix, 10)
        skill.append(found.pbo)
        assert found.loss < 0.1
    assert np.mean(skill) < 0.02


def test_blocks_of_unequal_length_use_every_row():
    matrix = noise("odd", rows=101, columns=4)
    assert pbo(matrix, 4).logits == pytest.approx(slowly(matrix, 4)[0])


def test_cash_is_a_strategy_like_any_other():
    losing = noise("cash", columns=4) - 1.0
    found = pbo(np.column_stack([losing, np.zeros(len(losing))]), 8)
    assert found.pbo == 0.0  # cash wins in every half, and rightly so
    assert found.degradation is None
    assert found.loss == 0.0
    sure = pbo(np.column_stack([noise("sure", columns=2), np.full(480, 1e-3)]), 8)
    assert sure.pbo == 0.0  # what always earns the same is certain


@pytest.mark.parametrize("blocks", [0, 3, 7, 22])
def test_blocks_come_in_pairs(blocks):
    with pytest.raises(DataError, match="blocks"):
        pbo(noise("x"), blocks)


def test_too_little_is_refused():
    with pytest.raises(DataError, match="table"):
        pbo(noise("x", columns=1), 4)
    with pytest.raises(DataError, match="table"):
        pbo(noise("x", rows=7), 4)
    with pytest.raises(DataError, match="finite"):
        pbo(np.full((40, 2), np.nan), 4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-4, 1e4), st.permutations(range(6)))
def test_neither_the_unit_nor_the_order_of_columns_matters(seed, scale, order):
    matrix = noise("law", seed, rows=60, columns=6)
    one, other = pbo(matrix, 6), pbo(scale * matrix[:, order], 6)
    assert one.pbo == other.pbo
    assert np.sort(one.logits) == pytest.approx(np.sort(other.logits))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_making_the_best_better_never_overfits_more(seed):
    matrix = noise("better", seed, rows=96, columns=5)
    values = []
    for extra in (0.3, 1.0, 3.0):
        lifted = matrix.copy()
        lifted[:, 0] += extra
        values.append(pbo(lifted, 8).pbo)
    assert values[0] >= values[1] >= values[2] == 0.0


def test_trials_that_are_alike_count_once():
    groups = noise("groups", rows=2_000, columns=5)
    alike = np.repeat(groups, 8, axis=1) + 0.3 * noise("own", rows=2_000, columns=40)
    assert effective_trials(alike) == 5
    assert effective_trials(groups) == 5
    assert effective_trials(alike[:, :8]) == 1
    assert effective_trials(groups[:, :1]) == 1
    assert effective_trials(groups[:, 0]) == 1


def test_a_mirror_image_is_another_trial_and_all_still_ones_are_one():
    one = noise("mirror", columns=1)
    assert effective_trials(np.hstack([one, -one])) == 2
    still = np.zeros((480, 3)) + np.array([0.0, 0.1, -0.1])
    assert effective_trials(np.hstack([one, still])) == 2
    assert effective_trials(still) == 1


@pytest.mark.parametrize("seed", range(5))
def test_clusters_are_those_of_scipy(seed):
    factors = noise("scipy", seed, rows=300, columns=4)
    loads = Seeds(seed).child("loads").rng().random((4, 25)) ** 3
    matrix = factors @ loads + 0.3 * noise("scipy own", seed, rows=300, columns=25)
    distance = 1.0 - np.corrcoef(matrix.T)
    tree = linkage(squareform(distance, checks=False), method="average")
    expected = fcluster(tree, t=1.0 - 0.5**0.5, criterion="distance").max()
    assert effective_trials(matrix) == expected
    assert 1 < expected < 25
