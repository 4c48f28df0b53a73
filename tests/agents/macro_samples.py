"""Markets of regimes whose law is known, for the macrostates."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.core.seeds import Seeds

ROUND = np.array([[0.98, 0.019, 0.001], [0.001, 0.98, 0.019], [0.019, 0.001, 0.98]])
"""A chain that goes round: 0, 1, 2, 0."""
EITHER = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]])
"""A chain that goes anywhere."""

MEANS = np.array([[-1.0, -0.6, 0.4, 0.5], [0.0, 0.0, -0.8, -0.6], [1.0, 0.6, 0.2, 0.3]])
VARIANCES = np.array([[0.8, 0.8, 0.5, 0.8], [0.4, 0.4, 0.3, 0.6], [0.8, 0.8, 0.4, 0.8]])
CLEAR = Hmm(EITHER, MEANS, VARIANCES)
"""Falls, rests and rises that one sees well."""
FAINT = Hmm(EITHER, 0.4 * MEANS, np.ones((3, 4)))
"""The same so faint that even who knows the law errs at one bar in six."""


@dataclass(frozen=True)
class Planted:
    """A series and what was behind it."""

    states: np.ndarray
    inputs: np.ndarray


def planted(law, seed, bars):
    rng = Seeds(seed).child("planted").rng()
    draws, ladder = rng.random(bars), law.transition.cumsum(axis=1)
    states = np.zeros(bars, dtype=np.int64)
    for t in range(1, bars):
        states[t] = min(int(np.searchsorted(ladder[states[t - 1]], draws[t])), law.states - 1)
    noise = rng.standard_normal((bars, law.means.shape[1]))
    return Planted(states, law.means[states] + np.sqrt(law.variances[states]) * noise)


def iid(seed, bars, width=4):
    return Seeds(seed).child("iid").rng().standard_normal((bars, width))


def accuracy(guess, truth):
    """Share of bars that are right under the kindest numbering of the guesses."""
    table = np.zeros((guess.max() + 1, truth.max() + 1))
    np.add.at(table, (guess, truth), 1.0)
    return float(table[linear_sum_assignment(-table)].sum() / truth.size)
