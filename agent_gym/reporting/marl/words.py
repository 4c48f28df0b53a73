"""Rows and sentences about teams, the same at a terminal and on a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from agent_gym.evaluation.marl.ablation import AREA, FINAL, LEVEL, STEPS
from agent_gym.reporting.canvas import steps_text
from agent_gym.reporting.text import DASH, chance, many, number

ARM_HEADS = (
    "algorithm",
    "seeds",
    "final wins",
    "worst seed",
    "best look",
    "its worst seed",
    "mean over steps",
    "steps to 80 %",
    "steps to 95 %",
    "CPU s",
)
RATIO_HEADS = ("steps of", "over those of", "to", "ratio", "95 %", "pairs", "open pairs")
DIFFERENCE_HEADS = ("task", "arm", "figure", "difference", "95 %", "p (Holm)", "seeds", "")
SPENT_HEADS = ("algorithm", "seeds", "auxiliary steps, share of all", "weight of the bonus")
BRIEF = ("algorithm", "seeds", "final wins", "mean over steps", "steps to 80 %", "CPU s")
"""What fits a terminal."""
OVER_TIME = {
    "calibration": "calibration",
    "information": "information, nats",
    "model_r2": "model: R2 of held-out battles",
    "ess": "effective share of auxiliary rows",
    "cem_kl": "divergence of auxiliary teams, nats",
    "lambda_info": "weight of the bonus",
}
"""What is told of every iteration, and what a reader calls it."""
SHORT = {AREA: "mean over steps", FINAL: "final wins", STEPS: "steps to 80 %"}


def percent(share: float | None) -> str:
    """Return a share as people say it.

    Example:
        >>> percent(0.9512), percent(1.0), percent(None)
        ('95.1 %', '100 %', '-')
    """
    return DASH if share is None else f"{100.0 * share:.3g} %"


def percent_interval(found: Mapping[str, Any]) -> str:
    """Return an estimate of a share and its interval."""
    middle = percent(found["estimate"])
    if found["low"] is None:
        return middle
    return f"{middle} ({100.0 * found['low']:.3g}-{100.0 * found['high']:.3g})"


def time_words(found: Mapping[str, Any]) -> str:
    """Return the median of steps with its interval, and how many seeds got there if not all did.

    Example:
        >>> median = {"estimate": 56000.0, "low": 48000.0, "high": None}
        >>> time_words({"median": median, "reached": 8, "not_reached": 2})
        '56k (48k-?), 8 of 10'
        >>> nobody = {"estimate": None, "low": None, "high": None}
        >>> time_words({"median": nobody, "reached": 2, "not_reached": 8})
        '2 of 10'
    """
    median, lacking = found["median"], found["not_reached"]
    there = f"{found['reached']} of {found['reached'] + lacking}"
    if median["estimate"] is None:
        return there
    ends = "-".join(
        "?" if median[end] is None else steps_text(median[end]) for end in ("low", "high")
    )
    words = f"{steps_text(median['estimate'])} ({ends})"
    return f"{words}, {there}" if lacking else words


def arm_row(arm: str, own: Mapping[str, Any], cpu_s: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the row of an arm on a task."""
    spent, best = cpu_s.get(arm, ()), own.get("best")
    return [
        arm,
        str(len(own["seeds"])),
        percent_interval(own["final"]),
        percent(own["worst_seed"]),
        DASH if best is None else percent_interval(best),
        DASH if best is None else percent(best["worst_seed"]),
        percent_interval(own["area"]),
        *(time_words(found) for found in own["steps_to"].values()),
        f"{sum(spent) / len(spent):.0f}" if spent else DASH,
    ]


def spent_rows(task: Mapping[str, Any]) -> list[list[str]]:
    """Return what each arm of AMAL's kind has spent; none where nobody told, as on older pages."""
    return [
        [
            arm,
            str(len(own["seeds"])),
            extent_words(own["spent"]["auxiliary_share"], percent),
            extent_words(own["spent"]["bonus_weight"], number),
        ]
        for arm, own in task["arms"].items()
        if own.get("spent") is not None
    ]


def extent_words(found: Mapping[str, float], say: Callable[[float], str]) -> str:
    """Return a median over seeds, and the smallest and the largest where they differ.

    Example:
        >>> extent_words({"median": 0.2, "least": 0.1, "most": 0.25}, percent)
        '20 % (10 % to 25 %)'
    """
    middle, low, high = (say(found[name]) for name in ("median", "least", "most"))
    return middle if low == high else f"{middle} ({low} to {high})"


