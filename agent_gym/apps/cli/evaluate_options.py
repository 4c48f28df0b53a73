"""What can be said to ``agent-gym evaluate``, as models from which its options are made."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.evaluation.tearsheet import FORMATS

TRIALS = "trials.jsonl"
KNOWN_COST_BP = 5.0
TRAIN = "180d"
EPISODES, THRESHOLD = 100, 200.0
OF_MODELS = ("episodes", "threshold", "csv")
"""Options that say something only about the episodes of a trained model."""


class MarketJob(Config):
    """Where the bars come from, and what trading in them costs."""

    data: Path | None = Field(default=None, description="CSV, Parquet or Feather file of bars")
    market: str | None = Field(default=None, description="market by name, such as known/m1")
    market_param: tuple[str, ...] = Field(
        default=(), description="parameter of the market, repeatable"
    )
    bars: int | None = Field(default=None, ge=2, description="bars that the market generates")
    funding: Path | None = Field(
        default=None, description="file of a perpetual's funding rates to lay beside the bars"
    )
    cost_bp: float | None = Field(
        default=None,
        ge=0.0,
        lt=10_000.0,
        description="one flat cost of a trade in place of fee, spread, slippage and impact; on "
        f"known markets {KNOWN_COST_BP:g} unless other costs are given",
    )


class EvaluateJob(MarketJob):
    """What is traded, and how it is tested."""

    protocol: Literal["walk-forward", "combinatorial", "seeds"] | None = Field(
        default=None,
        description="walk-forward, combinatorial (purged cross-validation) or seeds (default seeds "
        "with --market, else walk-forward)",
    )
    groups: int = Field(
        default=10, ge=2, le=40, description="equal stretches that combinatorial cuts the bars into"
    )
    tested: int = Field(default=2, ge=1, description="stretches that a combination tests")
    seeds: int = Field(default=20, ge=2, description="how often the market is drawn")
    seed: int = Field(default=0, ge=0, description="first seed")
    train: str | None = Field(
        default=None, description=f"first training segment (default {TRAIN}; of seeds: half)"
    )
    validation: str | None = Field(
        default="30d", description="segment between train and test, or none"
    )
    test: str = Field(default="30d", description="test segment of a fold")
    purge: int = Field(default=6, ge=0, description="bars that a label reaches forward")
    embargo: int = Field(default=168, ge=0, description="bars that features remember")
    expanding: bool = Field(default=True, description="train from the first bar on, or roll along")
    lockbox: str | None = Field(default="60d", description="last stretch that is held out, or none")
    release: str | None = Field(
        default=None, description="open the lockbox for this release, which is recorded"
    )
    draws: int = Field(
        default=500, ge=1, le=100_000, description="random positions with the same turnover"
    )

    episodes: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description=f"fresh greedy episodes of a trained MODEL (default {EPISODES})",
    )
    threshold: float | None = Field(
        default=None,
        description=f"share of a MODEL's episodes at or above it (default {THRESHOLD:g})",
    )
    csv: Path | None = Field(
        default=None,
        description="file of all episodes of a MODEL (default in results/metrics)",
    )


class Outputs(Config):
    """What is written, and where."""

    registry: Path | None = Field(
        default=None, description=f"file of all trials (default results/{TRIALS})"
    )
    report: tuple[Path, ...] = Field(
        default=(),
        description="tear sheet, repeatable; the name says the format: " + ", ".join(FORMATS),
    )
    jobs: int = Field(default=1, ge=1, le=256, description="processes; changes no number")
    gate: bool = Field(
        default=False, description="exit with 4 when a gate on a null is missed or an agent failed"
    )
