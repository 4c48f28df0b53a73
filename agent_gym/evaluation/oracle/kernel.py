"""The compiled parts of the oracle: value iteration, figures of a policy, decisions on a path.

A decision is made at a point: it has an expected next return. From a point the market goes into a
state by ``lift``, and from a state to the points of the next bar by ``step``, whatever is held,
because an account does not move the market. Mostly states and points are the same; they differ
where what follows changes slowly with a coordinate of which the decision needs a fine grid.

``worth[y, q]`` is what it is worth at point ``y`` to hold position ``q`` over the next bar, before
the cost of getting there. Positions are the lowest one and those one and two above it: short, out
and long, or out and long. A table of chances has one row a place and is two arrays: where to, and
how likely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray

Places = NDArray[np.int32]
HUGE = 1e300
ROUND = 64  # sweeps between two jumps ahead
LARGEST_RATE = 0.99999


@inlined
def best_of(first: float, second: float, third: float, k: int, held: int, cost: float) -> int:
    """Return the place of the best of ``k`` positions; on a tie what is held is kept."""
    best = first if held == 0 else (second if held == 1 else third)
    chosen = held
    for q in range(k):
        there = first if q == 0 else (second if q == 1 else third)
        net = there - cost * abs(q - held)
        if net > best:
            best, chosen = net, q
    return chosen


@inlined
def cell_of(value: float, low: float, step: float, count: int) -> tuple[int, float]:
    """Return the cell of the grid that holds a value, and where in the cell it lies, 0 to 1."""
    if count == 1:
        return 0, 0.0
    place = min(max((value - low) / step, 0.0), count - 1.0)
    cell = min(int(place), count - 2)
    return cell, place - cell


@door("void(int32[:,::1], float64[:,::1], float64[:,::1], float64[:,::1])")
def expect(places: Places, weights: FloatArray, values: FloatArray, out: FloatArray) -> None:
    """Write the expected values of what follows each place."""
    k = out.shape[1]
    for x in range(places.shape[0]):
        for q in range(k):
            out[x, q] = 0.0
        for j in range(places.shape[1]):
            for q in range(k):
                out[x, q] += weights[x, j] * values[places[x, j], q]


@door("float64(int64, float64, float64, float64[:,::1], float64[:,:,::1])")
def hasten(sweep: int, span: float, last_span: float, value: FloatArray, kept: FloatArray) -> float:
    """Jump ahead along the slowest change, once a round; the sweeps after it mend what is off.

    The last changes of a round shrink by one rate, that of the slowest mixing of the chain; what
    is still to come is their geometric sum. Returns the span of changes before the jump. If that
    has not shrunk since the jump before, there is none now, and no other: plain sweeps always
    arrive.
    """
    turn = sweep % ROUND
    if last_span == 0.0 or 0 < turn < ROUND - 2:
        return last_span
    if turn != 0:
        kept[turn - ROUND + 2] = value
        return last_span
    if span > 0.8 * last_span:
        return 0.0
    over = under = 0.0
    n, k = value.shape
    for y in range(n):
        for p in range(k):
            before = kept[1, y, p] - kept[0, y, p]
            over += before * (value[y, p] - kept[1, y, p])
            under += before * before
    if under > 0.0 and 0.0 < over < LARGEST_RATE * under:
        rate = over / under
        for y in range(n):
            for p in range(k):
                value[y, p] += (value[y, p] - kept[1, y, p]) * rate / (1.0 - rate)
    return span


@door("UniTuple(float64, 2)(float64[:,::1], float64, float64[:,::1])")
def improve(worth: FloatArray, cost: float, value: FloatArray) -> tuple[float, float]:
    """Put the best of each place into ``value`` and return the least and the largest change."""
    n, k = value.shape
    low, high = HUGE, -HUGE
    for y in range(n):
        for p in range(k):
            q = best_of(worth[y, 0], worth[y, 1], worth[y, k - 1], k, p, cost)
            fresh = worth[y, q] - cost * abs(q - p)
            low, high = min(low, fresh - value[y, p]), max(high, fresh - value[y, p])
            value[y, p] = fresh
    return low, high


@door(
    "Tuple((float64, int64))(UniTuple(int32[:,::1], 2), UniTuple(float64[:,::1], 2)"
    ", float64[:,::1], float64[::1], float64[:,::1])"
)
def iterate_values(
    places: tuple[Places, Places],
    weights: tuple[FloatArray, FloatArray],
    paid: FloatArray,
    knobs: FloatArray,
    worth: FloatArray,
) -> tuple[float, int]:
    """Run relative value iteration into ``worth``; return the gain a bar and the sweeps.

    ``places`` and ``weights`` are those of step and lift; ``paid[y, q]`` is the expected gain of a
    position over the next bar. ``knobs`` are the cost of one unit of trade, the tolerance of the
    gain and the most sweeps. The gain lies between the least and the largest change of a sweep; the
    sweeps are 0 if these never came within the tolerance.
    """
    n, k = worth.shape
    value, ahead = np.zeros((n, k)), np.zeros((places[0].shape[0], k))
    kept, span = np.zeros((2, n, k)), HUGE
    for sweep in range(1, int(knobs[2]) + 1):
        expect(places[0], weights[0], value, ahead)
        expect(places[1], weights[1], ahead, worth)
        worth += paid
        low, high = improve(worth, knobs[0], value)
        value -= value[n // 2, 0]
        if high - low < knobs[1]:
            return 0.5 * (low + high), sweep
        span = hasten(sweep, high - low, span, value, kept)
    return 0.0, 0


@door("void(float64[:,::1], float64[::1], float64, float64[:,::1], int64[:,::1], float64[:,:,::1])")
def follow_policy(
    moments: FloatArray,
    positions: FloatArray,
    cost: float,
    worth: FloatArray,
    chosen: NDArray[np.int64],
    figures: FloatArray,
) -> None:
    """Write what the policy chooses at each point for each position held, and its figures there.

    ``moments`` holds mean and mean square of the next return at each point; the figures are the
    square of the net gain and the turnover.
    """
    n, k = worth.shape
    for y in range(n):
        for p in range(k):
            q = best_of(worth[y, 0], worth[y, 1], worth[y, k - 1], k, p, cost)
            chosen[y, p] = q
            gain, fee = positions[q] * moments[y, 0], cost * abs(q - p)
            figures[0, y, p] = positions[q] ** 2 * moments[y, 1] - 2.0 * fee * gain + fee * fee
            figures[1, y, p] = abs(q - p)


@door(
    "float64(UniTuple(int32[:,::1], 2), UniTuple(float64[:,::1], 2), int64[:,::1]"
    ", float64[:,::1], float64[::1])"
)
def average_figure(
    places: tuple[Places, Places],
    weights: tuple[FloatArray, FloatArray],
    chosen: NDArray[np.int64],
    paid: FloatArray,
    knobs: FloatArray,
) -> float:
    """Return the long-run average of a figure that a policy is paid at each point.

    ``knobs`` are its tolerance, the most sweeps, and the first and last of the positions that one
    who is out may ever come to; what was not found in time is not a number.
    """
    n, k = chosen.shape
    first, last = int(knobs[2]), int(knobs[3])
    value, lifted, kept = np.zeros((n, k)), np.zeros((n, k)), np.zeros((2, n, k))
    ahead, span = np.zeros((places[0].shape[0], k)), HUGE
    for sweep in range(1, int(knobs[1]) + 1):
        expect(places[0], weights[0], value, ahead)
        expect(places[1], weights[1], ahead, lifted)
        low, high = HUGE, -HUGE
        for y in range(n):
            for p in range(first, last + 1):
                fresh = paid[y, p] + lifted[y, chosen[y, p]]
                low, high = min(low, fresh - value[y, p]), max(high, fresh - value[y, p])
                value[y, p] = fresh
        value -= value[n // 2, first]
        if high - low < knobs[0]:
            return 0.5 * (low + high)
        span = hasten(sweep, high - low, span, value, kept)
    return np.nan


@door(
    "void(float64[:,:,::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"
)
def decide(
    worth: FloatArray,
    knobs: FloatArray,
    xs: FloatArray,
    ys: FloatArray,
    held: FloatArray,
    out: FloatArray,
) -> None:
    """Write one target a moment; ``held`` carries the position from call to call.

    ``knobs`` are the first coordinate's lowest value and step, the same of the second, the cost
    and the lowest position. Between the points of the grid ``worth`` is interpolated.
    """
    cost, lowest = knobs[4], knobs[5]
    n, m, k = worth.shape
    at = int(held[0] - lowest)
    level = np.zeros(3)
    for t in range(xs.size):
        i, u = cell_of(xs[t], knobs[0], knobs[1], n)
        j, v = cell_of(ys[t], knobs[2], knobs[3], m)
        i_next, j_next = min(i + 1, n - 1), min(j + 1, m - 1)
        for q in range(k):
            near = (1.0 - u) * worth[i, j, q] + u * worth[i_next, j, q]
            far = (1.0 - u) * worth[i, j_next, q] + u * worth[i_next, j_next, q]
            level[q] = (1.0 - v) * near + v * far
        at = best_of(level[0], level[1], level[k - 1], k, at, cost)
        out[t] = lowest + at
    held[0] = lowest + at
