"""A run as a page and as a document, side by side in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_gym.core.files import write_json, write_text
from agent_gym.core.manifest import describe
from agent_gym.pipeline.automation.job import JobOutcome
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.harness.options import HarnessOptions, HarnessOutcome
from agent_gym.reporting.loop.page import html_page
from agent_gym.reporting.loop.report import Asked, LoopReport, Played, Round

OUTCOME = "outcome.json"
NOT_TRAINED = "not trained"
SHORT = 12


def write_report(
    outcome: HarnessOutcome, stages: Stages, options: HarnessOptions, argv: Sequence[str]
) -> None:
    """Write the page and the outcome; both say how to make them again."""
    manifest = describe(
        argv=list(argv),
        config=options.model_dump(mode="json"),
        data={"champion": outcome.champion_before, "run": outcome.run_id},
        seeds=(options.seed,),
    ).model_dump(mode="json")
    page = Path(outcome.report)
    page.parent.mkdir(parents=True, exist_ok=True)
    payload = outcome.model_dump(mode="json") | {"promoted": outcome.promoted}
    write_json(page.parent / OUTCOME, payload | {"manifest": manifest})
    write_text(page, html_page(_report(outcome, stages, manifest)))


def _report(outcome: HarnessOutcome, stages: Stages, manifest: dict[str, Any]) -> LoopReport:
    job = outcome.job
    found = {} if job is None else job.stages
    verdict: dict[str, Any] = found.get("verdict") or {}
    return LoopReport(
        run_id=outcome.run_id,
        verdict=NOT_TRAINED if job is None else job.ending,
        reason="" if job is None else job.reason,
        command=manifest["command"],
        champion=outcome.champion_before,
        challenger=None if job is None else job.challenger,
        figures=_figures(outcome, verdict),
        rounds=_rounds(found.get("training") or {}),
        pairs=_pairs(job, stages) if verdict else (),
        checks=tuple(
            Asked(each["name"], each["passed"], each["words"]) for each in verdict.get("checks", ())
        ),
        readiness_before=_asked(outcome.readiness_before),
        readiness_after=_asked(outcome.readiness_after),
        history=tuple((entry.event, _words(entry.data)) for entry in stages.deployments.history()),
        answers={name: model or "nobody" for name, model in outcome.answered.items()},
        manifest=manifest,
    )


def _figures(outcome: HarnessOutcome, verdict: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    figures = [
        ("trajectories stored", f"{outcome.trajectories['stored']:,}"),
        ("steps stored", f"{outcome.steps:,}"),
        ("snapshots to learn from", f"{outcome.snapshots['train']:,}"),
    ]
    for check in verdict.get("checks", ()):
        if check["name"] == "superiority":
            told = check["figures"]
            figures += [
                ("sealed snapshots, played by both", f"{outcome.snapshots['sealed']:,}"),
                ("gained an episode", f"{told['mean']:+.3f}"),
                ("chance of that by luck", f"{told['p']:.2g}"),
            ]
    return tuple(figures)


def _rounds(training: dict[str, Any]) -> tuple[Round, ...]:
    return tuple(
        Round(
            trajectories=one["trajectories"],
            mean_return=one["return_mean"],
            steps=one["steps"],
            model=one["model_after"],
            groups_kept=one["groups"]["kept"],
            groups_dropped=one["groups"]["dropped"],
        )
        for one in training.get("rounds", ())
    )


def _pairs(job: JobOutcome | None, stages: Stages) -> tuple[Played, ...]:
    if job is None:
        return ()
    return tuple(
        Played(pair.snapshot_id, pair.slice, pair.champion, pair.challenger)
        for pair in stages.evidence(job.job_id).pairs
    )


def _asked(told: dict[str, Any]) -> tuple[Asked, ...]:
    return tuple(Asked(one["name"], one["met"], one["words"]) for one in told["conditions"])


def _words(data: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in data.items())


def _short(value: object) -> str:
    text = str(value)
    return text[:SHORT] if len(text) == 64 else text
