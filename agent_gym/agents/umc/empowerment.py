"""Empowerment: how much of what will be seen is due to the own actions, in nats.

It is the capacity of the channel from actions to what follows. Exact forms are here for discrete
and for linear-Gaussian channels. From records of a simulated market only a bound from below can be
had: a decoder that was fitted on other rows guesses the action from what followed (Barber and
Agakov 2003), and

    I(action; outcome) >= E ln q(action | outcome) - E ln p(action)

whatever the decoder. It holds if actions were drawn from p without looking at the market; records
that show otherwise are refused, for whoever follows a market seems to move it. Rows are in the
order of time. Outcomes may hold columns that were known before the action; then the bound is of the
information given them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import bdtr, bdtrc, log_softmax, rel_entr
from scipy.stats import kstest

from agent_gym.agents.information.mixtures import LN_2PI
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

WHERE = "agents.umc.empowerment"
FOLDS = 5
BATCHES = 20
SHRINK = 1.0
SURE = 1e-9
IMPLAUSIBLE = 1e-9
"""A chance below which counts of actions cannot come from the policy that is said to be theirs."""
TOO_MANY_ERRORS = 7.0
"""Standard errors beyond which a deviation is none of chance."""


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """The capacity of a channel, between two bounds that are exact, and the policy that takes it.

    Attributes:
        nats: What the policy transmits; a bound from below.
        upper: A bound from above.
        policy: Chances of the actions.
    """

    nats: float
    upper: float
    policy: FloatArray


@dataclass(frozen=True, slots=True)
class InformationBound:
    """An estimate of a bound from below; it may fall under 0, where it says nothing.

    Attributes:
        nats: The estimate, on rows that the decoder was not fitted on.
        standard_error: Of the estimate, from batches of neighbouring rows, which may depend on
            each other.
        rows: How many there were.
    """

    nats: float
    standard_error: float
    rows: int


def blahut_arimoto(
    channel: ArrayLike, tolerance: float = 1e-9, most_rounds: int = 20_000
) -> Capacity:
    """Return the capacity of a discrete channel: chances of outcomes, one row an action.

    Example:
        >>> flips = blahut_arimoto([[0.9, 0.1], [0.1, 0.9]])  # ln 2 less the entropy of 0.1
        >>> round(flips.nats, 6), flips.policy.round(6).tolist()
        (0.368064, [0.5, 0.5])
    """
    rows = np.asarray(channel, np.float64)
    if rows.ndim != 2 or (rows < 0.0).any() or not np.allclose(rows.sum(1), 1.0, atol=1e-9):
        raise DataError("every row of a channel sums to 1", found=rows.shape)
    policy = np.full(len(rows), 1.0 / len(rows))
    lower = upper = 0.0
    for left in range(most_rounds, 0, -1):
        gains = rel_entr(rows, policy @ rows).sum(1)
        lower, upper = float(policy @ gains), float(gains.max())
        if upper - lower < tolerance or left == 1:  # the policy is that of these bounds
            break
        policy = policy * np.exp(gains - upper)
        policy /= policy.sum()
    return Capacity(lower, upper, policy)


def gaussian_information(gain: ArrayLike, actions: ArrayLike, noise: ArrayLike) -> float:
    """Return the information of outcome = gain action + noise for Gaussian actions.

    Args:
        gain: ``(outcomes, actions)``.
        actions: Covariance of the actions.
        noise: Covariance of the noise.
    """
    matrix, spread, rest = (
        np.atleast_2d(np.asarray(x, np.float64)) for x in (gain, actions, noise)
    )
    whole = matrix @ spread @ matrix.T + rest
    return float(0.5 * (np.linalg.slogdet(whole)[1] - np.linalg.slogdet(rest)[1]))


def gaussian_capacity(gain: ArrayLike, noise: ArrayLike, power: float) -> float:
    """Return the largest such information if the variances of the actions sum to ``power``.

    Power is poured into the best directions first (water filling).

    Example:
        >>> round(gaussian_capacity(2.0, 1.0, power=0.75), 6)  # half of ln(1 + 4 * 0.75)
        0.693147
    """
    matrix, rest = (np.atleast_2d(np.asarray(x, np.float64)) for x in (gain, noise))
    whitened = solve_triangular(cholesky(rest, lower=True), matrix, lower=True)
    strengths = np.linalg.svd(whitened, compute_uv=False) ** 2
    floors = np.sort(1.0 / strengths[strengths > 0.0])
    if not floors.size or power <= 0.0:
        return 0.0
    levels = (power + np.cumsum(floors)) / np.arange(1, floors.size + 1)
    level = levels[np.flatnonzero(levels > floors)[-1]]
    return float(0.5 * np.log(np.maximum(level / floors, 1.0)).sum())


def empowerment_bound(
    actions: NDArray[np.int64], outcomes: ArrayLike, policy: ArrayLike
) -> InformationBound:
    """Return a bound for actions out of a list, by a logistic decoder.

    Args:
        actions: Which action was taken at each row.
        outcomes: What followed, one row each.
        policy: Chances by which the actions were drawn.
    """
    seen, chances = _table(outcomes, actions.size), np.asarray(policy, np.float64)
    _check_drawn(actions, chances)
    priors, one_hot = np.log(chances), np.eye(chances.size)[actions]
    earlier = np.column_stack([seen, one_hot[:, 1:]])[:-1]
    _check_blind(_bound(_gained(actions[1:], earlier, priors)))
    return _bound(_gained(actions, seen, priors))


def gaussian_empowerment_bound(
    actions: ArrayLike, outcomes: ArrayLike, mean: ArrayLike, covariance: ArrayLike
) -> InformationBound:
    """Return a bound for Gaussian actions, by a linear decoder; tight if the channel is linear.

    Args:
        actions: Rows of actions.
        outcomes: What followed, one row each.
        mean: Of the distribution by which the actions were drawn.
        covariance: Of that distribution.
    """
    given = np.asarray(actions, np.float64)
    taken = _table(given, len(given))
    seen = _table(outcomes, len(taken))
    apart = taken - np.atleast_1d(np.asarray(mean, np.float64))
    spread = np.atleast_2d(np.asarray(covariance, np.float64))
    _check_gaussian(apart, spread)
    earlier = np.column_stack([seen, taken])[:-1]
    _check_blind(_bound(_gaussian_gained(apart[1:], earlier, spread)))
    return _bound(_gaussian_gained(apart, seen, spread))


def _gained(actions: NDArray[np.int64], seen: FloatArray, priors: FloatArray) -> FloatArray:
    """Return by how much each action was better guessed than without what was seen."""
    gained = np.empty(actions.size)
    for tested, fitted in _folds(actions.size):
        decoded = _decoded(actions[fitted], seen[fitted], seen[tested], priors)
        mine = actions[tested]
        gained[tested] = decoded[np.arange(mine.size), mine] - priors[mine]
    return gained


def _gaussian_gained(taken: FloatArray, seen: FloatArray, spread: FloatArray) -> FloatArray:
    gained = -_log_density(taken, spread)
    for tested, fitted in _folds(len(taken)):
        inputs = _with_ones(seen[fitted])
        if inputs.shape[1] >= fitted.size:
            raise DataError(
                "there are too few rows for so many outcomes",
                where=WHERE,
                found=f"{len(taken)} rows of {seen.shape[1]} outcomes",
            )
        weights = np.linalg.lstsq(inputs, taken[fitted], rcond=None)[0]
        missed = taken[fitted] - inputs @ weights
        rest = missed.T @ missed / (fitted.size - inputs.shape[1])
        if float(np.linalg.eigvalsh(rest).min()) <= SURE * float(np.linalg.eigvalsh(spread).max()):
            raise DataError(
                "outcomes tell the actions without any doubt, so the information is infinite",
                where=WHERE,
                remedy="Leave out columns that are actions, or add the noise that is missing",
            )
        guess = _with_ones(seen[tested]) @ weights
        gained[tested] += _log_density(taken[tested] - guess, rest)
    return gained


def _decoded(
    actions: NDArray[np.int64], seen: FloatArray, asked: FloatArray, priors: FloatArray
) -> FloatArray:
    """Return log chances of the actions for rows that were not fitted on.

    A logistic decoder: exact where outcomes are Gaussian with one covariance, and where they are
    indicators of a list; else it says less than there is.
    """
    centre, scale = seen.mean(0), seen.std(0)
    scale = np.where(scale > 0.0, scale, 1.0)
    inputs, rows = _with_ones((seen - centre) / scale), np.arange(actions.size)

    def missed(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(inputs.shape[1], priors.size)
        chances = log_softmax(inputs @ weights + priors, axis=1)
        error = np.exp(chances)
        error[rows, actions] -= 1.0
        loss = -float(chances[rows, actions].sum()) + 0.5 * SHRINK * float(flat @ flat)
        return loss, (inputs.T @ error).ravel() + SHRINK * flat

    start = np.zeros(inputs.shape[1] * priors.size)
    weights = minimize(missed, start, jac=True, method="L-BFGS-B").x.reshape(-1, priors.size)
    chances: FloatArray = log_softmax(
        _with_ones((asked - centre) / scale) @ weights + priors, axis=1
    )
    return chances


def _with_ones(table: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(table)), table])


def _log_density(apart: FloatArray, covariance: FloatArray) -> FloatArray:
    factor = cholesky(covariance, lower=True)
    squares = (solve_triangular(factor, apart.T, lower=True) ** 2).sum(0)
    logs = 2.0 * np.log(np.diag(factor)).sum() + len(factor) * LN_2PI
    density: FloatArray = -0.5 * (squares + logs)
    return density


def _folds(rows: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return blocks of neighbouring rows to test on, and the others to fit on."""
    edges = np.linspace(0, rows, FOLDS + 1).astype(np.int64)
    whole = np.arange(rows)
    return [
        (whole[low:high], np.concatenate([whole[:low], whole[high:]]))
        for low, high in pairwise(edges)
    ]


