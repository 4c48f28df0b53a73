"""``agent-gym harness``: the whole loop in one command, from snapshots to a served model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import DRY_RUN, say_plan
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.late import work_of
from agent_gym.core.files import home
from agent_gym.pipeline.harness.asked import HarnessOptions

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)


@app.callback()
@on_executor
@with_options("options", HarnessOptions, "The run")
def harness(
    options: HarnessOptions,
    folder: Annotated[
        Path | None, typer.Option(help="Where everything lies; default: the folder of results.")
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Let agents play, train on what was recorded, judge on sealed snapshots, and serve the best.

    A model that is not shown to be better is not promoted; the reason is told. Run it again to go
    on from the champion that serves now; a run that was cut off is finished first, and is then the
    one that is told of. Ends with code 1 if agents are answered by another model
    than the one that serves.
    """
    if dry_run:
        planned = options.model_dump(mode="json") | {"folder": str(folder or home())}
        say_plan("would be played", planned, as_json=as_json)
        return
    work_of("harness").play(options, folder, url, as_json=as_json)
