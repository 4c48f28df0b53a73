"""``agent-gym verify``: is the whole loop in order, and what is to be done next?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.late import work_of

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)


@app.callback()
def verify(
    folder: Annotated[
        Path | None, typer.Option(help="Where the loop lies; default: the folder of results.")
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check configuration, data, automation and registry, and say what to do next.

    Ends with code 1 if something is wrong; what has merely not happened yet is not wrong.
    """
    work_of("verify").check(folder, url, as_json=as_json)
