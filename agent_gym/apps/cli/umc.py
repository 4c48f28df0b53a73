"""``agent-gym umc``: the active-inference trader, walked forward, explained, under stress."""

from __future__ import annotations

import typer

from agent_gym.apps.cli.umc_ablation import ablation
from agent_gym.apps.cli.umc_backtest import backtest
from agent_gym.apps.cli.umc_explain import explain_decision
from agent_gym.apps.cli.umc_gates import gates
from agent_gym.apps.cli.umc_stress import stress_agent
from agent_gym.apps.cli.umc_train import train

app = typer.Typer(no_args_is_help=True)


@app.callback()
def umc() -> None:
    """UMC: walk it forward, ask why it traded, look for markets that it cannot bear."""


# Every subcommand is registered here and nowhere else.
app.command("backtest")(backtest)
app.command("explain")(explain_decision)
app.command("stress")(stress_agent)
app.command("gates")(gates)
app.command("ablation")(ablation)
app.command("train")(train)
