"""``agent-gym marl train``: a team trained with several seeds, each judged on fresh starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.marl_choices import (
    SeedRuns,
    Task,
    Team,
    TeamChoice,
    default_folder,
    jobs_of,
    team_of,
)
from agent_gym.apps.cli.marl_plans import planned
from agent_gym.apps.cli.marl_view import seed_row, shown_trainings, trained_view
from agent_gym.apps.cli.output import EXIT_RUN, emit
from agent_gym.apps.cli.train_options import parse_settings
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.marl import arm_figures, horizon, run_of
from agent_gym.training.marl.jobs import Ran, TeamJob, run_teams
from agent_gym.training.marl.runs import Trained

EXAMPLE = "learn.epochs=5"
LISTED = "docs/reference/settings.md lists all settings of teams under TeamTrainConfig"
SEEDS = Seeds(0).child("training of a team")


def _asked(
    choice: TeamChoice, runs: SeedRuns, pairs: list[str] | None
) -> tuple[Team, list[TeamJob]]:
    """Return what is trained, and one training a seed."""
    task = Task(choice.map, choice.reward, choice.steps)
    changes = parse_settings(pairs or (), EXAMPLE, LISTED)
    team = team_of(choice.word(), task, stop_early=choice.stop_early, changes=changes)
    seeds = range(choice.seed, choice.seed + runs.seeds)
    words = [word for pair in pairs or () for word in ("--set", pair)]
    return team, jobs_of(team, runs.out or default_folder(team), seeds, words)


def _plan(
    choice: TeamChoice, runs: SeedRuns, pairs: list[str] | None, **_: object
) -> dict[str, Any]:
    return planned(_asked(choice, runs, pairs)[1])


@on_executor
@with_options("runs", SeedRuns, "How often, and where to")
@with_options("choice", TeamChoice, "What is trained")
@writes("trained teams", _plan)
def train(
    choice: TeamChoice,
    runs: SeedRuns,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help=f"Setting by dotted key, such as {EXAMPLE}."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train a team with several seeds and judge each from fresh starts, greedily.

    What was stopped goes on where it was, to the bit; what is done is not done again.
    """
    team, jobs = _asked(choice, runs, pairs)
    with shown_trainings(jobs, runs.jobs):
        ran = run_teams(jobs, runs.jobs)
    if not ran.complete:
        raise KeyboardInterrupt
    payload = _payload(team, runs.out or default_folder(team), jobs, ran)
    emit(payload, as_json=as_json, view=trained_view(payload))
    if payload["failed"]:
        raise typer.Exit(EXIT_RUN)


def _payload(team: Team, folder: Path, jobs: list[TeamJob], ran: Ran) -> dict[str, Any]:
    done = [
        (run_of(result.record, team.name), result)
        for result in ran.results
        if isinstance(result, Trained)
    ]
    figures: dict[str, Any] | None = None
    if done:
        runs = [run for run, _ in done]
        figures = arm_figures(runs, horizon(runs), SEEDS).as_dict()
    world = team.config.world
    return {
        "title": f"{team.name} on {world.map} ({world.reward}), {team.config.env_steps:,} steps",
        "arm": team.name,
        "map": world.map,
        "reward": world.reward,
        "config": team.config.model_dump(mode="json"),
        "seeds": [seed_row(run, result.cpu_s) for run, result in done],
        "figures": figures,
        "failed": {
            str(job.config.seed): result
            for job, result in zip(jobs, ran.results, strict=True)
            if not isinstance(result, Trained)
        },
        "folder": str(folder),
    }