def _bound(gained: FloatArray) -> InformationBound:
    means = np.array([batch.mean() for batch in np.array_split(gained, BATCHES)])
    error = float(means.std(ddof=1) / np.sqrt(BATCHES))
    return InformationBound(float(gained.mean()), error, gained.size)


def _table(values: ArrayLike, rows: int) -> FloatArray:
    table = np.asarray(values, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != rows or rows < 2 * BATCHES:
        raise DataError(
            "actions and outcomes have the same rows",
            found=f"{rows} and {table.shape}",
            expected=f"at least {2 * BATCHES} rows",
        )
    if not np.isfinite(table).all():
        raise DataError("an action or an outcome is not a finite number")
    return table


def _check_drawn(actions: NDArray[np.int64], policy: FloatArray) -> None:
    """Raise if the actions cannot have been drawn from the policy, for then nothing is bounded."""
    if policy.ndim != 1 or not (policy > 0.0).all() or abs(policy.sum() - 1.0) > 1e-9:
        raise DataError("a policy has chances above 0 that sum to 1", found=policy.tolist())
    if actions.min() < 0 or actions.max() >= policy.size:
        raise DataError("an action is none of the policy's", found=int(actions.max()))
    counts = np.bincount(actions, minlength=policy.size)
    as_few = bdtr(counts.astype(np.float64), actions.size, policy)
    as_many = bdtrc(counts - 1.0, actions.size, policy)
    if min(as_few.min(), as_many.min()) * 2.0 * policy.size < IMPLAUSIBLE:
        raise _not_drawn((counts / actions.size).round(4).tolist(), policy.tolist())


def _check_gaussian(apart: FloatArray, covariance: FloatArray) -> None:
    """Raise if such gaps from the mean cannot have been drawn with that covariance."""
    width = apart.shape[1]
    if covariance.shape != (width, width):
        raise DataError(
            "the covariance of actions has one row and column an action",
            where=WHERE,
            found=covariance.shape,
            expected=(width, width),
        )
    units: FloatArray = solve_triangular(cholesky(covariance, lower=True), apart.T, lower=True)
    products = units @ units.T / len(apart)
    # Of standard normal numbers these are about standard normal too.
    errors = np.sqrt(len(apart) / (1.0 + np.eye(width))) * (products - np.eye(width))
    shape = min(float(kstest(units[d], "norm").pvalue) for d in range(width))
    if np.abs(errors).max() > TOO_MANY_ERRORS or shape * width < IMPLAUSIBLE:
        raise _not_drawn((apart.T @ apart / len(apart)).tolist(), covariance.tolist())


def _check_blind(earlier: InformationBound) -> None:
    """Raise if the row before tells of the action: then it was chosen by what was seen."""
    if earlier.nats > TOO_MANY_ERRORS * earlier.standard_error:
        raise DataError(
            "these actions follow what was seen or done before",
            where=WHERE,
            found=f"{earlier.nats:.4f} nats of each are known one row earlier",
            expected="actions that are drawn anew at each row",
            remedy="Record actions that are drawn at random: a follower seems to move its market",
        )


def _not_drawn(found: object, expected: object) -> DataError:
    return DataError(
        "these actions were not drawn from that policy",
        where=WHERE,
        found=found,
        expected=expected,
        remedy="Record actions that are drawn at random, and give the chances that were used",
    )
