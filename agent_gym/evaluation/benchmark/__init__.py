"""How good is a player of benchmark snapshots: the optimum, the runner, the figures, the proofs."""

from agent_gym.evaluation.benchmark.correctness import correctness, optimality
from agent_gym.evaluation.benchmark.episode import A2ABot, WatchedWorld, play_bot, play_team
from agent_gym.evaluation.benchmark.filter import Knowledge, know
from agent_gym.evaluation.benchmark.metrics import EpisodeAccount, max_drawdown, score, validate
from agent_gym.evaluation.benchmark.optimum import BayesOptimum
from agent_gym.evaluation.benchmark.runner import (
    BenchmarkJob,
    BenchmarkReport,
    BenchmarkRunner,
    RunnerConfig,
)

__all__ = [
    "A2ABot",
    "BayesOptimum",
    "BenchmarkJob",
    "BenchmarkReport",
    "BenchmarkRunner",
    "EpisodeAccount",
    "Knowledge",
    "RunnerConfig",
    "WatchedWorld",
    "correctness",
    "know",
    "max_drawdown",
    "optimality",
    "play_bot",
    "play_team",
    "score",
    "validate",
]
