"""``agent-gym serve``: the loop as a service."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field

from agent_gym.apps.api.sessions import check_secret
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.binding import names_of
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import writes
from agent_gym.core.files import home
from agent_gym.core.registry import Config

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
SERVING = "agent_gym.apps.cli.serving"


class ServeOptions(Config):
    """Where it listens, and what it does by itself."""

    host: str = Field(default="127.0.0.1", description="address to bind to")
    port: int = Field(default=8000, ge=0, le=65535, description="0: any that is free")
    remote: bool = Field(
        default=False, description="others may reach it; needed to bind to more than loopback"
    )
    tick_every: float | None = Field(
        default=None, ge=0.1, description="seconds between ticks of the agents; else none"
    )
    check_every: float | None = Field(
        default=None, ge=0.1, description="seconds between training checks; else none"
    )
    train_every: float | None = Field(
        default=None, ge=0.1, description="seconds between trainings, if it is ready; else none"
    )
    agent_timeout: float = Field(
        default=30.0, ge=0.01, description="seconds that an agent may take to decide"
    )
    tick_cost: int = Field(default=1, ge=0, description="points that a tick costs an agent")
    explore: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="share of the markets in which agents draw their actions, to be learned from",
    )
    dashboard: bool = Field(default=True, description="pages for people at /dashboard")
    text: bool = Field(
        default=False, description="show agents the markets in words too: for language models"
    )


def planned(
    options: ServeOptions, allow_host: list[str] | None, folder: Path | None, **_: Any
) -> dict[str, Any]:
    """Refuse what the service would refuse to start with, and tell where it would listen."""
    hosts = names_of(options.host, tuple(allow_host or ()), remote=options.remote)
    place = home() if folder is None else folder
    TokenFile(place / FILE).all()
    if options.dashboard:
        check_secret(place)
    return {"folder": str(place), "listens at": f"{options.host}:{options.port}", "names": hosts}


@app.callback()
@with_options("options", ServeOptions, "The service")
@writes("the database, models and logs of the service", planned)
def serve_command(
    options: ServeOptions,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name it may be called by; may be repeated.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the loop lies; default: the folder of results.")
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print where it listens as one JSON document.")
    ] = False,
) -> None:
    """Serve the loop over HTTP until it is ended.

    Every request needs a token. If there is none yet, one for the role admin is made and shown
    once.
    """
    told = planned(options, allow_host, folder)  # what is wrong is said before much is loaded
    import_module(SERVING).run(options, told["names"], Path(told["folder"]), url, as_json=as_json)
