"""Playing benchmark snapshots: the world, the trading floor behind it, and the A2A interface."""

from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import BenchmarkWorld

__all__ = ["BenchmarkWorld", "BenchmarkWorldConfig"]
