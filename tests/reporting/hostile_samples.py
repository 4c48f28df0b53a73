"""Nights in which somebody has written where text can be written."""

from __future__ import annotations

from agent_gym.reporting.nightly import NightlyResult
from tests.reporting.result_samples import bad_night, finding_like, like


def hostile(payload: str) -> NightlyResult:
    """Return a night in which the payload stands wherever text can stand."""
    night = bad_night()
    findings = tuple(
        finding_like(
            each,
            id=f"{payload}{at}",
            scenario=payload,
            metric=f"{payload}{at}",
            unit=payload,
            why=payload,
        )
        for at, each in enumerate(night.diff.findings[:12])
    )
    run = night.run
    scenarios = tuple(
        like(
            each,
            name=payload + each.name,
            identity={"type": payload},
            samples=(like(each.samples[0], status="error", error=payload), *each.samples[1:]),
        )
        for each in run.samples.scenarios
    )
    notice = like(night.diff.notices[0], id=payload, why=payload)
    return like(
        night,
        run=like(
            run,
            run_id=payload,
            suite_id=payload,
            command=payload,
            samples=like(run.samples, scenarios=scenarios),
            code=like(run.code, commit=payload, code_hash=payload),
            manifest={payload: payload},
            machine={payload: payload},
            subject={payload: payload, "plant": payload},
            expected=(payload,),
            notes=(payload,),
        ),
        diff=like(night.diff, findings=findings, notices=(notice,), why=payload, method=payload),
        baseline=like(night.baseline, id=payload, reason=payload, approved_by=payload),
        past=like(
            night.past,
            nights=tuple(like(each, verdict=payload, commit=payload) for each in night.past.nights),
        ),
    )
