"""A hidden Markov model with Gaussian states whose inputs are independent of each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.macro.hmm import follow, weigh
from agent_gym.core.types import FloatArray

DOUBLINGS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Hmm:
    """The parameters, one row a state.

    Attributes:
        transition: Chance of each state (column) after each state (row); none is 0.
        means: Mean of each input (column).
        variances: Variance of each input.
    """

    transition: FloatArray
    means: FloatArray
    variances: FloatArray

    @property
    def states(self) -> int:
        """How many states there are."""
        return int(self.transition.shape[0])

    def shares(self) -> FloatArray:
        """Return the share of time that the chain spends in each state in the long run.

        Example:
            >>> chain = np.array([[0.9, 0.1], [0.3, 0.7]])
            >>> Hmm(chain, np.zeros((2, 1)), np.ones((2, 1))).shares().round(6).tolist()
            [0.75, 0.25]
        """
        power = self.transition
        for _ in range(DOUBLINGS):  # as many steps as two to this power
            power = power @ power
            power = power / power.sum(axis=1, keepdims=True)
        mean = power.mean(axis=0)
        return np.ascontiguousarray(mean / mean.sum())

    def ordered(self, order: NDArray[np.int64]) -> Hmm:
        """Return the same model with its states in another order."""
        return Hmm(
            np.ascontiguousarray(self.transition[np.ix_(order, order)]),
            np.ascontiguousarray(self.means[order]),
            np.ascontiguousarray(self.variances[order]),
        )

    def weighed(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the density of each row in each state over its best one, and the log of that."""
        likelihoods, peaks = np.empty((len(rows), self.states)), np.empty(len(rows))
        constants = -0.5 * (math.log(2.0 * math.pi) + np.log(self.variances))
        weigh(rows, self.means, 1.0 / self.variances, constants, likelihoods, peaks)
        return likelihoods, peaks

    def filtered(self, rows: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the belief after each row and the log density it had; carry the memory on."""
        likelihoods, peaks = self.weighed(rows)
        beliefs, scores = np.empty_like(likelihoods), np.empty_like(peaks)
        follow(likelihoods, peaks, self.transition, memory, beliefs, scores)
        return beliefs, scores
