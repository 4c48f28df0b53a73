"""TrainingModule: from what the desk remembers to a table, and from the table to an acceptor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from agent_gym.agents.desk.context import RecentContext
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.manifest import describe
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk.config import TrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.fitting import break_even, build, logistic_baseline
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.paper import Market, PaperDesk
from agent_gym.training.desk.preparation import Preparation, latest_time
from agent_gym.training.desk.splitting import Split, purged_split
from agent_gym.training.desk.validation import (
    Judged,
    figures,
    gain_over,
    latency_ms,
    slices,
    stability,
)

LEAST_IN_A_PART = 5  # of each outcome, so that calibration can be cross-checked


@dataclass(frozen=True, slots=True, eq=False)
class TrainResult:
    """What training gave; ``model`` is None unless the status is "trained".

    ``metrics`` are of the test part. ``perf`` holds wall-clock figures, which decide nothing.
    """

    status: Literal["trained", "insufficient"]
    reason: str
    dataset: Dataset
    model: DeskModel | None = None
    test: Dataset | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    perf: dict[str, float] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "status": self.status,
            "reason": self.reason,
            "dataset": self.dataset.as_dict(),
            "model": None if self.model is None else self.model.version,
            "threshold": None if self.model is None else self.model.threshold,
            "metrics": self.metrics,
            "baselines": self.baselines,
            "perf": self.perf,
        }


class TrainingModule:
    """Prepares tables from a context and trains acceptors on them.

    Args:
        ctx: What the desk remembers.
        market: Bars by symbol (or of one market), for paper outcomes and features.
        config: What a label is, how much data it takes, how the trees grow.
        seeds: Where randomness comes from.
        clock: Measures how long a prediction takes.
        commit: The source that trains, for the manifest.
    """

    def __init__(
        self,
        ctx: RecentContext,
        market: Market | None = None,
        config: TrainingConfig | None = None,
        *,
        seeds: Seeds | None = None,
        clock: Clock | None = None,
        commit: str | None = None,
    ) -> None:
        self.ctx = ctx
        self.config = config or TrainingConfig()
        self.paper = PaperDesk(market, self.config.paper)
        self.seeds = seeds or Seeds(0)
        self._clock = clock or SystemClock()
        self._commit = commit

    def prepare_dataset(self, as_of: float | None = None, horizon: str = "24h") -> Dataset:
        """Return the table of all signals whose label was known at a time (default: the latest)."""
        moment = latest_time(self.ctx) if as_of is None else as_of
        return Preparation(self.ctx, self.paper, self.config).dataset(moment, horizon)

    def train_model(
        self,
        dataset: Dataset,
        champion: DeskModel | None = None,
        *,
        on_stage: Callable[[str], None] = lambda stage: None,
    ) -> TrainResult:
        """Train, calibrate and validate an acceptor; too little data is an answer, not an error.

        Args:
            dataset: A table of ``prepare_dataset``.
            champion: The acceptor in office, as one more baseline.
            on_stage: Told before each stage; it may raise to stop in between.
        """
        if dataset.status == "insufficient":
            return TrainResult("insufficient", dataset.reason, dataset)
        split = purged_split(dataset)
        why = _too_thin(split)
        if why:
            return TrainResult("insufficient", why, dataset)
        on_stage("fit")
        model = build(split.fit, split.calibrate, self.config, self.seeds)
        on_stage("validate")
        judged = Judged.by(model, split.test)
        metrics = self._metrics(judged, split)
        on_stage("folds")
        past = dataset.take(dataset.t < split.test.t[0])
        metrics["stability"] = stability(past, self.config, self.seeds)
        first = dict(zip(dataset.feature_names, split.test.X[0].tolist(), strict=True))
        return TrainResult(
            status="trained",
            reason="",
            dataset=dataset,
            model=model,
            test=split.test,
            metrics=metrics,
            baselines=self._baselines(split, champion),
            perf=latency_ms(model, first, self._clock),
            manifest=self._manifest(dataset, metrics),
        )

    def _metrics(self, judged: Judged, split: Split) -> dict[str, Any]:
        everyone = Judged.constant(split.test, 0.5, True)
        gain = gain_over(
            judged, everyone, self.seeds.child("gain"), reps=self.config.bootstrap_reps
        )
        return figures(judged) | {
            "gain_over_accept_all": gain.as_dict(),
            "slices": slices(judged, everyone, self.config.slice_rows),
            "parts": {
                "fit": len(split.fit),
                "calibrate": len(split.calibrate),
                "test": len(split.test),
                "purged": split.purged,
            },
        }

    def _baselines(self, split: Split, champion: DeskModel | None) -> dict[str, Any]:
        test, level = split.test, break_even(split.calibrate)
        share = float(np.average(split.calibrate.y, weights=split.calibrate.weight))
        p = logistic_baseline(split.fit, test, self.config)
        found = {
            "prevalence": figures(Judged.constant(test, share, share >= level)),
            "accept_all": figures(Judged.constant(test, share, True)),
            "logistic": figures(Judged(test, p, p >= level)),
        }
        if champion is not None:
            found["champion"] = figures(Judged.by(champion, test))
        return found

    def _manifest(self, dataset: Dataset, metrics: dict[str, Any]) -> dict[str, Any]:
        about = describe(
            argv=["agent-gym", "desk", "train"],
            config=self.config.model_dump(mode="json"),
            data=dataset.as_dict(),
            seeds=(self.seeds.root,),
            commit=self._commit,
        )
        said = about.model_dump(mode="json")
        said["versions"] |= {"scikit-learn": version("scikit-learn")}
        return said | {"metrics": metrics}


def _too_thin(split: Split) -> str:
    """Return why parts that were purged cannot be trained on, empty if they can."""
    for name in ("fit", "calibrate", "test"):
        part: Dataset = getattr(split, name)
        wins = int(part.y.sum())
        if min(wins, len(part) - wins) < LEAST_IN_A_PART:
            return (
                f"after purging, the {name} part holds {len(part)} rows, {wins} of them wins; "
                f"{LEAST_IN_A_PART} of each outcome are needed in every part"
            )
    return ""
