"""What an experiment says: figures of each arm with intervals, and each arm against the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import PermutationMethod, mannwhitneyu

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import (
    Survival,
    holm,
    iqm,
    iqm_interval,
    kaplan_meier,
    log_rank,
    performance_profile,
    probability_of_improvement_interval,
    seeds_interval,
)
from agent_gym.training.rl.run_records import ArmRuns, RunRecord

SCHEMA = "agent_gym.experiment/1"
MARKS = 41
DEALINGS = 9999
SEEDS = Seeds(20_261_116).child("experiment")
FEW = 5
OVERSHOT = 1.05  # times the steps asked for, from which on it is said


@dataclass(frozen=True, slots=True)
class Ask:
    """How figures are made of runs.

    Attributes:
        threshold: Mean return whose first reaching is counted in steps; None: not asked.
        level: Probability of the intervals.
        resamples: Of each bootstrap.
    """

    threshold: float | None = None
    level: float = 0.95
    resamples: int = 10_000


def summarize(arms: Sequence[ArmRuns], ask: Ask) -> dict[str, Any]:
    """Return all figures as plain values; every one is made of the files of the runs alone."""
    marks = _marks(arms)
    told = [_arm(arm, marks, ask) for arm in arms]
    for row, compared in zip(told[1:], _against_first(arms, ask), strict=True):
        row["against_first"] = compared
    return {
        "schema": SCHEMA,
        "status": "complete" if all(not _unfinished(arm) for arm in arms) else "partial",
        "threshold": ask.threshold,
        "level": ask.level,
        "arms": told,
        "notes": _notes(arms),
    }


def metrics_rows(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the main figures of a summary, a flat row an arm."""
    rows = []
    for arm in summary["arms"]:
        score, reached = arm["iqm"], arm["steps_to_threshold"]
        rows.append(
            {
                "arm": arm["name"],
                "algo": arm["algo"],
                "env": arm["env"],
                "steps": arm["steps"],
                "seeds": arm["n"],
                "failed": arm["failed"],
                "iqm": score["estimate"] if score else None,
                "low": score["low"] if score else None,
                "high": score["high"] if score else None,
                "mean": arm["mean"]["estimate"] if arm["mean"] else None,
                "median_steps": reached["median"]["estimate"] if reached else None,
                "reached": reached["reached"] if reached else None,
                "cpu_s": arm["cpu_s"],
            }
        )
    return rows


def _arm(arm: ArmRuns, marks: FloatArray, ask: Ask) -> dict[str, Any]:
    seeds, scores = SEEDS.child(arm.name), arm.scores()
    first = next((run.result for run in arm.finished if run.result is not None), None)
    costs = [run.result for run in arm.finished if run.result is not None]
    return {
        "name": arm.name,
        "overrides": arm.overrides,
        "algo": None if first is None else first.algo,
        "env": None if first is None else first.env,
        "steps": None if first is None else first.config.get("steps"),
        "n": len(scores),
        "failed": sum(run.status == "error" for run in arm.runs),
        "missing": sum(run.status in ("missing", "interrupted") for run in arm.runs),
        "iqm": _interval(scores, iqm_interval, seeds, ask),
        "mean": _interval(scores, seeds_interval, seeds, ask),
        "best": max(scores, default=None),
        "worst": min(scores, default=None),
        "profile": _profile(arm, marks, seeds, ask),
        "steps_to_threshold": _steps(arm, ask),
        "cpu_s": _sum([result.cpu_s for result in costs]),
        "wall_s": _sum([result.wall_s for result in costs]),
        "runs": [_run(run, ask) for run in arm.runs],
        "against_first": None,
    }


def _interval(scores: list[float], interval: Any, seeds: Seeds, ask: Ask) -> dict[str, Any] | None:
    """Return an interval over seeds; a single seed has a figure and no interval."""
    if not scores:
        return None
    if len(scores) == 1:
        return {"estimate": iqm(scores), "low": None, "high": None, "level": ask.level}
    found: dict[str, Any] = interval(scores, seeds, reps=ask.resamples, level=ask.level).as_dict()
    return found


def _profile(arm: ArmRuns, marks: FloatArray, seeds: Seeds, ask: Ask) -> dict[str, Any] | None:
    """Return the share of final episodes above each mark; a seed is resampled with all its own."""
    played = [run.final for run in arm.finished if run.final]
    if not played or not marks.size:
        return None
    shortest = min(map(len, played))
    table = np.array([final[:shortest] for final in played])[:, None, :]
    return performance_profile(
        table, marks, seeds, reps=min(ask.resamples, 2000), level=ask.level
    ).as_dict()


def _steps(arm: ArmRuns, ask: Ask) -> dict[str, Any] | None:
    """Return when runs first reached the threshold; those that have not are censored, not gone."""
    if ask.threshold is None:
        return None
    watched = _watched(arm, ask.threshold)
    if not watched:
        return None
    times, reached = zip(*watched, strict=True)
    curve = kaplan_meier(times, reached, level=ask.level)
    return {
        "threshold": ask.threshold,
        "n": curve.n,
        "reached": curve.n - curve.censored,
        "censored": curve.censored,
        "median": curve.median().as_dict(),
        "curve": _points(curve),
    }


