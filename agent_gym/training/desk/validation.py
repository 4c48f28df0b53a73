"""What a model is worth on rows that it has not seen: figures, slices, folds and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import Clock
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, mean_interval, wilson
from agent_gym.training.desk.config import TrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.fitting import grow
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.scores import auc, brier, ece, log_loss
from agent_gym.training.desk.splitting import forward_folds

FOLD_ROWS = 60
LATENCY_CALLS = 300


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Rows with the probabilities of one model and what it would have let through."""

    data: Dataset
    p: FloatArray
    accepts: NDArray[np.bool_]

    @classmethod
    def by(cls, model: DeskModel, data: Dataset) -> Judged:
        """Ask a model about rows."""
        p = model.probabilities(model.aligned(data.X, data.feature_names))
        return cls(data, p, p >= model.threshold)

    @classmethod
    def constant(cls, data: Dataset, p: float, accepts: bool) -> Judged:
        """Return what a model says that knows nothing but the share of wins."""
        n = len(data)
        return cls(data, np.full(n, p), np.full(n, accepts, dtype=np.bool_))

    @property
    def gains(self) -> FloatArray:
        """Return what each signal brings, weighed so that the mean is the utility a signal."""
        weight = self.data.weight / self.data.weight.mean()
        return np.asarray(weight * self.data.payoff * self.accepts)

    @property
    def utility(self) -> float:
        """Return the net return a signal that came, traded or not."""
        return float(self.gains.mean())


def gain_over(
    a: Judged, b: Judged, seeds: Seeds, *, level: float = 0.95, reps: int = 2000
) -> Interval:
    """Return the gain in utility a signal of one over the other, by a block bootstrap."""
    return mean_interval(a.gains - b.gains, seeds, level=level, reps=reps)


def figures(judged: Judged) -> dict[str, Any]:
    """Return all figures of one model on one part; None where one is not defined."""
    data, taken = judged.data, judged.accepts
    n_taken = int(taken.sum())
    ranking = auc(judged.p, data.y)
    precision = wilson(int(data.y[taken].sum()), n_taken).as_dict() if n_taken else None
    return {
        "n": len(data),
        "log_loss": log_loss(judged.p, data.y, data.weight),
        "brier": brier(judged.p, data.y, data.weight).as_dict(),
        "ece": ece(judged.p, data.y, data.weight),
        "auc": None if ranking is None else ranking.as_dict(),
        "precision": precision,
        "acceptance_rate": wilson(n_taken, len(data)).as_dict(),
        "utility": judged.utility,
    }


def slices(judged: Judged, other: Judged, least: int) -> dict[str, dict[str, float]]:
    """Return each strategy with enough rows: its count, and its gain in utility over another."""
    gain = judged.gains - other.gains
    found = {}
    for name in np.unique(judged.data.groups):
        mine = judged.data.groups == name
        if int(mine.sum()) >= least:
            found[str(name)] = {
                "n": int(mine.sum()),
                "utility": float(judged.gains[mine].mean()),
                "gain": float(gain[mine].mean()),
            }
    return found


def stability(data: Dataset, config: TrainingConfig, seeds: Seeds) -> dict[str, Any] | None:
    """Return the ranking of models refitted on growing pasts, None if there are too few rows."""
    areas = []
    for past, judged in forward_folds(data, config.stability_folds):
        enough = min(len(past), len(judged)) >= FOLD_ROWS
        if not enough or np.ptp(past.y) == 0 or np.ptp(judged.y) == 0:
            return None
        found = auc(grow(past, config, seeds).raw(judged.X), judged.y)
        if found is not None:
            areas.append(found.estimate)
    if not areas:
        return None
    return {"auc": areas, "mean": float(np.mean(areas)), "sd": float(np.std(areas))}


def latency_ms(model: DeskModel, row: Mapping[str, float], clock: Clock) -> dict[str, float]:
    """Return how long one signal takes; wall time, so it never decides anything."""
    taken = []
    for _ in range(LATENCY_CALLS):
        start = clock.monotonic_s()
        model.score(row)
        taken.append(1e3 * (clock.monotonic_s() - start))
    p50, p99 = np.quantile(taken, [0.5, 0.99])
    return {"predict_p50_ms": float(p50), "predict_p99_ms": float(p99)}
