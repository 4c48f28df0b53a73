"""The fit: expectation and maximisation with a prior for staying, and the choice of their number.

It sees the rows it is given and nothing else. The number of states is chosen by the log density
that models give, bar by bar, to a part of these rows which they were not fitted on; every part has
its turn, because one part alone is too short to tell numbers apart that differ by little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agent_gym.agents.umc.macro.config import MacroConfig
from agent_gym.agents.umc.macro.hmm import follow, gather, look_back
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.agents.umc.macro.starts import start_groups
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

MOVES_BEFORE = 0.1  # moves counted for each pair before any was seen: no way is closed for ever
TRIAL_STEPS = 8
BATCHES = 20
LEAST_ROWS_A_STATE = 20


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model and how far its fit went.

    Attributes:
        model: The parameters.
        objective: Log density of the rows plus that of the prior, in nats, before each step.
    """

    model: Hmm
    objective: tuple[float, ...]


def choose_states(
    rows: FloatArray, config: MacroConfig, seeds: Seeds
) -> tuple[Fitted, Mapping[int, float]]:
    """Return the fit with the number of states that does best, and what each number scored.

    The score is in nats a bar on the held-out rows. Of numbers that cannot be told apart the
    smallest is taken.
    """
    parts = _parts(len(rows), config.validation_share)
    fewest = min(_known_rows(_without(rows, low, high)) for low, high in parts)
    most = min(config.max_states, fewest // LEAST_ROWS_A_STATE)
    if most < config.min_states:
        raise DataError(
            "the past is too short to fit macrostates",
            where="agents.umc.macro",
            found=f"{fewest} rows with a known input, when one part is held out",
            expected=f"{LEAST_ROWS_A_STATE * config.min_states} at least",
            remedy="Give a longer past, or lower min_states",
        )
    scores = {
        states: _held_out(rows, states, parts, config, seeds)
        for states in range(config.min_states, most + 1)
    }
    chosen = _smallest_good(scores, config.error_margin)
    whole = fit_states(rows, chosen, config, seeds)
    return whole, {states: float(row.mean()) for states, row in scores.items()}


def fit_states(rows: FloatArray, states: int, config: MacroConfig, seeds: Seeds) -> Fitted:
    """Return the best fit with a number of states: a few steps from each start, then the best."""
    trials = [
        fit_from(_started(rows, states, restart, config, seeds), rows, config, TRIAL_STEPS)
        for restart in range(config.restarts)
    ]
    best = max(trials, key=lambda trial: trial.objective[-1])
    return fit_from(best.model, rows, config, config.max_iterations)


def fit_from(model: Hmm, rows: FloatArray, config: MacroConfig, steps: int) -> Fitted:
    """Improve a model step by step until the gain is too small or the steps are done."""
    objective: list[float] = []
    for _ in range(steps):
        improved, value = _step(model, rows, config)
        objective.append(value)
        model = improved
        if len(objective) > 1 and value - objective[-2] < config.tolerance * len(rows):
            break
    return Fitted(model, tuple(objective))


def _step(model: Hmm, rows: FloatArray, config: MacroConfig) -> tuple[Hmm, float]:
    states = model.states
    likelihoods, peaks = model.weighed(rows)
    start = np.full(states, 1.0 / states)  # held fixed: one row cannot tell where a chain starts
    beliefs, scores = np.empty_like(likelihoods), np.empty_like(peaks)
    follow(likelihoods, peaks, model.transition, start.copy(), beliefs, scores)
    chances, moves = np.empty_like(beliefs), np.empty((states, states))
    look_back(likelihoods, model.transition, start, beliefs, chances, moves)
    before = prior_moves(states, config.stickiness)
    value = float(scores.sum() + (before * np.log(model.transition)).sum())
    return _maximised(model, rows, chances, moves, config), value


def prior_moves(states: int, stickiness: float) -> FloatArray:
    """Return the moves that the prior counts: stays, and a trace of every other move."""
    moves = np.full((states, states), MOVES_BEFORE)
    moves[np.diag_indices(states)] += stickiness
    return moves


def _maximised(
    model: Hmm, rows: FloatArray, chances: FloatArray, moves: FloatArray, config: MacroConfig
) -> Hmm:
    moments = np.empty((3, model.states, rows.shape[1]))
    gather(rows, chances, moments)
    weights, sums, squares = moments
    seen = weights > 1e-9  # a state without a known row keeps what it had
    safe = np.where(seen, weights, 1.0)
    means = np.where(seen, sums / safe, model.means)
    spread = np.maximum(squares / safe - means**2, config.variance_floor)
    counted = moves + prior_moves(model.states, config.stickiness)
    return Hmm(
        counted / counted.sum(axis=1, keepdims=True),
        means,
        np.where(seen, spread, model.variances),
    )


def _started(rows: FloatArray, states: int, restart: int, config: MacroConfig, seeds: Seeds) -> Hmm:
    groups = start_groups(rows, states, restart, seeds)
    # A little of every row goes to every state, so that none starts with nothing.
    chances = np.full((len(rows), states), 0.05 / states)
    chances[np.arange(len(rows)), groups] += 0.95
    moves = np.zeros((states, states))
    np.add.at(moves, (groups[:-1], groups[1:]), 1.0)
    shape = (states, rows.shape[1])
    blank = Hmm(np.full((states, states), 1.0 / states), np.zeros(shape), np.ones(shape))
    return _maximised(blank, rows, chances, moves, config)


def _known_rows(rows: FloatArray) -> int:
    return int(np.isfinite(rows).any(axis=1).sum())


def _parts(rows: int, share: float) -> list[tuple[int, int]]:
    """Return first and last row of parts of about a share each, all of the rows together."""
    edges = np.linspace(0, rows, max(2, round(1.0 / share)) + 1).astype(np.int64)
    return [(int(low), int(high)) for low, high in pairwise(edges)]


def _without(rows: FloatArray, low: int, high: int) -> FloatArray:
    return np.concatenate([rows[:low], rows[high:]])


def _held_out(
    rows: FloatArray,
    states: int,
    parts: list[tuple[int, int]],
    config: MacroConfig,
    seeds: Seeds,
) -> FloatArray:
    """Return the log density of each known row by a model of the other parts."""
    scores = np.empty(len(rows))
    for low, high in parts:
        model = fit_states(_without(rows, low, high), states, config, seeds).model
        scores[low:high] = model.filtered(rows, model.shares())[1][low:high]
    return scores[np.isfinite(rows).any(axis=1)]


def _smallest_good(scores: Mapping[int, FloatArray], margin: float) -> int:
    best = max(scores, key=lambda states: float(scores[states].mean()))
    for states in sorted(scores):
        gaps = scores[best] - scores[states]
        if float(gaps.mean()) <= margin * _standard_error(gaps):
            return states
    return best


def _standard_error(values: FloatArray) -> float:
    """Return the error of a mean by batches, as neighbouring scores depend on each other."""
    batches = min(BATCHES, values.size)
    if batches < 2:
        return 0.0
    means = np.array([batch.mean() for batch in np.array_split(values, batches)])
    return float(means.std(ddof=1)) / math.sqrt(batches)
