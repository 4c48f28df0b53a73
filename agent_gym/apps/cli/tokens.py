"""``agent-gym tokens``: who may call the service."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.api.roles import Role
from agent_gym.apps.api.tokens import FILE, Token, TokenFile
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, table
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.files import home

app = typer.Typer(no_args_is_help=True)
_FOLDER = typer.Option(help="Where the loop lies; default: the folder of results.")
_JSON = typer.Option("--json", help="Print one JSON document.")


@app.callback()
def tokens() -> None:
    """Who may call the service."""


@app.command()
@writes("a token")
def add(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    role: Annotated[
        Role, typer.Option(help="read; run may also call cron and play; admin may do all.")
    ] = "read",
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; never if not given.")
    ] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Make a token and show it, once."""
    token, text = _file(folder).add(name, role, days)
    rows: list[tuple[object, ...]] = [("id", token.id), ("role", token.role), ("token", text)]
    view = table("Token, shown once", ("what", "is"), rows)
    emit(_told(token) | {"token": text}, as_json=as_json, view=view)


@app.command("list")
def list_tokens(
    folder: Annotated[Path | None, _FOLDER] = None, as_json: Annotated[bool, _JSON] = False
) -> None:
    """List the tokens; what they are cannot be shown again."""
    found = _file(folder).all()
    rows: list[tuple[object, ...]] = [
        (token.id, token.name, token.role, _time(token.created_ns), _time(token.expires_ns))
        for token in found
    ]
    view = table("Tokens", ("id", "name", "role", "made", "expires"), rows)
    emit({"tokens": [_told(token) for token in found]}, as_json=as_json, view=view)


@app.command()
@writes("the end of a token")
def revoke(
    token_id: Annotated[str, typer.Argument(help="Its id.")],
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take a token back; a running service turns it away at once."""
    gone = _file(folder).revoke(token_id)
    view = table("Revoked", ("id", "name", "role"), [(gone.id, gone.name, gone.role)])
    emit(_told(gone), as_json=as_json, view=view)


def _file(folder: Path | None) -> TokenFile:
    return TokenFile((home() if folder is None else folder) / FILE)


def _told(token: Token) -> dict[str, object]:
    return token.model_dump(mode="json", exclude={"salt", "digest"})


def _time(at_ns: int | None) -> str:
    if at_ns is None:
        return "never"
    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