def look_words(task: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return how far apart the looks of a task are, by arm where arms differ.

    Example:
        >>> run = {"task": "3m", "arm": "mappo", "curve": [[8000, 1, 4], [16000, 2, 4]]}
        >>> look_words("3m", [run])
        'Looks are about 8k steps apart, and times are no finer.'
    """
    gaps: dict[str, list[int]] = {}
    for run in runs:
        steps = [0, *(look[0] for look in run["curve"])]
        if run["task"] == task and len(steps) > 1:
            gaps.setdefault(run["arm"], []).extend(b - a for a, b in pairwise(steps))
    usual = {arm: steps_text(round(fmean(own), -2)) for arm, own in gaps.items()}
    if not usual:
        return ""
    if len(set(usual.values())) == 1:
        return f"Looks are about {next(iter(usual.values()))} steps apart, and times are no finer."
    each = ", ".join(f"{gap} ({arm})" for arm, gap in usual.items())
    return (
        f"Looks are {each} steps apart: who is looked at more often is seen earlier, so these "
        "times do not compare."
    )


def ratio_row(one: Mapping[str, Any]) -> list[str]:
    """Return the row of a ratio; what is open is said to be."""
    middle = (
        f"{one['estimate']:.2f}" if one["estimate"] is not None else _stretch(one, "least", "most")
    )
    above, below = one["open_above"], one["open_below"]
    return [
        one["arm"],
        one["against"],
        f"{100 * one['win_rate']:.0f} %",
        middle,
        _stretch(one, "low", "high"),
        str(one["pairs"]),
        f"{above} above, {below} below" if above or below else "none",
    ]


def _stretch(one: Mapping[str, Any], low: str, high: str) -> str:
    if one[high] is None:
        return f"above {one[low]:.2f}" if one[low] > 0.0 else "open"
    return f"{one[low]:.2f} to {one[high]:.2f}" if one[low] > 0.0 else f"below {one[high]:.2f}"


def verdict_words(task: Mapping[str, Any]) -> list[str]:
    """Return one sentence an arm; there is none for the controls themselves."""
    return [_verdict(arm, one) for arm, one in task["verdicts"].items()]


def _verdict(arm: str, one: Mapping[str, Any]) -> str:
    said = {
        "beats": f"{arm} beats MAPPO and MAPPO with reuse",
        "matches": f"{arm} matches MAPPO",
        "not shown": f"{arm}: not shown to match MAPPO",
    }
    return f"{said[one['word']]} ({one['why']})."


def difference_row(one: Mapping[str, Any]) -> list[str]:
    """Return the row of a difference between an arm and the whole."""
    return [
        one["task"],
        one["arm"],
        SHORT[one["metric"]],
        _gap(one["metric"], one["estimate"]),
        f"{_gap(one['metric'], one['low'])} to {_gap(one['metric'], one['high'])}",
        chance(one["p_holm"]),
        str(one["seeds"]),
        "differs" if one["shown"] else "",
    ]


def _gap(metric: str, value: float) -> str:
    """Return a difference in points of per cent, that of logarithms as a change of steps."""
    if metric == STEPS:
        return f"{value:+.2f}"
    return f"{100.0 * value:+.1f}"


def idle_words(document: Mapping[str, Any]) -> str:
    """Say which arms change nothing, and of which the seeds are too few to say so."""
    few, least = document["too_few_seeds"], document["fewest_seeds"]
    arms = list(dict.fromkeys(one["arm"] for one in document["comparisons"]))
    if arms and set(arms) <= set(few):
        return f"There are too few seeds to say that a part does nothing: {least} are needed."
    idle = ", ".join(_still_possible(name, document) for name in document["idle"]) or "none"
    words = (
        "Arms whose interval holds 0 in every figure on every task, so that what they change is "
        f"not shown to do anything, with what their final wins may still be off by: {idle}."
    )
    return f"{words} Too few seeds to say so: {', '.join(few)}." if few else words


def _still_possible(arm: str, document: Mapping[str, Any]) -> str:
    """Return an arm with the interval of its final wins: what is not shown need not be nothing."""
    own = [
        f"{_gap(FINAL, one['low'])} to {_gap(FINAL, one['high'])}"
        for one in document["comparisons"]
        if (one["arm"], one["metric"]) == (arm, FINAL)
    ]
    return f"{arm} ({'; '.join(own)} points)"


def power_words(document: Mapping[str, Any]) -> str:
    """Say how many differences had no chance to be told from nothing, however large they are.

    Pairs that are equal say nothing, and a p-value is multiplied by how many are asked for.

    Example:
        >>> one = {"metric": "final", "differences": [0.0, 0.1, 0.2, 0.0]}
        >>> power_words({"comparisons": [one, one]})
        '2 of them had no chance of it: too few pairs differ at all.'
    """
    found = document["comparisons"]
    asked = Counter(one["metric"] for one in found)
    hopeless = sum(
        asked[one["metric"]] * 2.0 ** (1 - sum(gap != 0.0 for gap in one["differences"])) >= LEVEL
        for one in found
    )
    return f"{hopeless} of them had no chance of it: too few pairs differ at all."


def seeds_words(own: Mapping[str, Any]) -> str:
    """Return how many seeds win nearly always from fresh starts."""
    good, best = own["seeds_above"]["0.95"], own.get("best")
    words = f"{good} of {many(len(own['seeds']), 'seed')} win at least 95 % of fresh starts"
    if best is None:
        return words
    return f"{words}, {best['seeds_above']['0.95']} with the team of their best look"
