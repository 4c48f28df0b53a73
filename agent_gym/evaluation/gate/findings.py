"""From a case and what the tests said to the finding that people read."""

from __future__ import annotations

from typing import Any, Literal

from agent_gym.evaluation.gate.cases import Case
from agent_gym.evaluation.gate.diff import Finding, Word
from agent_gym.evaluation.gate.fresh import FreshSeeds
from agent_gym.evaluation.gate.rows import Row, Unreadable
from agent_gym.evaluation.gate.stages import Ruling

# A metric in quarantine does not hide that it could not be measured at all.
NOT_HIDDEN = ("error", "missing_in_new", "missing_in_baseline", "incomparable")
CONFIDENCE = 0.95
Stage = Literal["exact", "screen", "confirm", "check"]


def finding_of(
    case: Case, ruling: Ruling, place: int | None, fresh: FreshSeeds | None, held: str | None
) -> Finding:
    """Return the finding of one case; ``place`` is its row in the ruling, if it has one."""
    word, why, row = case.word, case.why, case.row
    stage: Stage = case.stage
    figures: dict[str, Any] = {}
    problem = None if fresh is None or place is None else fresh.problems.get(place)
    if place is not None:
        if word is None:
            word, stage, said = _tested(case, ruling, place, fresh)
            why = "; ".join(text for text in (said, why) if text)
            row = row if fresh is None else fresh.rows.get(place, row)
        figures = _figures(case, ruling, place, alone=fresh is None)
    assert word is not None  # a case without a row is settled when it is gathered
    if held is not None and word not in NOT_HIDDEN:
        word, why = "quarantined", "; ".join(text for text in (held, why) if text)
    return Finding(
        id=case.id,
        scenario=case.scenario,
        metric=case.metric.name,
        word=word,
        stage=stage,
        unit=case.metric.unit,
        direction=case.metric.direction,
        tolerance_rel=case.metric.tolerance.rel,
        tolerance_abs=case.metric.tolerance.abs,
        must_be_zero=case.metric.must_be_zero,
        critical=case.critical,
        worst_seeds=_worst(case, row, word, problem),
        why=why,
        **figures,
    )


def _tested(
    case: Case, ruling: Ruling, place: int, fresh: FreshSeeds | None
) -> tuple[Word, Stage, str]:
    stage: Stage = "confirm" if ruling.stage[place] > 0 else "screen"
    problem = fresh.problems.get(place) if fresh is not None else None
    if problem is not None or ruling.failed[place]:
        return "error", stage, problem.why if problem else "fresh seeds gave fewer than two pairs"
    times = " twice" if ruling.stage[place] == 2 else ""
    if ruling.worse[place]:
        return "regression", stage, f"worse{times} beyond both tolerances"
    if case.unsteady:
        return "nondeterministic", stage, ""
    if ruling.better[place]:
        return "improvement", stage, f"better{times} beyond both tolerances"
    if ruling.figures.same[place]:
        return "no_difference_seen", stage, _same(int(ruling.figures.n[place]))
    if ruling.underpowered[place]:
        mde, required = ruling.mde[place], ruling.required[place]
        return "underpowered", stage, f"sees a loss of {mde:.6g}, ought to see {required:.6g}"
    said = "differs, but not beyond both tolerances" if ruling.within[place] else ""
    return "no_difference_seen", stage, said


def _same(n: int) -> str:
    """Return what equal figures say although the trajectories differ, and what they do not say.

    No noise was seen, so there is no smallest loss; what can be said is how rare a difference must
    be (the exact form of the rule of three).
    """
    rare = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / n)
    return f"the same on all {n} seeds; at most {rare:.1%} of seeds differ ({CONFIDENCE:.0%} sure)"


def _figures(case: Case, ruling: Ruling, place: int, *, alone: bool) -> dict[str, Any]:
    figures = ruling.figures
    n = int(figures.n[place])
    if n < 2:
        return {"n": n}
    base, cand = float(figures.base[place]), float(figures.cand[place])
    low, high = figures.interval()
    relative = abs(base) > case.metric.floor
    known: dict[str, Any] = {
        "n": n,
        "base": base,
        "cand": cand,
        "loss": float(figures.loss[place]),
        "delta_abs": cand - base,
        "delta_rel": (cand - base) / abs(base) if relative else None,
        "effect": float(figures.effect[place]),
        "sd": float(figures.sd[place]),
        "ci95": (float(low[place]), float(high[place])),
    }
    if ruling.tested[place]:
        known["p"] = float(ruling.p[place])
        # Holm's p-value exists where a family was tested: in a confirmation, or without one.
        if alone or ruling.stage[place] > 0:
            known["p_holm"] = float(ruling.p_holm[place])
    if case.stage != "exact" and not case.metric.must_be_zero:
        known["required"] = float(ruling.required[place])
        if not figures.same[place]:
            known["mde"] = float(ruling.mde[place])
    return known


def _worst(case: Case, row: Row | None, word: Word, problem: Unreadable | None) -> tuple[int, ...]:
    """Return the seeds to look at: the guilty ones where they are known, else the worst pairs."""
    if problem is not None or case.seeds:
        return case.seeds if problem is None else problem.seeds
    return () if row is None or word in ("unchanged", "improvement") else row.worst_seeds()
