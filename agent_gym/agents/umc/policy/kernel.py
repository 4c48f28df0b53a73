"""The compiled part of the actor: one bar at a time, in float64, each sum in a fixed order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.tiers.recurrent import kernel as layers_kernel
from agent_gym.agents.umc.tiers.recurrent.kernel import affine, silu
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray


@door("void(float64[::1], int64, float64[::1])")
def add_chances(logits: FloatArray, members: int, out: FloatArray) -> None:
    """Add one member's share of the chances."""
    most, total = -math.inf, 0.0
    for j in range(logits.size):
        most = max(most, logits[j])
    for j in range(logits.size):
        logits[j] = math.exp(logits[j] - most)
        total += logits[j]
    for j in range(logits.size):
        out[j] += logits[j] / total / members


@door(
    "void(float64[:, ::1], float64[::1], float64[::1], int64[::1], float64[::1], float64[:, ::1])",
    parts=(layers_kernel,),
)
def decide_bars(
    rows: FloatArray,
    layers: FloatArray,
    levels: FloatArray,
    sizes: NDArray[np.int64],
    memory: FloatArray,
    out: FloatArray,
) -> None:
    """Decide bar by bar: write the chances and the likeliest level; that is held from then on."""
    members, width, depth = sizes[0], sizes[1], sizes[2]
    columns, n = rows.shape[1], levels.size
    seen, logits = np.empty(columns + 1), np.empty(n)
    hidden, bent = np.empty(width), np.empty(width)
    for t in range(rows.shape[0]):
        seen[:columns] = rows[t]
        seen[columns] = memory[0]
        out[t] = 0.0
        at = 0
        for _ in range(members):
            at = affine(layers, at, seen, hidden)
            silu(hidden)
            for _ in range(1, depth):
                at = affine(layers, at, hidden, bent)
                silu(bent)
                hidden[:] = bent
            at = affine(layers, at, hidden, logits)
            add_chances(logits, members, out[t, :n])
        best = 0
        for j in range(1, n):
            if out[t, j] > out[t, best]:
                best = j
        memory[0] = levels[best]
        out[t, n] = memory[0]
