"""The compiled parts of a hidden Markov model: weigh rows, follow them forward, look back in a fit.

``follow`` is the only one that works while trading, and it never sees a later row. ``look_back``
gives smoothed chances, which know the future: it is for the fit alone. A NaN in a row is a number
that is not known; it leaves the likelihood, and a row without any known number moves the belief by
the transitions only.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

ROW, TABLE, CUBE = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"


@door(f"void({TABLE}, {TABLE}, {TABLE}, {TABLE}, {TABLE}, {ROW})")
def weigh(
    rows: FloatArray,
    means: FloatArray,
    precisions: FloatArray,
    constants: FloatArray,
    likelihoods: FloatArray,
    peaks: FloatArray,
) -> None:
    """Write the density of each row in each state over that of its best state, and the log of that.

    ``constants`` are the logs of the densities at the means.
    """
    states, width = means.shape
    for t in range(rows.shape[0]):
        peak = -math.inf
        for k in range(states):
            total = 0.0
            for d in range(width):
                gap = rows[t, d] - means[k, d]
                if gap == gap:
                    total += constants[k, d] - 0.5 * gap * gap * precisions[k, d]
            likelihoods[t, k] = total
            peak = max(peak, total)
        for k in range(states):
            likelihoods[t, k] = math.exp(likelihoods[t, k] - peak)
        peaks[t] = peak


@door(f"void({TABLE}, {ROW}, {TABLE}, {ROW}, {TABLE}, {ROW})")
def follow(
    likelihoods: FloatArray,
    peaks: FloatArray,
    transition: FloatArray,
    memory: FloatArray,
    beliefs: FloatArray,
    scores: FloatArray,
) -> None:
    """Write the belief after each row and the log density that was given to it before it was seen.

    ``memory`` is the belief before the first row and, in the end, the one after the last.
    """
    states = transition.shape[0]
    for t in range(likelihoods.shape[0]):
        total = 0.0
        for j in range(states):
            ahead = 0.0
            for i in range(states):
                ahead += memory[i] * transition[i, j]
            beliefs[t, j] = ahead * likelihoods[t, j]
            total += beliefs[t, j]
        for j in range(states):
            beliefs[t, j] /= total
            memory[j] = beliefs[t, j]
        scores[t] = math.log(total) + peaks[t]


@door(f"void({TABLE}, {TABLE}, {ROW}, {TABLE}, {TABLE}, {TABLE})")
def look_back(
    likelihoods: FloatArray,
    transition: FloatArray,
    start: FloatArray,
    beliefs: FloatArray,
    chances: FloatArray,
    counts: FloatArray,
) -> None:
    """Write the chance of each state given the whole series, and the expected moves between states.

    The move from the start into the first row is one of them.
    """
    rows, states = likelihoods.shape
    future, earlier = np.ones(states), np.empty(states)
    moves = np.empty((states, states))
    counts[:] = 0.0
    for t in range(rows - 1, -1, -1):
        total = 0.0
        for k in range(states):
            chances[t, k] = beliefs[t, k] * future[k]
            total += chances[t, k]
        for k in range(states):
            chances[t, k] /= total
        total, largest = 0.0, 0.0
        for i in range(states):
            before = beliefs[t - 1, i] if t > 0 else start[i]
            earlier[i] = 0.0
            for j in range(states):
                way = transition[i, j] * likelihoods[t, j] * future[j]
                earlier[i] += way
                moves[i, j] = before * way
                total += moves[i, j]
            largest = max(largest, earlier[i])
        for i in range(states):
            future[i] = earlier[i] / largest
            for j in range(states):
                counts[i, j] += moves[i, j] / total


@door(f"void({TABLE}, {TABLE}, {CUBE})")
def gather(rows: FloatArray, chances: FloatArray, moments: FloatArray) -> None:
    """Write weight, sum and sum of squares of every input in every state, of what is known."""
    moments[:] = 0.0
    for t in range(rows.shape[0]):
        for d in range(rows.shape[1]):
            value = rows[t, d]
            if value == value:
                for k in range(chances.shape[1]):
                    part = chances[t, k]
                    moments[0, k, d] += part
                    moments[1, k, d] += part * value
                    moments[2, k, d] += part * value * value
