"""The option that says which database is meant."""

from __future__ import annotations

import typer

DATABASE_VARIABLE = "AGENT_GYM_DATABASE"
DATABASE = typer.Option(
    "--database",
    envvar=DATABASE_VARIABLE,
    help="sqlite:///FILE or postgresql://USER@HOST/NAME; default: that of the results.",
)
