"""``agent-gym mcp``: the gym as MCP tools."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")


@app.callback()
def mcp(
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="The client may also name markets that read files or exchanges, and agents that "
            "run programs or ask servers.",
        ),
    ] = False,
) -> None:
    """Offer markets, backtests and sessions as MCP tools on standard input and output."""
    import_module("agent_gym.apps.mcp_gym").serve_gym(trusted=trust)
