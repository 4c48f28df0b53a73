"""Did a rule protect the desk or cost it? What refused signals would have earned on paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import Outcome
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import mean_interval
from agent_gym.training.desk.arrivals import Arrival
from agent_gym.training.desk.paper import PaperDesk
from agent_gym.training.desk.preparation import payoff_of, profit_over

Verdict: TypeAlias = Literal["protected", "cost", "unclear", "too few"]
LEAST = 30
ALPHA = 0.05
# A repeated or unreadable message is no trade that was missed.
NOT_ASKED = frozenset({RejectCode.DUP_DUPLICATE_ID})


def missed_value(
    found: list[Arrival],
    outcomes: Mapping[str, Outcome],
    paper: PaperDesk,
    when: tuple[float, int],
    seeds: Seeds,
) -> dict[str, dict[str, Any]]:
    """Return by code the mean net return of refused signals, and what that says of the rule.

    A stored paper outcome counts first, then bars. The intervals hold for all codes together: the
    more rules are asked about, the wider they are. ``unknown`` counts signals without an outcome.

    Args:
        found: What came in.
        outcomes: Stored outcomes by signal.
        paper: Settles the others.
        when: The moment up to which bars are known, and the horizon in nanoseconds.
        seeds: Where the resamples come from.
    """
    as_of, horizon_ns = when
    payoffs: defaultdict[str, list[float]] = defaultdict(list)
    unknown: defaultdict[str, int] = defaultdict(int)
    for arrival in found:
        if arrival.code is None or arrival.signal is None or arrival.code in NOT_ASKED:
            continue
        outcome = outcomes.get(arrival.signal.signal_id)
        paid = None
        if outcome is not None and outcome.counterfactual:
            paid = payoff_of(arrival.signal, outcome, profit_over(horizon_ns, outcome))
        if paid is None:
            settled = paper.settle(arrival.signal, arrival.at, horizon_ns, as_of)
            paid = None if isinstance(settled, str) else settled.payoff
        if paid is None:
            unknown[arrival.code.value] += 1
        else:
            payoffs[arrival.code.value].append(paid)
    asked = sum(len(values) >= LEAST for values in payoffs.values())
    level = 1.0 - ALPHA / max(1, asked)
    return {
        code: _judged(payoffs[code], level, seeds.child("missed", code))
        | {"unknown": unknown[code]}
        for code in sorted({*payoffs, *unknown})
    }


def _judged(values: list[float], level: float, seeds: Seeds) -> dict[str, Any]:
    verdict: Verdict = "too few"
    if len(values) < LEAST:
        mean = sum(values) / len(values) if values else None
        return {"n": len(values), "mean": mean, "ci": None, "verdict": verdict}
    found = mean_interval(values, seeds, level=level)
    verdict = "cost" if found.low > 0.0 else "protected" if found.high < 0.0 else "unclear"
    return {
        "n": len(values),
        "mean": found.estimate,
        "ci": found.as_dict(),
        "verdict": verdict,
    }
