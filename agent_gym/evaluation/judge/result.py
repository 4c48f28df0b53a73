"""What came of judging: passes with their scores or failures, and the judgment of a group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.evaluation.judge.backend import FailureKind


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a question came to nothing."""

    kind: FailureKind
    words: str


@dataclass(frozen=True, slots=True)
class PassResult:
    """One pass over a group: scores of all its trajectories, or why there are none.

    Attributes:
        number: Which pass it was, from 0.
        scores: By trajectory; empty if a question of the pass failed.
        explanations: What the judge said of each.
        failures: What went wrong.
        requests: Questions that were really asked.
        repaired: Answers that could be used only at the second try.
        cached: Answers that were known already.
    """

    number: int
    scores: dict[str, float] = field(default_factory=dict)
    explanations: dict[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    requests: int = 0
    repaired: int = 0
    cached: int = 0

    @property
    def good(self) -> bool:
        """Whether every trajectory has a score."""
        return not self.failures


@dataclass(frozen=True, slots=True)
class GroupJudgment:
    """What a judge thinks of a group.

    Attributes:
        group_id: The group.
        passes: All passes, good and failed.
        representatives: One trajectory for each different record.
        scores: The mean over the good passes, by trajectory; empty if the group was not judged.
        reason: Why it was not judged.
    """

    group_id: str
    passes: tuple[PassResult, ...]
    representatives: tuple[str, ...]
    scores: dict[str, float] = field(default_factory=dict)
    reason: str | None = None

    @property
    def judged(self) -> bool:
        """Whether there are scores."""
        return self.reason is None

    @property
    def good_passes(self) -> tuple[PassResult, ...]:
        """The passes that count."""
        return tuple(one for one in self.passes if one.good)

    def ranks(self) -> dict[str, int]:
        """Return the rank of each trajectory, 1 for the best; equal scores share one."""
        values = list(self.scores.values())
        return {name: 1 + sum(v > score for v in values) for name, score in self.scores.items()}

    def normalized(self) -> dict[str, float | None]:
        """Return how many standard deviations each lies above its group; None if all are equal."""
        if not self.scores:
            return {}
        values = np.array(list(self.scores.values()))
        spread = float(values.std())
        if np.ptp(values) <= 1e-9:
            return dict.fromkeys(self.scores)
        mean = float(values.mean())
        return {name: (score - mean) / spread for name, score in self.scores.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "group_id": self.group_id,
            "judged": self.judged,
            "reason": self.reason,
            "scores": self.scores,
            "ranks": self.ranks(),
            "different_records": len(self.representatives),
            "passes": len(self.passes),
            "good_passes": len(self.good_passes),
            "failures": [
                {"pass": one.number, "kind": bad.kind, "words": bad.words}
                for one in self.passes
                for bad in one.failures
            ],
        }
