"""What a training run gives back, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import Field

from agent_gym.core.errors import AgentGymError
from agent_gym.core.registry import Config

SCHEMA = "agent_gym.training/1"
RunStatus: TypeAlias = Literal["done", "stopped_early", "interrupted", "error"]


class Episode(NamedTuple):
    """One whole episode; ``step`` is how many steps of training came before it."""

    step: int
    seed: int
    reward: float
    length: int


class TrainingResult(Config):
    """One seed of one config: figures and paths. ``None`` means not measured, never 0."""

    schema_name: str = SCHEMA
    status: RunStatus
    error: dict[str, Any] | None = None
    algo: str
    env: str = Field(description="in which it was trained, after continuous: auto has chosen")
    seed: int
    steps: int = Field(description="that were taken")
    best_step: int | None = Field(description="after which the kept model was best")
    best_mean: float | None = Field(description="by which it was chosen; flatters, so do not quote")
    final_mean: float | None = Field(description="of fresh greedy episodes of the kept model")
    final_low: float | None = None
    final_high: float | None = None
    share_above_200: float | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    state_hash: str | None = Field(description="of all that decides how training would go on")
    config: dict[str, Any]
    manifest: dict[str, Any]


def figure_text(value: float) -> str:
    """Return a return as it is shown: a decimal of large ones, three digits of small ones.

    Example:
        >>> figure_text(259.04), figure_text(-0.0012345), figure_text(0.0)
        ('259.0', '-0.00123', '0.0')
    """
    return f"{value:.1f}" if value == 0.0 or abs(value) >= 1.0 else f"{value:.3g}"


def interval_text(middle: float, low: float | None, high: float | None) -> str:
    """Return a figure with its interval, if it has one."""
    if low is None or high is None:
        return figure_text(middle)
    return f"{figure_text(middle)} [{figure_text(low)}, {figure_text(high)}]"


def error_text(error: Mapping[str, Any] | None, otherwise: str) -> str:
    """Return why a run failed: what, where, what was found, and what can be done about it.

    Example:
        >>> error_text({"what": "disk full", "where": "/x", "remedy": "Free some"}, "error")
        'disk full (at /x). Free some'
    """
    told = error or {}
    return str(
        AgentGymError(
            str(told.get("what") or otherwise),
            where=told.get("where"),
            found=told.get("found"),
            expected=told.get("expected"),
            remedy=told.get("remedy"),
        )
    )


class RunFolder:
    """Where the files of one run lie.

    ``config.json`` · ``result.json`` · ``metrics.csv`` (losses, an iteration a row) ·
    ``episodes.csv`` (of training) · ``evaluations.csv`` (greedy) · ``final_episodes.csv`` ·
    ``checkpoints/`` · ``best/`` and ``last/`` (models) · ``tensorboard/``
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.result = path / "result.json"
        self.metrics = path / "metrics.csv"
        self.episodes = path / "episodes.csv"
        self.evaluations = path / "evaluations.csv"
        self.final_episodes = path / "final_episodes.csv"
        self.checkpoints = path / "checkpoints"
        self.best = path / "best"
        self.last = path / "last"
        self.tensorboard = path / "tensorboard"
