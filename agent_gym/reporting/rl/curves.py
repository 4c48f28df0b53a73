"""Figures over seeds: the curve with its band, the score of an arm, and when a mark was reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval, iqm, iqm_interval, wilson
from agent_gym.evaluation.statistics.profiles import Profile, performance_profile
from agent_gym.evaluation.statistics.survival import Survival, kaplan_meier
from agent_gym.reporting.rl.runs import Arm, Run

SEEDS = Seeds(0).child("training report")  # bands are drawn from, so that equal runs look equal
MOST_BINS = 120
LEAST_SEEDS = 2


class Curve(NamedTuple):
    """The middle of several seeds at each step, and a band where there are two or more."""

    steps: NDArray[np.int64]
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    n: NDArray[np.int64]


class Score(NamedTuple):
    """What an arm reached: over seeds, each the mean of its final episodes."""

    iqm: float
    low: float | None
    high: float | None
    mean: float
    seeds: int


class Reached(NamedTuple):
    """When a run first reached a mark; ``seen`` is False for one that had not by ``step``."""

    step: int
    seen: bool


def score_of(arm: Arm) -> Score | None:
    """Return the interquartile mean over seeds; None without a finished one."""
    scores = arm.scores
    if not scores.size:
        return None
    band = _band(scores)
    low, high = (band.low, band.high) if band else (None, None)
    return Score(iqm(scores), low, high, float(scores.mean()), scores.size)


def share_above(arm: Arm, mark: float) -> Interval | None:
    """Return the share of final episodes of all seeds that reach a mark."""
    rewards = final_rewards(arm)
    return wilson(int((rewards >= mark).sum()), rewards.size) if rewards.size else None


def final_rewards(arm: Arm) -> FloatArray:
    """Return the final episodes of all finished seeds."""
    return np.concatenate([run.rewards for run in arm.finished] or [np.empty(0)])


def learning_curve(arm: Arm) -> Curve:
    """Return the greedy evaluations of all seeds: interquartile mean and 95 % band.

    A seed that stopped early keeps its last mean: leaving it out would pull the curve towards those
    that did not stop. One that is unfinished counts as far as it came.
    """
    curves = [(run, *run.curve) for run in arm.runs if run.curve[0].size]
    steps = np.unique(np.concatenate([each[1] for each in curves] or [np.empty(0, np.int64)]))
    rows = np.full((len(curves), steps.size), np.nan)
    for row, (run, own, means) in zip(rows, curves, strict=True):
        row[:] = np.interp(steps, own, means, left=np.nan, right=_later(run, means))
    return _curve(steps, rows)


def binned(arm: Arm, table: str, column: str) -> Curve | None:
    """Return a column of ``metrics`` or ``training_episodes``: median and range of the seeds.

    None where no run knows it. Means of bins keep what a million steps show in a hundred points.
    """
    tables = [getattr(run, table) for run in arm.runs]
    known = [each for each in tables if {"step", column} <= set(each.columns) and each.height]
    last = max((int(each["step"].max() or 0) for each in known), default=0)
    if not last:
        return None
    n_bins = min(MOST_BINS, max(each.height for each in known))
    edges = np.linspace(0.0, float(last), n_bins + 1)
    rows = np.array([_bins(each, column, edges) for each in known])
    kept = np.isfinite(rows).any(axis=0)
    if not kept.any():
        return None
    rows = rows[:, kept]
    steps = np.rint(edges[1:]).astype(np.int64)[kept]
    middle, low, high = (pick(rows, axis=0) for pick in (np.nanmedian, np.nanmin, np.nanmax))
    return Curve(steps, middle, low, high, np.isfinite(rows).sum(axis=0))


def steps_to(run: Run, mark: float) -> Reached | None:
    """Return the first evaluation whose mean reaches a mark; None without evaluations."""
    steps, means = run.curve
    if not steps.size:
        return None
    at = np.flatnonzero(means >= mark)
    return Reached(int(steps[at[0]]), True) if at.size else Reached(int(steps[-1]), False)


def reached_curve(arm: Arm, mark: float) -> Survival | None:
    """Return Kaplan and Meier's curve of the steps to a mark; None without evaluations."""
    found = [each for each in (steps_to(run, mark) for run in arm.runs) if each is not None]
    if not found:
        return None
    return kaplan_meier([each.step for each in found], [each.seen for each in found])


def episode_profile(arm: Arm, marks: FloatArray) -> Profile | None:
    """Return the share of final episodes above each mark; seeds are resampled, not episodes."""
    rows = [run.rewards for run in arm.finished]
    if not rows:
        return None
    counts = {row.size for row in rows}
    if len(counts) > 1:
        raise DataError(
            "the seeds of an arm have equally many final episodes",
            where=str(arm.runs[0].path.parent),
            found=sorted(counts),
            remedy="Run the seeds with fewer again",
        )
    return performance_profile(np.array(rows)[:, None, :], marks, SEEDS)


def _later(run: Run, means: FloatArray) -> float:
    stopped = run.result is not None and run.result.status == "stopped_early"
    return float(means[-1]) if stopped else np.nan


def _bins(table: pl.DataFrame, column: str, edges: FloatArray) -> FloatArray:
    steps = table["step"].to_numpy()
    values = table[column].cast(pl.Float64, strict=False).to_numpy()
    good = np.isfinite(values)
    place = np.clip(np.searchsorted(edges, steps[good], side="left") - 1, 0, edges.size - 2)
    sums = np.bincount(place, values[good], edges.size - 1)
    counts = np.bincount(place, minlength=edges.size - 1)
    means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def _curve(steps: NDArray[np.int64], rows: FloatArray) -> Curve:
    middle, low, high = (np.full(steps.size, np.nan) for _ in range(3))
    n = np.isfinite(rows).sum(axis=0)
    for at in range(steps.size):
        known = rows[:, at][np.isfinite(rows[:, at])]
        if known.size:
            middle[at] = iqm(known)
        band = _band(known)
        if band is not None:
            low[at], high[at] = band.low, band.high
    return Curve(steps, middle, low, high, n)


def _band(values: FloatArray) -> Interval | None:
    return iqm_interval(values, SEEDS) if values.size >= LEAST_SEEDS else None
