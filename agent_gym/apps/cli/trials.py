"""``agent-gym trials``: what was tried, and whether the record of it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from agent_gym.apps.cli.evaluate_options import TRIALS
from agent_gym.apps.cli.output import emit, table
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.evaluation.protocol.lockbox import openings_in
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.markets.quality import format_time

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")


@app.callback()
def trials(
    registry: Annotated[
        Path | None, typer.Option(help=f"File of all trials (default results/{TRIALS}).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List every trial and every opening of a lockbox; the chain and all series are checked."""
    found = TrialRegistry(registry or home() / TRIALS)
    if not found.path.is_file():
        raise ConfigError(
            "there is no record of trials here",
            where=str(found.path),
            remedy="`agent-gym evaluate` makes one; say --registry if it is elsewhere",
        )
    checked = found.verify()
    entered, openings = found.trials(), openings_in(found)
    payload = {
        "registry": str(found.path),
        "verified": checked,
        "trials": [trial.as_dict() for trial in entered],
        "openings": [opening.as_dict() for opening in openings],
    }
    rows: list[tuple[object, ...]] = [
        (
            trial.id[:8],
            format_time(trial.at_ns),
            trial.plan.label,
            trial.plan.market.name,
            str(trial.plan.protocol.get("name")),
            trial.n,
        )
        for trial in entered
    ]
    heads = ("id", "registered", "arm", "market", "protocol", "returns")
    lines = [f"Lockbox of {each.market.name} opened: {each.words()}" for each in openings]
    lines += [f"Warning: {warning}" for warning in checked["warnings"]]
    lines.append(f"{checked['records']} records, the chain is whole; head {checked['head']}")
    emit(
        payload,
        as_json=as_json,
        view=Group(table("Trials", heads, rows), *map(Text, lines)),
    )
