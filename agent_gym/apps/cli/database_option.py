"""The option that says which database is meant."""

from __future__ import annotations

import typer

from agent_gym.core.files import DATABASE_VARIABLE

DATABASE = typer.Option(
    "--database",
    envvar=DATABASE_VARIABLE,
    help="sqlite:///FILE or postgresql://USER@HOST/NAME; default: that of the results.",
)
