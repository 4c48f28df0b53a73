"""A small benchmark snapshot and worlds on it, for several test files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import BenchmarkWorld
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator, Made

SMALL = {"duration_minutes": 600, "prediction_markets": 2, "perpetual_markets": 1, "agents": 4}


@cache
def made(seed: int = 0, scenario: str = "bull") -> Made:
    """Return a snapshot of 40 ticks with its truth; made once."""
    return BenchmarkDataGenerator(SnapshotConfig(**(SMALL | {"scenario": scenario}))).generate(seed)


def world(seed: int = 0, scenario: str = "bull", **rules: object) -> BenchmarkWorld:
    """Return a fresh world on it, at tick 0."""
    config = BenchmarkWorldConfig(snapshot=Path("unused"), **rules)
    one = BenchmarkWorld(config, made(seed, scenario).snapshot)
    one.reset(Seeds(0))
    return one
