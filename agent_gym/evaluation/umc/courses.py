"""Gates A to C: an agent on the paths of known markets, beside the optimum on the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.protocol.failures import failure_of
from agent_gym.evaluation.protocol.nulls import NullRuns, gate_a, lucky_seeds, most_lucky
from agent_gym.evaluation.protocol.seed_job import SeedJob
from agent_gym.evaluation.protocol.verdict import family_level
from agent_gym.evaluation.statistics import Interval, seeds_interval
from agent_gym.evaluation.umc.bounds import BOUNDS, NULLS
from agent_gym.evaluation.umc.figure import GateFigure, counted, failed, measured, ratio
from agent_gym.evaluation.umc.plan import (
    AGENT,
    COURSES,
    Course,
    GatesPlan,
    Judged,
    Letter,
    flat_costs,
)
from agent_gym.rollouts.jobs import Job

SMA = "SMA(24,120)"
PURGE, EMBARGO = 6, 168
ATTAINABLE = ("m1", "m2", "m3", "m3_at_5bp", "m3_at_5bp_by_growth", "m4")
KEPT = ("net_bp", "gross_bp", "exposure", "psr")


def seed_job(
    plan: GatesPlan, course: Course, seed: int, *, beside: tuple[Arm, ...] = ()
) -> SeedJob:
    """Return one path of a course: learned on its first half, tested on its second."""
    own = Arm(label=AGENT, refs=(plan.agent_for(course),), baseline=True)
    return SeedJob(
        market=plan.market(course),
        seed=seed,
        arms=(own, *beside),
        members=(),
        train=None,
        purge=PURGE,
        embargo=EMBARGO,
        config=flat_costs(course.cost_bp),
        cost_bp=course.cost_bp,
        draws=1,
    )


def course_jobs(plan: GatesPlan, names: Sequence[str]) -> dict[str, Job]:
    """Return the paths of several courses by what they are called."""
    sma = tuple(arm for arm in reference_arms(allow_short=True) if arm.label == SMA)
    return {
        f"{name}, seed {seed}": seed_job(
            plan, COURSES[name], seed, beside=sma if name == "m1" else ()
        )
        for name in names
        for seed in plan.numbers(COURSES[name].times)
    }


def by_course(
    plan: GatesPlan, names: Sequence[str], rows: Sequence[dict[str, Any]]
) -> dict[str, Sequence[dict[str, Any]]]:
    """Return the rows of each course; they lie one after the other."""
    found, first = {}, 0
    for name in names:
        count = len(plan.numbers(COURSES[name].times))
        found[name] = rows[first : first + count]
        first += count
    return found


def column(rows: Sequence[dict[str, Any]], arm: str, figure: str) -> FloatArray:
    """Return one figure of an arm, or of the optimum, over seeds."""
    own = [row["optimum"] if arm == "optimum" else row["arms"][arm] for row in rows]
    return np.array([each[figure] for each in own], dtype=np.float64)


def first_failure(rows: Sequence[dict[str, Any]]) -> str | None:
    """Return why the agent has no figures on some seed; None if it has them on all."""
    for row in rows:
        error = failure_of(row["arms"][AGENT])
        if error is not None:
            return str(error)
    return None


def told(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of every seed, without curves."""
    arms: dict[str, Any] = {}
    for label in rows[0]["arms"]:
        error = next((e for e in (failure_of(row["arms"][label]) for row in rows) if e), None)
        arms[label] = (
            {name: [row["arms"][label][name] for row in rows] for name in KEPT}
            if error is None
            else {"failed": error.as_dict()}
        )
    found = {
        "seeds": [row["seed"] for row in rows],
        "fingerprints": [row["fingerprint"] for row in rows],
        "bars": rows[0]["bars"],
        "market_bp": [row["market_bp"] for row in rows],
        "arms": arms,
    }
    if rows[0]["optimum"] is not None:
        found["optimum"] = {"net_bp": column(rows, "optimum", "net_bp").tolist()}
    return found


