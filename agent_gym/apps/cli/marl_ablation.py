"""``agent-gym marl ablation``: what is each part of AMAL worth?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from pydantic import Field

from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.marl_choices import (
    Task,
    Team,
    default_folder,
    jobs_of,
    names_of,
    tasks_of,
    team_of,
)
from agent_gym.apps.cli.marl_compare import StudyPlaces, check_outputs, played, study_document
from agent_gym.apps.cli.marl_compare_view import ablation_view
from agent_gym.apps.cli.marl_plans import planned
from agent_gym.apps.cli.output import emit
from agent_gym.core.registry import Config, unknown
from agent_gym.evaluation.marl import compare_arms
from agent_gym.reporting.marl import ABLATION, write_ablation
from agent_gym.training.marl.amal.arms import ARMS, arm_config
from agent_gym.training.marl.jobs import TeamJob

WHOLE = "amal"
SHARED = (WHOLE, "mappo", "mappo-short", "mappo-reuse")
"""Arms that are shipped configs as well: what was trained for a comparison counts here too."""


class AblationJob(Config):
    """Which arms, where, and how often."""

    algo: str = Field(default=WHOLE, description="the whole: a shipped config or a file")
    arms: str = Field(
        default=",".join(name for name in ARMS if name != WHOLE), description="arms, by comma"
    )
    maps: str = Field(
        default="3m", description="by comma; each may say its own, such as 3m:kills@500000"
    )
    seeds: int = Field(default=10, ge=2, le=10_000, description="seeds of each arm and map")
    seed: int = Field(default=0, ge=0, description="first seed")
    steps: int | None = Field(
        default=None, ge=1, description="steps of all environments (default those of the config)"
    )


def _plan(job: AblationJob, outputs: StudyPlaces, **_: object) -> dict[str, Any]:
    check_outputs(outputs, ABLATION)
    return planned(ablation_jobs(job, outputs))


@on_executor
@with_options("outputs", StudyPlaces, "Where to")
@with_options("job", AblationJob, "What is asked")
@writes("trained teams, and what each part is worth", _plan)
def ablation(
    job: AblationJob,
    outputs: StudyPlaces,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take parts out of AMAL, with the same seeds, and say what that changes.

    P-values hold for all differences of a figure together (Holm). With 10 seeds or more, arms that
    change nothing anywhere are named.
    """
    check_outputs(outputs, ABLATION)
    jobs = ablation_jobs(job, outputs)
    found = played(jobs, outputs.jobs)
    compared = compare_arms([each.run for each in found], WHOLE).as_dict()
    about = {name: changes_words(ARMS[name]) for name in arms_of(job)}
    words = ["marl", "ablation", *words_of(job)]
    document = study_document(compared | {"arms": about}, found, words)
    if outputs.out is not None:
        write_ablation(outputs.out, document, outputs.called(ABLATION))
    emit(document, as_json=as_json, view=ablation_view(document))


def arms_of(job: AblationJob) -> list[str]:
    """Return the arms that are asked for; the whole is always in, and first."""
    names = names_of(job.arms, "--arms")
    for name in names:
        if name not in ARMS:
            raise unknown("arm", name, tuple(ARMS))
    return [WHOLE, *(name for name in names if name != WHOLE)]


def ablation_jobs(job: AblationJob, outputs: StudyPlaces) -> list[TeamJob]:
    """Return all trainings, those that are done included."""
    seeds = range(job.seed, job.seed + job.seeds)
    found: list[TeamJob] = []
    for task in tasks_of(job.maps, None, job.steps):
        base = team_of(job.algo, task)
        for name in arms_of(job):
            team = Team(name, base.word, arm_config(name, base.config))
            place = team if _shared(team, task) else team._replace(name=f"{base.name}.{name}")
            folder = default_folder(place, outputs.runs)
            found += jobs_of(team, folder, seeds, set_words(ARMS[name]))
    return found


def _shared(team: Team, task: Task) -> bool:
    """Say whether an arm is just what a shipped config of its name trains."""
    if team.name not in SHARED:
        return False
    return team_of(team.name, task).config == team.config


def flat(changes: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """Return changes by dotted key.

    Example:
        >>> flat({"amal": {"model": {"heads": 3}}, "learn": None})
        {'amal.model.heads': 3, 'learn': None}
    """
    found: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{inside}{name}.")
        else:
            found[f"{inside}{name}"] = value
    return found


def set_words(changes: Mapping[str, Any]) -> list[str]:
    """Return the options that make the same changes."""
    pairs = [f"{key}={json.dumps(value)}" for key, value in flat(changes).items()]
    return [word for pair in pairs for word in ("--set", pair)]


def changes_words(changes: Mapping[str, Any]) -> str:
    """Return what an arm changes, in words."""
    pairs = [f"`{key}` = {json.dumps(value)}" for key, value in flat(changes).items()]
    return ", ".join(pairs) or "nothing: the whole"
