"""Several diagnoses as one: every figure over seeds, beside the bounds that it must keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import seeds_interval

SEEDS = Seeds(0).child("diagnosis of a team")
EVERY_SEED = ("leaks", "canary", "canary_notices_forgery", "information_least", "sign_test")
"""What a single seed can spoil: here no mean is taken, the worst seed counts."""
BY_INTERVAL = ("elite_gain",)
"""What luck alone shows in every other training: the interval over seeds must keep the bound. A
training has two to four generations, so there is no interval over those."""


def over_seeds(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return every figure as a mean over seeds, with its interval and whether it keeps its bounds.

    Args:
        reports: One a seed, each with ``figures`` by name: ``value``, the bounds ``low`` and
            ``high`` (either may be None), ``bound`` in words, ``passed``.
    """
    if not reports:
        raise DataError("there is nothing to diagnose", found="no reports")
    names = list(reports[0]["figures"])
    if any(list(report["figures"]) != names for report in reports):
        raise DataError("the seeds have different figures", expected=names)
    return {name: _figure(name, [report["figures"][name] for report in reports]) for name in names}


def _figure(name: str, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seen = [float(one["value"]) for one in found if one["value"] is not None]
    passed = sum(bool(one["passed"]) for one in found)
    mean = float(np.mean(seen)) if seen else None
    interval = seeds_interval(seen, SEEDS.child(name)) if len(seen) > 1 else None
    low, high = found[0]["low"], found[0]["high"]
    judged = (
        [mean] if interval is None or name not in BY_INTERVAL else [interval.low, interval.high]
    )
    holds = len(seen) == len(found) and all(_within(each, low, high) for each in judged)
    return {
        "value": mean,
        "interval": None if interval is None else [interval.low, interval.high],
        "low": low,
        "high": high,
        "bound": found[0]["bound"],
        "passed": holds and (name not in EVERY_SEED or passed == len(found)),
        "seeds": len(found),
        "seeds_passed": passed,
        "by_seed": [one["value"] for one in found],
    }


def _within(value: float | None, low: float | None, high: float | None) -> bool:
    return value is not None and (low is None or value >= low) and (high is None or value <= high)