class Nulls:
    """Gates A and B: nothing earned before costs, luck not taken for skill, hardly a trade."""

    letters: tuple[Letter, ...] = ("A", "B")

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return every path of every null."""
        return course_jobs(plan, NULLS)

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Hold what was earned against the bounds; the four intervals hold together."""
        figures: dict[str, GateFigure] = {}
        details = {}
        for name, own in by_course(plan, NULLS, rows).items():
            details[name] = told(own)
            why = first_failure(own)
            if why is not None:
                letters = ("A", "A", "B", "B")
                parts = ("timing", "gross", "lucky", "net")
                names = [f"{a}.{name}.{b}" for a, b in zip(letters, parts, strict=True)]
                figures |= {each: failed(each, len(own), why) for each in names}
                continue
            figures |= _null_figures(name, own, Seeds(plan.first_seed).child("gates", name))
        return Judged(figures, details)


def _null_figures(name: str, rows: Sequence[dict[str, Any]], seeds: Seeds) -> dict[str, GateFigure]:
    psr = [row["arms"][AGENT]["psr"] for row in rows]
    runs = NullRuns(
        gross_bp=column(rows, AGENT, "gross_bp"),
        net_bp=column(rows, AGENT, "net_bp"),
        exposure=column(rows, AGENT, "exposure"),
        market_bp=np.array([row["market_bp"] for row in rows]),
        psr=psr,
    )
    level = family_level(len(NULLS))
    timing = gate_a(runs, seeds.child("timing"), level)
    told_by = timing.figures
    ends = Interval(*(told_by[part] for part in ("estimate", "low", "high", "level")))
    plain = Interval(told_by["gross_bp"], told_by["gross_low"], told_by["gross_high"], ends.level)
    net = seeds_interval(runs.net_bp, seeds.child("net"))
    idle = sum(value is None for value in psr)
    lucky = counted(f"B.{name}.lucky", lucky_seeds(psr), len(rows), f"{idle} seeds never traded")
    return {
        f"A.{name}.timing": measured(f"A.{name}.timing", ends, len(rows), timing.why),
        f"A.{name}.gross": measured(f"A.{name}.gross", plain, len(rows)),
        f"B.{name}.lucky": _at_most(lucky, most_lucky(len(rows))),
        f"B.{name}.net": measured(f"B.{name}.net", net, len(rows)),
    }


def _at_most(found: GateFigure, most: int) -> GateFigure:
    bound = replace(found.bound, value=float(most))
    return replace(found, bound=bound)


class Attainable:
    """Gate C: how much of what can be earned is earned, and whether a moving average earns less."""

    letters: tuple[Letter, ...] = ("C",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return every path of every market with something to find."""
        return course_jobs(plan, ATTAINABLE)

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Hold the shares against the bounds."""
        figures: dict[str, GateFigure] = {}
        details = {}
        for name, own in by_course(plan, ATTAINABLE, rows).items():
            details[name] = told(own)
            why = first_failure(own)
            if why is not None:
                figures |= {each: failed(each, len(own), why) for each in _names(name)}
                continue
            figures |= _share_figures(name, own, Seeds(plan.first_seed).child("gates", name))
        return Judged(figures, details)


def _share_figures(
    name: str, rows: Sequence[dict[str, Any]], seeds: Seeds
) -> dict[str, GateFigure]:
    net, best = column(rows, AGENT, "net_bp"), column(rows, "optimum", "net_bp")
    words = f"{net.mean():.3f} of {best.mean():.3f} bp a bar on the same paths"
    if not best.mean() > 0.0:
        words += ": there was nothing to take"
        return {each: failed(each, len(rows), words) for each in _names(name)}
    found = ratio(f"C.{name}.share", (net, best), seeds.child("share"), words)
    figures = {f"C.{name}.share": found}
    if name == "m1":
        ahead = seeds_interval(net - column(rows, SMA, "net_bp"), seeds.child("sma"))
        low = replace(found, value=found.low, bound=BOUNDS["C.m1.share_low"], words="")
        figures["C.m1.share_low"] = low
        figures["C.m1.over_sma"] = measured("C.m1.over_sma", ahead, len(rows))
    return figures


def _names(name: str) -> list[str]:
    more = ["C.m1.share_low", "C.m1.over_sma"] if name == "m1" else []
    return [f"C.{name}.share", *more]
