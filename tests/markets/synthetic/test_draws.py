from __future__ import annotations

import numba
import numpy as np
from scipy import stats

from agent_gym.core.kernels import door
from agent_gym.markets.synthetic import draws
from agent_gym.markets.synthetic.draws import base_of, exponential, normal, uniform

_SIGNATURE = numba.void(numba.uint64, numba.float64[:, ::1])


@door(_SIGNATURE, parts=(draws,))
def _normals(key, out):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        base = base_of(key, t)
        for k in range(out.shape[1]):
            out[t, k] = normal(base, k)


@door(_SIGNATURE, parts=(draws,))
def _others(key, out):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        out[t, 0] = uniform(base_of(key, t), 0)
        out[t, 1] = exponential(base_of(key, t), 1)


def test_normals_are_normal_in_the_middle_and_in_the_tails() -> None:
    drawn = np.empty((100_000, 10))
    _normals(np.uint64(7), drawn)
    flat = drawn.ravel()
    assert stats.kstest(flat, "norm").pvalue > 1e-3
    assert abs(flat.std() - 1.0) < 0.003
    for share in (1e-4, 1e-3, 1e-2):
        edge = stats.norm.ppf(share)
        spread = 5.0 * np.sqrt(share / flat.size)
        assert abs(np.mean(flat < edge) - share) < spread + 0.03 * share
        assert abs(np.mean(flat > -edge) - share) < spread + 0.03 * share


def test_slots_and_bars_are_independent() -> None:
    drawn = np.empty((100_000, 6))
    _normals(np.uint64(11), drawn)
    between_slots = np.corrcoef(drawn.T) - np.eye(6)
    assert np.abs(between_slots).max() < 0.015
    assert abs(np.corrcoef(drawn[1:, 0], drawn[:-1, 0])[0, 1]) < 0.015
    assert abs(np.corrcoef(drawn[1:, 0] ** 2, drawn[:-1, 1] ** 2)[0, 1]) < 0.015


def test_neighbouring_keys_give_unrelated_streams() -> None:
    left, right = np.empty((50_000, 1)), np.empty((50_000, 1))
    _normals(np.uint64(1), left)
    _normals(np.uint64(2), right)
    assert abs(np.corrcoef(left[:, 0], right[:, 0])[0, 1]) < 0.02


def test_uniforms_and_exponentials() -> None:
    drawn = np.empty((100_000, 2))
    _others(np.uint64(3), drawn)
    assert stats.kstest(drawn[:, 0], "uniform").pvalue > 1e-3
    assert stats.kstest(drawn[:, 1], "expon").pvalue > 1e-3
    assert drawn[:, 0].min() > 0.0
    assert drawn[:, 0].max() < 1.0


def test_a_draw_depends_on_its_address_alone() -> None:
    few, many = np.empty((10, 2)), np.empty((500, 2))
    _normals(np.uint64(9), few)
    _normals(np.uint64(9), many)
    np.testing.assert_array_equal(few, many[:10])
