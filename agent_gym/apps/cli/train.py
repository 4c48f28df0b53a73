"""``agent-gym train``: one training with several seeds, from a config to models and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import DRY_RUN, say_plan
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.late import work_of
from agent_gym.apps.cli.train_checks import schema, speed, unsafe_import_zip, verify
from agent_gym.apps.cli.train_options import TrainJob, TrainRuns, asked_config, folder_of
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.errors import ConfigError

app = typer.Typer(invoke_without_command=True, no_args_is_help=True)

app.command("verify")(verify)
app.command("speed")(speed)
app.command("schema")(schema)
app.command("unsafe-import-zip")(unsafe_import_zip)


@app.callback()
@on_executor
@with_options("runs", TrainRuns, "How often, and where to")
@with_options("job", TrainJob, "What is trained")
def train(
    context: typer.Context,
    job: TrainJob,
    runs: TrainRuns,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Setting by dotted key, such as agent.gamma=0.99."
        ),
    ] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train several seeds, judge each on fresh episodes, and write models, curve and report.

    What was stopped goes on where it was, to the bit; what is done is not done again.
    """
    if context.invoked_subcommand is not None:
        return
    config = asked_config(job, pairs or ())
    folder = folder_of(job, runs, config)
    check_place(folder)
    if dry_run:
        planned = {
            "algo": config.algo,
            "env": config.env,
            "steps": config.steps,
            "seeds": list(runs.seed_list()),
            "folder": str(folder),
            "begins_anew": runs.fresh,
        }
        say_plan("would be trained", planned, as_json=as_json)
        return
    work_of("train").train(config, folder, runs, as_json=as_json)


def check_place(folder: Path) -> None:
    """Raise ConfigError unless runs can be written here."""
    try:
        check_writable(folder)
    except ConfigError as error:
        error.remedy = "Name another folder of results with AGENT_GYM_HOME"
        raise
