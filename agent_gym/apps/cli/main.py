"""``agent-gym``: every command is a module that is imported only when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from agent_gym import __version__
from agent_gym.apps.cli.output import report
from agent_gym.core.errors import AgentGymError

COMMANDS = {
    "agents": "The agents that can be named, and their parameters.",
    "backtest": "Run an agent over a market and report it beside baselines.",
    "data": "Fetch, import, check and describe market data.",
    "demo": "A backtest from data to report, end to end.",
    "doctor": "What this machine has, and what is missing.",
    "market": "Generate synthetic markets and measure how real they look.",
}


def build(called: str | None) -> typer.Typer:
    """Return the program: the called command in full, of the others only their help line."""
    program = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    program.callback()(_root)
    for name, text in COMMANDS.items():
        if name == called:
            program.add_typer(import_module(f"agent_gym.apps.cli.{name}").app, name=name, help=text)
        else:
            program.add_typer(typer.Typer(callback=_root), name=name, help=text)
    return program


def main() -> None:
    """Run the command line; errors of ours become a message and an exit code."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    try:
        build(words[0] if words else None)(prog_name="agent-gym")
    except AgentGymError as error:
        sys.exit(report(error, as_json="--json" in sys.argv))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-gym {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The offline proving ground for trading agents."""
