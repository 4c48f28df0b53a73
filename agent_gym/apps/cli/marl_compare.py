"""``agent-gym marl compare``: algorithms beside each other, over seeds and maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field

from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.marl_choices import (
    default_folder,
    jobs_of,
    names_of,
    tasks_of,
    team_of,
)
from agent_gym.apps.cli.marl_compare_view import comparison_view
from agent_gym.apps.cli.marl_kept import Study, kept_training, read_kept
from agent_gym.apps.cli.marl_plans import planned
from agent_gym.apps.cli.marl_view import shown_trainings
from agent_gym.apps.cli.output import emit
from agent_gym.apps.cli.workspace import check_target, source_commit
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Config
from agent_gym.evaluation.marl import compare_teams
from agent_gym.reporting.marl import COMPARISON, places, write_comparison
from agent_gym.training.marl.jobs import TeamJob, run_teams
from agent_gym.training.marl.runs import Trained
from agent_gym.training.rl.result import error_text

LOOKS = "evaluation.every"


class CompareJob(Config):
    """Who is compared on what."""

    algos: str = Field(
        default="mappo,mappo-reuse,ippo", description="shipped configs or files, by comma"
    )
    maps: str = Field(
        default="3m", description="by comma; each may say its own, such as 3m:kills@500000"
    )
    seeds: int = Field(default=20, ge=2, le=10_000, description="seeds of each algorithm and map")
    seed: int = Field(default=0, ge=0, description="first seed")
    steps: int | None = Field(
        default=None, ge=1, description="steps of all environments (default those of the configs)"
    )
    reward: str | None = Field(
        default=None, description="dense, kills or sparse (default that of the configs)"
    )
    stop_early: bool = Field(default=False, description="stop trainings that win often enough")
    looks_every: int | None = Field(
        default=None,
        ge=1,
        description="steps between two looks, as times are no finer (default those of the configs)",
    )


class StudyPlaces(Config):
    """Where to, and by how many processes."""

    jobs: int = Field(default=1, ge=1, le=256, description="processes; changes no number")
    runs: Path | None = Field(
        default=None, description="folder of all trainings (default results/experiments/marl)"
    )
    out: Path | None = Field(default=None, description="folder for JSON, page and pictures")
    name: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9_.-]*$",
        description="what these files are called (default by the kind of study)",
    )

    def called(self, kind: str) -> str:
        """Return what the files of a study of that kind are called."""
        return self.name or kind


def _plan(
    job: CompareJob, outputs: StudyPlaces, folders: list[Path] | None, renew: bool, **_: object
) -> dict[str, Any]:
    check_outputs(outputs, COMPARISON)
    _refuse_renewal(folders, renew=renew)
    if folders:
        _refuse_played(job)
        return {"trainings that are read": len(read_kept(folders, renew=renew))}
    return planned(compare_jobs(job, outputs))


@on_executor
@with_options("outputs", StudyPlaces, "Where to")
@with_options("job", CompareJob, "What is compared")
@writes("trained teams and their comparison", _plan)
def compare(
    job: CompareJob,
    outputs: StudyPlaces,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders of finished trainings, or JSON files of kept comparisons; nothing is "
            "played then."
        ),
    ] = None,
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Take a seed that comes twice from the place named last."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train what is missing and compare: win rates, areas, steps to 80 %, verdicts.

    An arm matches MAPPO if the ratio of steps is below 1.15 at the upper end of its interval, and
    beats it below 1 against MAPPO and against MAPPO with reuse; all else is not shown. Where
    mappo-short was played, it counts as MAPPO too.
    """
    check_outputs(outputs, COMPARISON)
    _refuse_renewal(folders, renew=renew)
    if folders:
        _refuse_played(job)
        found = read_kept(folders, renew=renew)
        words = ["marl", "compare", *map(str, folders), *(["--renew"] if renew else [])]
    else:
        found = played(compare_jobs(job, outputs), outputs.jobs)
        words = ["marl", "compare", *words_of(job)]
    document = study_document(compare_teams([each.run for each in found]).as_dict(), found, words)
    if outputs.out is not None:
        write_comparison(outputs.out, document, outputs.called(COMPARISON))
    emit(document, as_json=as_json, view=comparison_view(document))


def compare_jobs(job: CompareJob, outputs: StudyPlaces) -> list[TeamJob]:
    """Return all trainings, those that are done included."""
    tasks = tasks_of(job.maps, job.reward, job.steps)
    seeds = range(job.seed, job.seed + job.seeds)
    every = job.looks_every
    changes = {} if every is None else {LOOKS: every}
    ending = "" if every is None else f"-looks{every}"
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    teams = [
        team_of(word, task, stop_early=job.stop_early, changes=changes)
        for task in tasks
        for word in names_of(job.algos, "--algos")
    ]
    return [
        each
        for team in teams
        for each in jobs_of(team, default_folder(team, outputs.runs, ending), seeds, words)
    ]


def played(jobs: Sequence[TeamJob], workers: int) -> Study:
    """Train what is missing and return all; one that failed is an error that says which."""
    with shown_trainings(jobs, workers):
        ran = run_teams(jobs, workers)
    if not ran.complete:
        raise KeyboardInterrupt
    found = []
    for job, result in zip(jobs, ran.results, strict=True):
        if not isinstance(result, Trained):
            raise AgentError(
                "a training has failed, so there is nothing to compare",
                where=job.label,
                found=error_text(result, "it was not done"),
                remedy="The same command goes on with what is missing; the others are kept",
            )
        found.append(kept_training(result, job.arm))
    return found


def study_document(document: dict[str, Any], found: Study, words: Sequence[str]) -> dict[str, Any]:
    """Add where it comes from, and the seconds that it took, which are all that differs."""
    manifest = describe(
        argv=["agent-gym", *words],
        config={"runs": sorted({each.run.config_hash for each in found})},
        data={"maps": sorted({battle for each in found for battle in each.maps})},
        seeds=tuple(sorted({each.run.seed for each in found})),
        commit=source_commit(),
    )
    timings: dict[str, dict[str, list[float]]] = {}
    for run, _, cpu_s in found:
        timings.setdefault(run.task, {}).setdefault(run.arm, []).append(cpu_s)
    return document | {"manifest": manifest.model_dump(mode="json"), "cpu_s": timings}


def check_outputs(outputs: StudyPlaces, name: str) -> None:
    """Raise ConfigError unless the files of a study can be written."""
    for path in () if outputs.out is None else places(outputs.out, outputs.called(name)):
        check_target(path)


def _refuse_played(job: CompareJob) -> None:
    said = sorted(job.model_fields_set)
    if said:
        raise ConfigError(
            "folders hold what was played, so nothing else can be asked of them",
            where="agent-gym marl compare",
            found=", ".join(said),
            remedy="Leave out the folders, or these options",
        )


def _refuse_renewal(folders: list[Path] | None, *, renew: bool) -> None:
    if renew and not folders:
        raise ConfigError(
            "there is nothing to renew",
            where="--renew",
            found="no folder and no kept comparison",
            remedy="Name a kept comparison and the folder of the newer trainings",
        )
