"""How far a judge can be trusted: asked again, asked in another order, held against the truth.

The group is the unit: all intervals come from resampling groups, since the pairs of one group
depend on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge.agreement import (
    flip_rate,
    pairwise_accuracy,
    rank_correlation,
    tie_share,
)
from agent_gym.evaluation.judge.backend import FAILURES
from agent_gym.evaluation.judge.judge import RelativeJudge
from agent_gym.evaluation.judge.records import CandidateGroup
from agent_gym.evaluation.judge.result import GroupJudgment, PassResult
from agent_gym.evaluation.statistics import Interval, seeds_interval
from agent_gym.rollouts.batch import Progress

FIGURES = (
    "pairwise_accuracy",
    "single_pass_accuracy",
    "kendall_tau",
    "stability_tau",
    "score_spread",
    "order_flip_rate",
    "repeat_flip_rate",
    "tie_share",
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found of a judge.

    Attributes:
        model: Who was asked.
        version: With which settings.
        hindsight: Whether it knew how trajectories ended.
        groups: Groups that were shown.
        failed: Groups without a judgment, by id, with the reason.
        counts: Records, questions, repairs, answers from the cache, and failures by kind.
        figures: Means over groups with their intervals; None where nothing defines them.
    """

    model: str
    version: str
    hindsight: bool
    groups: int
    failed: dict[str, str]
    counts: dict[str, int]
    figures: dict[str, Interval | float | None]

    @property
    def sentence(self) -> str:
        """What it comes to, in words."""
        found = self.figures["pairwise_accuracy"]
        if not isinstance(found, Interval):
            return "too few groups were judged to say anything"
        said = (
            f"{found.estimate:.1%} of pairs in the true order ({found.low:.1%} to {found.high:.1%})"
        )
        if found.low > 0.5:
            return f"better than chance: {said}"
        return (
            f"{'worse than' if found.high < 0.5 else 'not shown to be better than'} chance: {said}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "judge": {"model": self.model, "version": self.version, "hindsight": self.hindsight},
            "groups": self.groups,
            "failed": self.failed,
            "counts": self.counts,
            "figures": {
                name: value.as_dict() if isinstance(value, Interval) else value
                for name, value in self.figures.items()
            },
            "sentence": self.sentence,
        }


def calibrate(
    judge: RelativeJudge,
    groups: Sequence[CandidateGroup],
    truth: Mapping[str, Mapping[str, float]],
    progress: Progress | None = None,
) -> Calibration:
    """Let a judge judge groups whose truth is known.

    Every group is also shown once more in the order of the first pass: what changes then is noise,
    what changes in the reverse order beyond that is a liking for places.

    Args:
        judge: Who is looked at; at least two passes, so that there is another order.
        groups: What it is shown.
        truth: What each trajectory came to, by group and id.
        progress: Is told of every group.
    """
    check_judge(judge)
    if len(groups) < 2:
        raise ConfigError("too few groups", found=len(groups), expected="at least 2")
    shown, repeats, rows = [], [], []
    for place, group in enumerate(groups):
        judgment, repeat = judge.judge(group), judge.again(group)
        shown.append(judgment)
        repeats.append(repeat)
        if judgment.judged:
            rows.append(figures_of(judgment, repeat, _known(truth, group)))
        if progress is not None:
            progress(place + 1, len(groups), {"status": "ok" if judgment.judged else "failed"})
    seeds = Seeds(judge.config.seed).child("calibration")
    return Calibration(
        judge.model,
        judge.version,
        judge.knows_outcomes,
        len(groups),
        {one.group_id: one.reason for one in shown if one.reason is not None},
        _counts(shown, repeats),
        {name: _mean([row[name] for row in rows], seeds.child(name)) for name in FIGURES},
    )


def check_judge(judge: RelativeJudge) -> None:
    """Refuse a judge that shows every group in one order alone."""
    if judge.config.passes < 2:
        raise ConfigError("one pass has no other order", where="passes", expected="at least 2")


def figures_of(
    judgment: GroupJudgment, repeat: PassResult, truth: Mapping[str, float]
) -> dict[str, float | None]:
    """Return the figures of one group, over its different records."""
    names = judgment.representatives
    real = [truth[name] for name in names]
    passes = {one.number: [one.scores[name] for name in names] for one in judgment.good_passes}
    mean = [judgment.scores[name] for name in names]
    again = [repeat.scores[name] for name in names] if repeat.good else None
    pairs = [(a, a + 1) for a in passes if a % 2 == 0 and a + 1 in passes]
    return {
        "pairwise_accuracy": pairwise_accuracy(mean, real),
        "single_pass_accuracy": _average([pairwise_accuracy(one, real) for one in passes.values()]),
        "kendall_tau": rank_correlation(mean, real),
        "stability_tau": _average(
            [rank_correlation(a, b) for a, b in combinations(passes.values(), 2)]
        ),
        "score_spread": float(np.mean(np.std(list(passes.values()), axis=0))),
        "order_flip_rate": _average([flip_rate(passes[a], passes[b]) for a, b in pairs]),
        "repeat_flip_rate": flip_rate(passes[0], again) if again and 0 in passes else None,
        "tie_share": tie_share(mean),
    }


def _known(truth: Mapping[str, Mapping[str, float]], group: CandidateGroup) -> dict[str, float]:
    known = truth.get(group.group_id, {})
    missing = [one.id for one in group.candidates if one.id not in known]
    if missing:
        raise DataError(
            "the truth of a trajectory is not known", where=group.group_id, found=missing[0]
        )
    return dict(known)


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _mean(values: Sequence[float | None], seeds: Seeds) -> Interval | float | None:
    """Return the mean over groups with its interval; without one if there is a single group."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    return seeds_interval(known, seeds, reps=2_000)


def _counts(shown: Sequence[GroupJudgment], repeats: Sequence[PassResult]) -> dict[str, int]:
    passes = [*(each for one in shown for each in one.passes), *repeats]
    kinds = Counter(bad.kind for one in passes for bad in one.failures)
    return {
        "records": sum(len(one.representatives) for one in shown),
        "passes": len(passes),
        "failed_passes": sum(not one.good for one in passes),
        "requests": sum(one.requests for one in passes),
        "repaired": sum(one.repaired for one in passes),
        "cached": sum(one.cached for one in passes),
    } | {kind: kinds[kind] for kind in FAILURES}
