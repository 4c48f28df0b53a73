"""Price paths that a crowd can be led through without a market."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.echo import EchoConfig, EchoPopulation
from agent_gym.core import Seeds
from agent_gym.core.types import FloatArray


def waves(n: int, seed: int, *, height: float = 0.05, bars: int = 100) -> FloatArray:
    """Return log prices that go up and down in a known rhythm, with a little noise."""
    noise = Seeds(seed).child("waves").rng().normal(0.0, 1e-4, n)
    return height * np.sin(2.0 * np.pi * np.arange(n) / bars) + noise


def walk(n: int, seed: int, sigma: float = 0.005) -> FloatArray:
    """Return log prices in which nothing can be known."""
    return np.cumsum(Seeds(seed).child("walk").rng().normal(0.0, sigma, n))


def led(config: EchoConfig, path: FloatArray, seed: int = 1) -> EchoPopulation:
    """Return a crowd that was led along a path which it does not move."""
    crowd = EchoPopulation(config)
    crowd.begin(float(path[0]), 0.005, Seeds(seed))
    lead(crowd, path)
    return crowd


def lead(crowd: EchoPopulation, path: FloatArray) -> list[tuple[float, float]]:
    """Lead a crowd from the first price of a path to the last; returns what it asked for."""
    asked = []
    for before, close in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
        asked.append(crowd.decide())
        crowd.settle(close, max(before, close), min(before, close), 0.0, before)
    return asked
