"""Which tolerance judges when a suite has changed it: the one that lets less pass."""

from __future__ import annotations

from agent_gym.evaluation.scenarios.metric import Metric, Tolerance


def stricter(old: Metric, new: Metric, size: float) -> tuple[Metric, str]:
    """Return the candidate's metric with the tolerance that judges, and what to tell of it.

    A tolerance that is wider than the baseline's does not count before the baseline is approved
    anew; otherwise a loss could be made to vanish by the very change that brings it. A narrower
    one counts at once.

    Args:
        old: The metric as the baseline has it.
        new: The metric as the candidate has it.
        size: Size of the baseline, by which shares become amounts.

    Example:
        >>> speed = Metric(name="speed", unit="1/s", direction="up", meaning="speed")
        >>> wide = speed.model_copy(update={"tolerance": Tolerance(rel=0.9)})
        >>> stricter(speed, wide, 10.0)[0].tolerance.rel
        0.05
    """
    then, now = old.tolerance, new.tolerance
    shifted = now.rel > 0.0 and old.floor > new.floor
    if now.rel <= then.rel and now.abs <= then.abs and not shifted:
        return new, ""
    # Parts may have been traded for each other: what counts is the loss that they allow.
    before, after = _allowed(old, size), _allowed(new, size)
    if after < before and not new.must_be_zero:
        return new, ""
    chosen = {"tolerance": then, "floor": old.floor}
    if after == before or new.must_be_zero:
        both = Tolerance(rel=min(then.rel, now.rel), abs=min(then.abs, now.abs))
        chosen = {"tolerance": both, "floor": max(old.floor, new.floor)}
    told = (
        f"its tolerance is wider than the baseline's: {_text(old)} -> {_text(new)};"
        " judged by the stricter until the baseline is approved anew"
    )
    return new.model_copy(update=chosen), told


def _allowed(metric: Metric, size: float) -> float:
    share = metric.tolerance.rel * size if size > metric.floor else 0.0
    return max(share, metric.tolerance.abs)


def _text(metric: Metric) -> str:
    floor = f", floor {metric.floor:g}" if metric.floor else ""
    return f"rel {metric.tolerance.rel:g}, abs {metric.tolerance.abs:g}{floor}"
