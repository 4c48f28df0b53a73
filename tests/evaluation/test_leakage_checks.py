import json
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from agent_gym.agents.gate import AsymmetricGate, GateConfig, Source, Tags
from agent_gym.core.errors import DataError
from agent_gym.evaluation.leakage import (
    Predictive,
    mean_divergence,
    non_interference,
    policy_influence,
    predictive_leakage,
    purity,
    weights_digest,
)

GATE = AsymmetricGate(GateConfig())


def single(mean, variance=1.0):
    one = np.ones((1, 1))
    return Predictive(one, mean * one, variance * one)


def test_g1_counts_rows_that_are_not_primary():
    clean = Tags.of(Source.PRIMARY, "own", range(5))
    assert purity(clean).passed
    for source in (Source.SYNTHETIC, Source.IMAGINED, Source.ECHO):
        found = purity(Tags.concat([clean, Tags.of(source, "other", range(2))]))
        assert (found.value, found.passed) == (2.0, False)


def test_g2_is_about_every_bit():
    base = {"a": np.array([1.0, 2.0]), "b": np.array([0.0])}
    assert non_interference(lambda echoes: base).figure.passed
    by_little = {**base, "a": np.array([1.0, np.nextafter(2.0, 3.0)])}
    found = non_interference(lambda echoes: by_little if echoes else base)
    assert 0.0 < found.largest_change < 1e-15
    assert not found.figure.passed
    minus_zero = {**base, "b": np.array([-0.0])}
    found = non_interference(lambda echoes: minus_zero if echoes else base)
    assert found.largest_change == 0.0
    assert not found.figure.passed


def test_g2_tells_names_shapes_and_types_apart():
    base = {"a": np.zeros(2)}
    others = [{"b": np.zeros(2)}, {"a": np.zeros((1, 2))}, {"a": np.zeros(2, np.int64)}, {}]
    assert len({weights_digest(weights) for weights in (base, *others)}) == 5
    found = non_interference(lambda echoes: others[0] if echoes else base).figure
    assert math.isinf(found.value)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["value"] is None


def test_g3_is_exact_for_single_gaussians_and_zero_for_equals():
    assert mean_divergence(single(0.3, 2.0), single(0.3, 2.0)) == 0.0
    by_hand = 0.5 * (2.0 - 1.0 - math.log(2.0) + 0.09)
    assert mean_divergence(single(0.3, 2.0), single(0.0, 1.0)) == pytest.approx(by_hand)


def test_g3_of_mixtures_is_that_of_an_integral():
    rng_free = np.linspace(0.1, 1.0, 12).reshape(2, 6)
    weight = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])
    one = Predictive(weight, rng_free[:, :3], 0.5 + rng_free[:, 3:])
    other = Predictive(weight[::-1], rng_free[::-1, :3] - 0.4, 0.8 + rng_free[:, 3:])

    def density(model, row, x):
        spread = np.sqrt(model.variance[row])
        return float((model.weight[row] * norm.pdf(x, model.mean[row], spread)).sum())

    def divergence(row):
        def term(x):
            p = density(one, row, x)
            return p * math.log(p / density(other, row, x))

        return quad(term, -12, 12, limit=200)[0]

    exact = np.mean([divergence(0), divergence(1)])
    assert mean_divergence(one, other) == pytest.approx(exact, rel=2e-3)
    assert mean_divergence(one, Predictive(one.weight, one.mean, one.variance)) == 0.0


def test_g3_allows_what_chance_alone_would_do():
    shifted = single(0.1)  # 0.005 nats from the middle
    leak = predictive_leakage(lambda echoes: single(0.1 * echoes), GATE)
    assert (leak.figure.passed, leak.bound, leak.floor) == (False, 0.002, 0.0)
    noisy = predictive_leakage(
        lambda echoes: shifted if echoes else single(0.0), GATE, lambda trial: single(0.1 * trial)
    )
    assert noisy.figure.passed
    assert noisy.bound == pytest.approx(1.2 * 0.005)


def test_g4_is_held_by_projection_and_says_what_was_held_back():
    figure, found = policy_influence(lambda echoes: np.array([[0.0, 3.0 * echoes]]), GATE)
    assert figure.passed
    assert figure.value == pytest.approx(0.01)
    assert found.full_divergence > 0.1


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Predictive(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2))),
        lambda: Predictive(np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1))),
        lambda: Predictive(np.ones((1, 1)), np.full((1, 1), np.nan), np.ones((1, 1))),
        lambda: Predictive(np.ones((1, 1)), np.ones((2, 1)), np.ones((1, 1))),
        lambda: mean_divergence(
            single(0.0), Predictive(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 1)))
        ),
    ],
)
def test_what_is_no_forecast_is_refused(broken):
    with pytest.raises(DataError):
        broken()