def _points(curve: Survival) -> dict[str, list[Any]]:
    return {
        "steps": curve.times.tolist(),
        "at_risk": curve.at_risk.tolist(),
        "not_yet": curve.share.tolist(),
        "low": [None if math.isnan(value) else value for value in curve.low.tolist()],
        "high": [None if math.isnan(value) else value for value in curve.high.tolist()],
    }


def _watched(arm: ArmRuns, threshold: float) -> list[tuple[int, bool]]:
    """Return the runs that have ended; one that is still under way is not evidence yet."""
    ended = [run for run in arm.runs if run.finished or run.status == "error"]
    looked = [run.first_reaching(threshold) for run in ended]
    return [each for each in looked if each is not None]


def _against_first(arms: Sequence[ArmRuns], ask: Ask) -> list[dict[str, Any] | None]:
    """Return each other arm against the first, the p-values corrected for all of them together."""
    first, *others = arms
    found = [_pair(first, arm, ask) for arm in others]
    for name in ("improvement", "steps"):
        rows = [row[name] for row in found if row is not None and row[name] is not None]
        for row, corrected in zip(rows, holm([row["p"] for row in rows]).tolist(), strict=True):
            row["p_holm"] = corrected
    return found


def _pair(first: ArmRuns, arm: ArmRuns, ask: Ask) -> dict[str, Any] | None:
    ours, theirs = arm.scores(), first.scores()
    if min(len(ours), len(theirs)) < 2:
        return None
    seeds = SEEDS.child(first.name, arm.name)
    chance = probability_of_improvement_interval(
        ours, theirs, seeds, reps=min(ask.resamples, 2000), level=ask.level
    )
    return {
        "first": first.name,
        "difference_of_iqm": iqm(ours) - iqm(theirs),
        "improvement": chance.as_dict() | {"p": rank_test(ours, theirs, seeds), "p_holm": None},
        "steps": _pair_of_steps(first, arm, ask, seeds),
    }


def rank_test(ours: Sequence[float], theirs: Sequence[float], seeds: Seeds) -> float:
    """Return the two-sided p-value that either side is as likely to be ahead.

    Dealings of the seeds to the two sides are counted, all of them if they are few, so it holds for
    five seeds too; with n seeds a side it cannot be below 2 / C(2n, n).
    """
    method = PermutationMethod(n_resamples=DEALINGS, rng=seeds.child("rank test").rng())
    return float(mannwhitneyu(ours, theirs, method=method).pvalue)


def _pair_of_steps(first: ArmRuns, arm: ArmRuns, ask: Ask, seeds: Seeds) -> dict[str, Any] | None:
    if ask.threshold is None:
        return None
    ours, theirs = _watched(arm, ask.threshold), _watched(first, ask.threshold)
    if not ours or not theirs:
        return None
    sides = [list(zip(*side, strict=True)) for side in (ours, theirs)]
    found = log_rank(*sides[0], *sides[1], seeds=seeds)
    if found is None:
        return None
    return {"log_rank": found.statistic, "p": found.permutation_p, "p_holm": None}


def _run(run: RunRecord, ask: Ask) -> dict[str, Any]:
    result = run.result
    reached = None if ask.threshold is None else run.first_reaching(ask.threshold)
    told: dict[str, Any] = {
        "seed": run.seed,
        "status": run.status,
        "folder": str(run.folder),
        "score": run.score,
        "first_reached": reached[0] if reached is not None and reached[1] else None,
        "last_look": run.looks[-1][0] if run.looks else None,
    }
    for name in ("steps", "best_step", "best_mean", "share_above_200", "cpu_s", "wall_s", "error"):
        told[name] = None if result is None else getattr(result, name)
    return told


def _marks(arms: Sequence[ArmRuns]) -> FloatArray:
    """Return scores from the worst episode of all arms to the best: one scale for every profile."""
    episodes = [reward for arm in arms for run in arm.finished for reward in run.final]
    if not episodes:
        return np.empty(0)
    return np.linspace(min(episodes), max(episodes), MARKS)


def _notes(arms: Sequence[ArmRuns]) -> list[str]:
    notes = []
    counts = [len(arm.scores()) for arm in arms]
    if min(counts) < FEW:
        has = "one seed" if min(counts) == 1 else f"{min(counts)} seeds"
        notes.append(f"an arm has {has}; {FEW} or more are needed for a claim")
    results = [run.result for arm in arms for run in arm.finished if run.result is not None]
    told = {each.config.get("steps") for each in results}
    if len(told) > 1:
        notes.append("arms were trained for different numbers of steps")
    beyond = [each for each in results if each.steps > OVERSHOT * each.config.get("steps", np.inf)]
    if beyond:
        most = max(beyond, key=lambda each: each.steps)
        notes.append(
            f"{most.steps:,} steps were taken where {most.config['steps']:,} were asked for: an "
            "iteration is not cut"
        )
    if any(run.status == "stopped_early" for arm in arms for run in arm.runs):
        notes.append("some runs stopped early, so their steps to the threshold are censored there")
    failed = sum(run.status == "error" for arm in arms for run in arm.runs)
    if failed:
        runs = "one run failed and has" if failed == 1 else f"{failed} runs failed and have"
        notes.append(f"{runs} no score; the figures are of the others")
    return notes


def _unfinished(arm: ArmRuns) -> bool:
    return any(run.status in ("missing", "interrupted") for run in arm.runs)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
