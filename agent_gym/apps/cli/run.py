"""``agent-gym run``: play a suite and report it, compared with nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.nightly_options import PlayOptions, live
from agent_gym.apps.cli.output import emit, report
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.files import home
from agent_gym.pipeline.nightly import LockHeld, SingleRun, Workspace, run_suite
from agent_gym.pipeline.nightly.exits import FAILED, LOCKED, OK, events
from agent_gym.reporting.nightly import report_document, run_view, troubles

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)


@app.callback()
@on_executor
@with_options("play", PlayOptions, "What is played")
@writes("the reports of a suite")
def run(
    play: PlayOptions,
    print_table: Annotated[
        bool, typer.Option("--print", help="Print every figure of every scenario.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report here, too.")
    ] = None,
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Module that registers things of yours."),
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression", help="Exit with 4 if a metric that must be zero is not."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play a suite, keep its figures, and print a short table."""
    if out is not None:
        check_target(out)
    options = play.run_options("run", tuple(imports or ()))
    try:
        with live("run", options.suite) as watch:
            found = run_suite(options, Workspace(home()), out=out, watch=watch)
    except LockHeld as error:
        report(error, as_json=as_json)
        raise typer.Exit(LOCKED) from error
    code = found.exit_code
    if code == OK and fail_on_regression and events(found.run):
        code = FAILED
    document = report_document(found.run) | {"exit_code": code, "events": events(found.run)}
    emit(document, as_json=as_json, view=view(found, full=print_table))
    raise typer.Exit(code)


def view(found: SingleRun, *, full: bool) -> RenderableType:
    """Return the run for a person."""
    parts: list[RenderableType] = [run_view(found.run)] if full else []
    if not full:
        parts.extend(Text(f"{each.scenario}: {each.why}", "red") for each in troubles(found.run))
    parts.extend(
        Text(f"MUST BE ZERO and is not: {name}, on {n} seeds", "bold red")
        for name, n in events(found.run).items()
    )
    parts.append(
        Text(
            f"Run {found.run.run_id}: {found.run.status}, {found.played} episodes played, "
            f"{found.kept} known; see {found.places['report']}"
        )
    )
    return Group(*parts)
