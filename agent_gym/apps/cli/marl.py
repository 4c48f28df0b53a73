"""``agent-gym marl``: teams that learn together, and battles that people can watch."""

from __future__ import annotations

import typer

from agent_gym.apps.cli.marl_ablation import ablation
from agent_gym.apps.cli.marl_behaviour import behaviour
from agent_gym.apps.cli.marl_compare import compare
from agent_gym.apps.cli.marl_diagnose import diagnose
from agent_gym.apps.cli.marl_replay import record_battles, show_replay, verify_replays
from agent_gym.apps.cli.marl_train import train

app = typer.Typer(no_args_is_help=True)


@app.callback()
def marl() -> None:
    """Teams: train and compare them, record their battles and watch them."""


# Every subcommand is registered here and nowhere else.
app.command("train")(train)
app.command("compare")(compare)
app.command("diagnose")(diagnose)
app.command("ablation")(ablation)
app.command("record")(record_battles)
app.command("verify")(verify_replays)
app.command("show")(show_replay)
app.command("behaviour")(behaviour)
