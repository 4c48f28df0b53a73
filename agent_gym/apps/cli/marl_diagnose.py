"""``agent-gym marl diagnose``: is each idea of AMAL alive?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.marl_choices import Task, Team, default_folder, jobs_of, team_of
from agent_gym.apps.cli.marl_compare import StudyPlaces, check_outputs
from agent_gym.apps.cli.marl_compare_view import narrow
from agent_gym.apps.cli.marl_plans import planned
from agent_gym.apps.cli.marl_view import shown_trainings
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.workspace import source_commit
from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Config
from agent_gym.evaluation.marl import over_seeds
from agent_gym.reporting.marl import DIAGNOSIS, figure_row, missed_of, write_diagnosis
from agent_gym.reporting.text import many
from agent_gym.training.marl.diagnosing import DiagnosisJob, run_diagnoses

HEADS = ("figure", "found", "over seeds, 95 %", "bound", "seeds", "passed")


class DiagnoseJob(Config):
    """What is examined."""

    algo: str = Field(default="amal", description="a shipped config of AMAL, or a file")
    map: str | None = Field(default=None, description="the battle (default that of the config)")
    reward: str | None = Field(
        default=None, description="dense, kills or sparse (default that of the config)"
    )
    steps: int | None = Field(
        default=None, ge=1, description="steps of all environments (default that of the config)"
    )
    seeds: int = Field(default=1, ge=1, le=1_000, description="how many seeds")
    seed: int = Field(default=0, ge=0, description="first seed")


def _asked(job: DiagnoseJob, outputs: StudyPlaces) -> tuple[Team, list[DiagnosisJob]]:
    """Return what is examined, and one training a seed."""
    team = team_of(job.algo, Task(job.map, job.reward, job.steps))
    if team.config.amal is None:
        raise ConfigError(
            "only a training of AMAL can be examined",
            where="--algo",
            found=job.algo,
            expected="a config with `amal`",
        )
    folder = _folder(default_folder(team, outputs.runs))
    seeds = range(job.seed, job.seed + job.seeds)
    return team, [DiagnosisJob(**dict(each)) for each in jobs_of(team, folder, seeds)]


def _plan(job: DiagnoseJob, outputs: StudyPlaces, **_: object) -> dict[str, Any]:
    check_outputs(outputs, DIAGNOSIS)
    return planned(_asked(job, outputs)[1])


@on_executor
@with_options("outputs", StudyPlaces, "Where to")
@with_options("job", DiagnoseJob, "What is examined")
@writes("trained teams and their diagnosis", _plan)
def diagnose(
    job: DiagnoseJob,
    outputs: StudyPlaces,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train AMAL with every probe on; exit code 4 says that a bound is missed.

    The bounds are those of the design.
    """
    check_outputs(outputs, DIAGNOSIS)
    team, jobs = _asked(job, outputs)
    with shown_trainings(jobs, outputs.jobs):
        reports = run_diagnoses(jobs, outputs.jobs)
    manifest = describe(
        argv=["agent-gym", "marl", "diagnose", *words_of(job)],
        config=team.config.model_dump(mode="json"),
        data={},
        seeds=tuple(each.config.seed for each in jobs),
        commit=source_commit(),
    )
    document = {
        "kind": "diagnosis of a team",
        "schema_version": 1,
        "figures": over_seeds(reports),
        "reports": reports,
        "manifest": manifest.model_dump(mode="json"),
    }
    if outputs.out is not None:
        write_diagnosis(outputs.out, document, outputs.called(DIAGNOSIS))
    emit(document, as_json=as_json, view=_view(document))
    if missed_of(document):
        raise typer.Exit(EXIT_RUN)


def _folder(arm: Path) -> Path:
    """Return the folder beside an arm's, as reports of both would get in each other's way."""
    return arm.with_name(f"{arm.name}.diagnosis")


def _view(document: dict[str, Any]) -> RenderableType:
    missed = missed_of(document)
    title = f"{many(len(missed), 'bound')} missed" if missed else "All bounds hold"
    rows: list[tuple[object, ...]] = [
        (*figure_row(name, one), "yes" if one["passed"] else "NO")
        for name, one in document["figures"].items()
    ]
    words = f"Missed: {', '.join(missed)}" if missed else "Every idea is alive."
    return Group(narrow(table(title, HEADS, rows)), Text(words))
