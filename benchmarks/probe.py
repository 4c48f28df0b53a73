"""Questions that need a fresh process: ``python -m benchmarks.probe memory|threads``."""

from __future__ import annotations

import json
import sys

import numpy as np

from agent_gym.core.seeds import Seeds
from benchmarks import ours
from benchmarks.adapters.inputs import peak_extra_mb
from benchmarks.data import random_walk, sma_pairs

SWEEP_BARS, LANES, CALLS = 100_000, 1024, 400


def memory() -> dict[str, float]:
    """Return how much memory the sweep takes above what was held before it."""
    ours.SweepRun(random_walk(1_000), sma_pairs()).run()
    series = random_walk(SWEEP_BARS)
    return {"extra_mb": peak_extra_mb(lambda: ours.SweepRun(series, sma_pairs()).run())}


def threads() -> dict[str, bool]:
    """Say whether one and two threads give the same bits at every step."""
    series = random_walk(20_000)
    envs = [ours.vector_env(series, LANES, 5, threads=n) for n in (1, 2)]
    actions = Seeds(5).child("benchmark", "threads").rng().integers(0, 2, (CALLS, LANES))
    equal = True
    for chosen in actions:
        one, two = (env.step(chosen)[:4] for env in envs)
        equal &= all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))
    equal &= np.array_equal(envs[0].lanes.state["eq"], envs[1].lanes.state["eq"])
    return {"equal": bool(equal)}


if __name__ == "__main__":
    print(json.dumps({"memory": memory, "threads": threads}[sys.argv[1]]()))
