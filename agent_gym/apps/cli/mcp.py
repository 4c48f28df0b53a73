"""``agent-gym mcp``: the gym, or a sandbox exchange, as MCP tools."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated

import typer

from agent_gym.core.errors import ConfigError

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")
KEY, SECRET = "SANDBOX_KEY", "SANDBOX_SECRET"


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
    sandbox: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Trade on the sandbox exchange that listens here, in place of the gym; "
            f"{KEY} and {SECRET} in the environment say for which account.",
        ),
    ] = None,
) -> None:
    """Offer markets, backtests and sessions as MCP tools on standard input and output.

    With --sandbox the tools are those of a trader on a running sandbox exchange.
    """
    if sandbox is None:
        import_module("agent_gym.apps.mcp_gym").serve_gym(trusted=trust)
        return
    if trust:
        raise ConfigError(
            "--trust is about the gym, and changes nothing on a sandbox",
            where="agent-gym mcp",
            found="--trust and --sandbox",
            remedy="Leave out one of them",
        )
    server = import_module("agent_gym.apps.mcp_sandbox")
    server.serve_sandbox(sandbox, _needed(KEY), _needed(SECRET))


def _needed(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(
            "there is no account to trade for",
            where=variable,
            found="nothing",
            expected="what `agent-gym sandbox` has shown for the account",
            remedy=f"Set {KEY} and {SECRET} in the environment that the MCP client starts this in",
        )
    return value
