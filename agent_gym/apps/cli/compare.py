"""``agent-gym compare``: two runs side by side, with intervals."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Group
from rich.text import Text

from agent_gym.apps.cli.output import emit
from agent_gym.core.files import home
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.pipeline.nightly import Workspace, compare_runs, comparison_code
from agent_gym.reporting.nightly import comparison_table

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
_NAMES = "a run id, latest, a baseline id, baseline, anchor, or the file of a report"


@app.callback()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=f"What was: {_NAMES}.")],
    second: Annotated[str, typer.Argument(metavar="B", help="What is, named in the same way.")],
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 if B is worse.")
    ] = False,
    only_changed: Annotated[
        bool, typer.Option("--only-changed", help="Leave out what is the same.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two runs on the seeds that both played; nothing is played again."""
    diff = compare_runs(Workspace(home()), first, second, GatePolicy())
    shown = [
        finding
        for finding in diff.findings
        if not only_changed or finding.word not in ("unchanged", "no_difference_seen")
    ]
    code = comparison_code(diff, fail_on_regression=fail_on_regression)
    view = Group(
        Text(f"{diff.verdict}: {diff.why}", "bold"),
        Text(f"{diff.baseline_run} -> {diff.candidate_run}; {diff.method}"),
        comparison_table(shown),
    )
    document = msgspec.to_builtins(diff) | {"exit_code": code}
    emit(document, as_json=as_json, view=view)
    raise typer.Exit(code)
