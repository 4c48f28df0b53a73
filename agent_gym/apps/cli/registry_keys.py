"""``agent-gym registry keys`` and ``audit``: who may sign, and whether history is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.files import write_json
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import KeyRing, ModelRegistry
from agent_gym.pipeline.registry.audit import read_anchor
from agent_gym.rollouts.database import TrajectoryStore

keys = typer.Typer(no_args_is_help=True, help="Who may sign: list, rotate, revoke.")
audit = typer.Typer(no_args_is_help=True, help="Whether the history is whole: verify, anchor.")
_JSON = typer.Option("--json", help="Print one JSON document.")
_FOLDER = typer.Option("--folder", help="Where the loop lies; default: the folder of results.")


@keys.command("list")
def list_keys(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """List the keys that are known, and how each stands."""
    with _open(url, folder) as registry:
        _say(registry.artifacts.keys, as_json=as_json)


@keys.command()
@writes("another signing key, and signatures of all good models with it")
def rotate(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Make another key, sign every good model with it, and forget the old private key."""
    with _open(url, folder) as registry:
        _say(registry.rotate_key(), as_json=as_json)


@keys.command()
@writes("a key that counts no more")
def revoke(
    key: Annotated[str, typer.Argument(help="Id of the key; `keys list` shows them.")],
    reason: Annotated[str, typer.Option(help="Why; it is written into the history.")],
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Let nothing that a key has signed count any more; the one that signs is rotated first."""
    with _open(url, folder) as registry:
        _say(registry.revoke_key(key, reason), as_json=as_json)


@keys.command()
@writes("a signature of a model")
def sign(
    model: Annotated[str, typer.Argument(help="Version, hash, or the first 8 digits of it.")],
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Sign a registered model again, if its files and manifest are those that were registered."""
    with _open(url, folder) as registry:
        signed = registry.sign(model)
    payload = {"model": signed.model_hash, "signed_by": signed.signed_by}
    rows: list[tuple[object, ...]] = list(payload.items())
    emit(payload, as_json=as_json, view=table("Signed", ("what", "is"), rows))


@audit.command()
def verify(
    anchor: Annotated[
        list[Path] | None, typer.Option(help="Anchor that was kept elsewhere, repeatable.")
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Say whether history was edited, dropped, reordered or cut off; exit code 3 if it was."""
    kept = [read_anchor(path) for path in anchor or []]
    with _open(url, folder) as registry:
        wrong, length = registry.audit(*kept), len(registry.history())
    payload = {"ok": not wrong, "entries": length, "anchors": len(kept), "wrong": list(wrong)}
    rows: list[tuple[object, ...]] = [(found,) for found in wrong] or [("history is whole",)]
    emit(payload, as_json=as_json, view=table(f"{length} entries checked", ("found",), rows))
    if wrong:
        raise typer.Exit(EXIT_DATA)


@audit.command("anchor")
@writes("a signed note of how long the history is")
def make(
    out: Annotated[Path | None, typer.Option(help="File to be kept elsewhere.")] = None,
    anew: Annotated[
        str | None,
        typer.Option(help="Take history as it is, after a restore; says why, and is written in."),
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Sign how long the history is and its last hash; keep the file where nobody here can write."""
    with _open(url, folder) as registry:
        made = registry.anchor() if anew is None else registry.anchor_anew(anew)
    if out is not None:
        write_json(out, made.as_dict())
    rows: list[tuple[object, ...]] = list(made.as_dict().items())
    emit(made.as_dict(), as_json=as_json, view=table("Anchor", ("what", "is"), rows))


def _say(ring: KeyRing, *, as_json: bool) -> None:
    found = [
        {"key": key, "signs": key == ring.id, **ring.standing(key).as_dict()}
        for key in sorted(ring.trusted, key=lambda key: (key != ring.id, key))
    ]
    rows: list[tuple[object, ...]] = [
        (
            one["key"],
            "signs" if one["signs"] else "revoked" if one["revoked_ns"] else "trusted",
            *(_time(one[name]) for name in ("since_ns", "retired_ns", "revoked_ns")),
            one["reason"] or "",
        )
        for one in found
    ]
    columns = ("key", "standing", "since", "retired", "revoked", "reason")
    emit({"keys": found}, as_json=as_json, view=table("Keys", columns, rows))


def _time(at_ns: int | None) -> str:
    if at_ns is None:
        return ""
    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")


@contextmanager
def _open(url: str | None, folder: Path | None) -> Iterator[ModelRegistry]:
    loop = LoopFolder.at(folder)
    with TrajectoryStore.open(url, folder=loop.trajectories) as store:
        yield ModelRegistry.open(store.database, loop.models)
