"""The judge that knows: it scores by what trajectories really came to.

It is the default, needs no network, and is what other judges are measured against. It sees nothing
but hindsight, and says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.judge.backend import JudgeRequest

RETURN = "total_reward"


@dataclass(frozen=True, slots=True)
class TruthBackend:
    """Scores a record by its place between the worst and the best of its group.

    Attributes:
        truth: What every trajectory came to, by group and id.
        measure: The name of that figure.
    """

    truth: Mapping[str, Mapping[str, float]]
    measure: str = RETURN
    model: str = "ground-truth"
    reads: Literal["outcomes"] = "outcomes"

    @property
    def version(self) -> str:
        """The hash of what it goes by."""
        return fingerprint(["worst 0, best 1", self.measure])

    def answer(self, request: JudgeRequest) -> str:
        """Return the scores; 0.5 each if the whole group came to the same."""
        known = self.truth.get(request.group_id)
        if known is None:
            raise DataError("nothing is known of a group", where=request.group_id)
        worst, best = min(known.values()), max(known.values())
        scores = []
        for label, ids in request.labels.items():
            value = float(np.mean([_known(known, name) for name in ids]))
            score = (value - worst) / (best - worst) if best > worst else 0.5
            words = f"{self.measure} {value:.6g} of {worst:.6g} to {best:.6g}"
            scores.append({"id": label, "score": min(max(score, 0.0), 1.0), "explanation": words})
        return json.dumps({"scores": scores}, allow_nan=False)


def measured(total_reward: float | None, metrics: Mapping[str, Any], measure: str) -> float:
    """Return the named figure of a trajectory: its return, or a metric such as ``a.b``."""
    found: Any = total_reward
    if measure != RETURN:
        found = metrics
        for part in measure.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise DataError(
            "a trajectory does not tell the figure it should be judged by",
            where=measure,
            found=repr(found),
            remedy=f"Take {RETURN!r}, or a metric that was recorded with every trajectory",
        )
    return float(found)


def _known(known: Mapping[str, float], name: str) -> float:
    if name not in known:
        raise DataError("nothing is known of a trajectory", where=name)
    return known[name]
