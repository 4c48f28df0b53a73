"""The compiled part of inference: the network one bar at a time, in float64.

Layers are read from one flat array in which each input has its own row. So a sum over inputs runs
in a fixed order while the processor still works on several outputs at once, and the bits do not
hang on how many.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.tiers.recurrent.weights import SPREAD_FROM, SPREAD_TO
from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@inlined
def _sigmoid(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1.0 + grown)


@door("int64(float64[::1], int64, float64[::1], float64[::1])")
def affine(layers: FloatArray, at: int, x: FloatArray, out: FloatArray) -> int:
    """Write the layer that begins at ``at`` (bias, then one row an input); return where it ends."""
    n = out.size
    bias = layers[at : at + n]
    for j in range(n):
        out[j] = bias[j]
    at += n
    for i in range(x.size):
        row, value = layers[at : at + n], x[i]
        for j in range(n):
            out[j] += value * row[j]
        at += n
    return at


@door("void(float64[::1])")
def silu(x: FloatArray) -> None:
    """Bend each number in place."""
    for j in range(x.size):
        x[j] *= _sigmoid(x[j])


@door("void(float64[::1], float64[::1], float64[::1])")
def move_memory(from_input: FloatArray, from_memory: FloatArray, memory: FloatArray) -> None:
    """Move the memory of the network on by one bar; both sides hold reset, update and new."""
    n = memory.size
    for j in range(n):
        reset = _sigmoid(from_input[j] + from_memory[j])
        update = _sigmoid(from_input[n + j] + from_memory[n + j])
        new = math.tanh(from_input[2 * n + j] + reset * from_memory[2 * n + j])
        memory[j] = (1.0 - update) * new + update * memory[j]


@inlined
def _log_part(log_weight: float, mean: float, spread: float, y: float) -> float:
    apart = (y - mean) * math.exp(-spread)
    return log_weight - 0.5 * apart * apart - spread - HALF_LOG_TAU


@door("float64(float64[:, ::1], float64, int64)")
def score_of(forecast: FloatArray, y: float, heads: int) -> float:
    """Return the log density of a return in deviations, all heads; NaN without a forecast."""
    if not (math.isfinite(forecast[0, 0]) and math.isfinite(y)):
        return math.nan
    most = -math.inf
    for i in range(forecast.shape[0]):
        most = max(most, _log_part(forecast[i, 0], forecast[i, 1], forecast[i, 2], y))
    total = 0.0
    for i in range(forecast.shape[0]):
        reached = _log_part(forecast[i, 0], forecast[i, 1], forecast[i, 2], y)
        total += math.exp(reached - most)
    return most + math.log(total) - math.log(heads)


@door("void(float64[::1], float64, int64, float64[:, ::1])")
def mixture(told: FloatArray, shift: float, parts: int, forecast: FloatArray) -> None:
    """Write log weight, mean and log deviation of each component of one head."""
    most, total = -math.inf, 0.0
    for j in range(parts):
        most = max(most, told[j])
    for j in range(parts):
        total += math.exp(told[j] - most)
    for j in range(parts):
        forecast[j, 0] = told[j] - most - math.log(total)
        forecast[j, 1] = told[parts + j] + shift
        forecast[j, 2] = min(max(told[2 * parts + j], SPREAD_FROM), SPREAD_TO)


@door("void(float64[:, ::1], int64, float64[::1])")
def moments(forecast: FloatArray, heads: int, out: FloatArray) -> None:
    """Write mean and variance of the return in deviations, by each head."""
    parts = forecast.shape[0] // heads
    for k in range(heads):
        mean, square = 0.0, 0.0
        for j in range(k * parts, (k + 1) * parts):
            weight, level = math.exp(forecast[j, 0]), forecast[j, 1]
            mean += weight * level
            square += weight * (math.exp(2.0 * forecast[j, 2]) + level * level)
        out[k] = mean
        out[heads + k] = square - mean * mean


@door("void(float64[:, ::1], float64[::1], int64[::1], float64[::1], float64[:, ::1])")
def follow(
    rows: FloatArray,
    layers: FloatArray,
    sizes: NDArray[np.int64],
    memory: FloatArray,
    out: FloatArray,
) -> None:
    """Follow the bars: score the last forecast, see, believe, remember, foretell."""
    columns, embedding, size, latent = sizes[0], sizes[1], sizes[2], sizes[3]
    heads, head_width, width, parts = sizes[4], sizes[5], sizes[6], sizes[7]
    kept = memory[:size]
    forecast = memory[size:].reshape((heads * parts, 3))
    seen, shown = np.empty(2 * columns), np.empty(size + embedding)
    from_input, from_memory = np.empty(3 * size), np.empty(3 * size)
    hidden, believed = np.empty(width), np.empty(latent)
    read, state = np.empty(heads * head_width), np.empty(size + latent)
    told, shifts = np.empty(3 * parts), np.empty(heads)
    for t in range(rows.shape[0]):
        out[t, 2 * heads] = score_of(forecast, rows[t, 0], heads)
        for j in range(columns):
            known = rows[t, 1 + columns + j]
            seen[j] = known * rows[t, 1 + j] + (1.0 - known) * layers[j]
            seen[columns + j] = 1.0 - known
        shown[:size] = kept
        at = affine(layers, columns, seen, shown[size:])
        silu(shown[size:])
        at = affine(layers, at, shown[size:], from_input)
        at = affine(layers, at, kept, from_memory)
        move_memory(from_input, from_memory, kept)
        at = affine(layers, at, shown, hidden)
        silu(hidden)
        at = affine(layers, at, hidden, believed)
        state[:size], state[size:] = kept, believed
        at = affine(layers, at, state, read)
        silu(read)
        at = affine(layers, at, seen[:columns], shifts)
        for k in range(heads):
            at = affine(layers, at, read[k * head_width : (k + 1) * head_width], told)
            mixture(told, shifts[k], parts, forecast[k * parts : (k + 1) * parts])
        moments(forecast, heads, out[t, : 2 * heads])
        out[t, 2 * heads + 1 :] = believed
