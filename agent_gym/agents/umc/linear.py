"""A Bayesian linear regression whose every answer is exact: belief is normal-inverse-gamma.

Outcomes are linear in their inputs with Gaussian noise of unknown size. Belief is kept as sums, so
one row at a time is as good as many, and sums of several sources can be put together later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """All that rows of inputs and their outcomes say; leading axes are sources of rows.

    Attributes:
        inputs: Sum of the products of inputs, ``(..., inputs, inputs)``.
        cross: Sum of inputs times outcome, ``(..., inputs)``.
        squares: Sum of squared outcomes, ``(...)``.
        rows: How many rows they are worth, ``(...)``.
    """

    inputs: FloatArray
    cross: FloatArray
    squares: FloatArray
    rows: FloatArray

    @classmethod
    def of(cls, inputs: ArrayLike, outcomes: ArrayLike, each: float = 1.0) -> Sums:
        """Return the sums of some rows, each of which counts as ``each`` rows.

        Example:
            >>> float(Sums.of([[1.0], [2.0]], [3.0, 4.0]).cross[0])
            11.0
        """
        rows = np.atleast_2d(np.asarray(inputs, np.float64))
        told = np.atleast_1d(np.asarray(outcomes, np.float64))
        if rows.ndim != 2 or told.ndim != 1 or len(rows) != len(told):
            raise DataError(
                "every outcome has one row of inputs",
                where="Sums.of",
                found=f"{rows.shape} and {told.shape}",
                expected="(rows, inputs) and (rows,)",
            )
        if not (np.isfinite(rows).all() and np.isfinite(told).all()):
            raise DataError("an input or an outcome is not a finite number", where="Sums.of")
        return cls(
            each * (rows.T @ rows),
            each * (rows.T @ told),
            np.asarray(each * float(told @ told)),
            np.asarray(each * told.size),
        )

    def centred(self) -> Sums:
        """Return the sums of all inputs but the first, which is 1, after its part is taken out.

        What is left is about how outcomes differ with inputs; that all of them drift says nothing.

        Example:
            >>> float(Sums.of([[1.0, 4.0], [1.0, 5.0]], [7.0, 7.0]).centred().cross[0])
            0.0
        """
        rows, drift = float(self.rows), float(self.cross[0])
        if not rows > 0.0:
            return Sums(self.inputs[1:, 1:], self.cross[1:], self.squares, self.rows)
        shown = self.inputs[0, 1:]
        return Sums(
            self.inputs[1:, 1:] - np.outer(shown, shown) / rows,
            self.cross[1:] - shown * drift / rows,
            np.asarray(self.squares - drift**2 / rows),
            np.asarray(max(rows - 1.0, 0.0)),
        )

    def total(self) -> Sums:
        """Return the sums over all sources, in their order."""
        return Sums(
            self.inputs.sum(axis=0),
            self.cross.sum(axis=0),
            self.squares.sum(axis=0),
            self.rows.sum(axis=0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LinearBelief:
    """A normal-inverse-gamma belief about coefficients and noise.

    Attributes:
        precision: Of the coefficients, in units of the noise.
        pull: Precision times mean.
        shape: Half of the rows seen, those of the prior included.
        squares: Sum of squares, those of the prior included.
    """

    precision: FloatArray
    pull: FloatArray
    shape: float
    squares: float

    @classmethod
    def of(cls, mean: FloatArray, precision: FloatArray, shape: float, scale: float) -> Self:
        """Return the belief with given parameters of the normal-inverse-gamma distribution."""
        pull = precision @ mean
        return cls(precision, pull, shape, 2.0 * scale + float(mean @ pull))

    def updated(self, inputs: ArrayLike, outcomes: ArrayLike) -> Self:
        """Return the belief after some rows of inputs, one outcome each."""
        return self.taught(Sums.of(inputs, outcomes))

    def taught(self, sums: Sums) -> Self:
        """Return the belief after the rows behind some sums."""
        if sums.cross.shape != self.pull.shape:
            raise DataError(
                "one row of inputs has as many numbers as there are coefficients",
                where=f"{type(self).__name__}.taught",
                found=sums.cross.shape,
                expected=self.pull.shape,
            )
        return type(self)(
            self.precision + sums.inputs,
            self.pull + sums.cross,
            self.shape + 0.5 * float(sums.rows),
            self.squares + float(sums.squares),
        )

    def mean(self) -> FloatArray:
        """Return the expected coefficients."""
        mean: FloatArray = np.linalg.solve(self.precision, self.pull).astype(np.float64)
        return mean

    def noise_variance(self) -> float:
        """Return the expected variance of one outcome's noise."""
        return self.scale() / (self.shape - 1.0)

    def covariance(self) -> FloatArray:
        """Return the covariance of the coefficients, over what the noise may be."""
        inverse: FloatArray = np.linalg.inv(self.precision).astype(np.float64)
        return self.noise_variance() * inverse

    def scale(self) -> float:
        """Return the scale of the inverse-gamma distribution of the noise."""
        return 0.5 * (self.squares - float(self.pull @ self.mean()))

    def doubt(self, inputs: ArrayLike) -> FloatArray:
        """Return x' P^-1 x: the variance of the expected outcome, in units of the noise."""
        rows = np.asarray(inputs, np.float64)
        solved = np.linalg.solve(self.precision, rows[..., None])[..., 0]
        doubt: FloatArray = (rows * solved).sum(-1)
        return doubt

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return all of the belief as named arrays."""
        return {
            "precision": self.precision,
            "pull": self.pull,
            "counts": np.array([self.shape, self.squares]),
        }

    @classmethod
    def restored(cls, weights: Mapping[str, NDArray[Any]]) -> Self:
        """Return the belief that weights() was taken of."""
        where = f"{cls.__name__}.restored"
        precision, pull = (np.asarray(weights[name], np.float64) for name in ("precision", "pull"))
        shape, squares = (float(number) for number in weights["counts"])
        if pull.ndim != 1 or precision.shape != (pull.size, pull.size):
            raise DataError(
                "the saved belief does not fit together",
                where=where,
                found=f"{precision.shape} and {pull.shape}",
            )
        belief = cls(precision, pull, shape, squares)
        if not belief.is_proper():
            raise DataError(
                "the saved belief is no distribution",
                where=where,
                expected="a positive definite precision, a shape above 1, a scale above 0",
            )
        return belief

    def is_proper(self) -> bool:
        """Say whether it is a distribution whose noise has an expected size."""
        numbers = (self.precision, self.pull, np.array([self.shape, self.squares]))
        if not all(np.isfinite(part).all() for part in numbers) or self.shape <= 1.0:
            return False
        definite = float(np.linalg.eigvalsh(self.precision).min()) > 0.0
        return definite and self.scale() > 0.0
