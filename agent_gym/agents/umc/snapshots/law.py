"""What moves a market of a snapshot: a linear law, and the chance that there is one at all.

Two heads are weighed, as everywhere in UMC: ``walk`` (nothing that is shown says anything about the
move) and ``law`` (it is linear in what is shown). Both are conjugate, so the chance of the law is
exact. What chance alone has put into the slopes does not earn the law belief, so it moves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit

from agent_gym.agents.umc.linear import LinearBelief, Sums
from agent_gym.core.types import FloatArray

Kind: TypeAlias = Literal["question", "perpetual"]
KINDS: tuple[Kind, ...] = ("question", "perpetual")
PRIOR_ROWS = 4.0  # that the guess of the noise is worth: less would have no expected variance


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What is believed of the moves of one kind of market.

    Attributes:
        belief: About the slopes and the noise of the law.
        chance: That there is such a law; the rest is that of a walk.
        slopes: Expected ones.
        errors: Covariance of the slopes.
        noise: Variance of a move, if the slopes were known.
        walk: Variance of a move, if there is no law.
    """

    belief: LinearBelief
    chance: float
    slopes: FloatArray
    errors: FloatArray
    noise: float
    walk: float

    @classmethod
    def of(cls, sums: Sums) -> Law:
        """Return the belief after some rows, whose first input is 1.

        How all of them drift is taken out, and is not followed later: a market of which nothing is
        shown is not expected to move.
        The evidence of the law against a walk is closed: what it takes off the squares that are
        left, less what its slopes cost.
        """
        prior = prior_of(len(sums.cross) - 1)
        belief = prior.taught(sums.centred())
        walk = 0.5 * belief.squares  # the slopes of the prior are 0
        gained = belief.shape * (math.log(walk) - math.log(belief.scale()))
        paid = 0.5 * (_log_size(belief) - _log_size(prior))
        return cls(
            belief,
            float(expit(gained - paid)),
            belief.mean(),
            belief.covariance(),
            belief.noise_variance(),
            walk / (belief.shape - 1.0),
        )

    def move(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the move for each row of inputs, both heads together."""
        told = inputs @ self.slopes
        spread = self.noise + ((inputs @ self.errors) * inputs).sum(axis=-1)
        chance, other = self.chance, 1.0 - self.chance
        return chance * told, chance * (spread + other * told * told) + other * self.walk

    def told(self, names: tuple[str, ...]) -> dict[str, float]:
        """Return the law in numbers: its slopes, the error of each, noise, and belief in it."""
        errors = np.sqrt(np.diag(self.errors)).tolist()
        slopes = dict(zip(names, self.slopes.tolist(), strict=True))
        doubts = {f"{name}_error": error for name, error in zip(names, errors, strict=True)}
        return {**slopes, **doubts, "noise": math.sqrt(self.noise), "chance": self.chance}

    def unexplained(self) -> float:
        """Return the share of what was seen to move that the law leaves open."""
        return self.belief.scale() / (0.5 * self.belief.squares)


def prior_of(inputs: int) -> LinearBelief:
    """Return the belief before any lesson: slopes of 0, give or take 1, and noise of about 1."""
    shape = 0.5 * PRIOR_ROWS
    return LinearBelief.of(np.zeros(inputs), np.eye(inputs), shape, shape - 1.0)


def _log_size(belief: LinearBelief) -> float:
    return float(np.linalg.slogdet(belief.precision)[1])
