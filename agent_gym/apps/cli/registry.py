"""``agent-gym registry``: the models, which one serves, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.apps.cli.registry_keys import audit, keys
from agent_gym.core.clock import SECOND_NS
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import (
    ModelDeploymentService,
    ModelRegistry,
    RegistryState,
    RolloutPolicy,
    Stage,
)
from agent_gym.rollouts.database import TrajectoryStore

app = typer.Typer(no_args_is_help=True)
app.add_typer(keys, name="keys")
app.add_typer(audit, name="audit")
_JSON = typer.Option("--json", help="Print one JSON document.")
_FOLDER = typer.Option("--folder", help="Where the loop lies; default: the folder of results.")
_MODEL = typer.Argument(help="Version, hash, or the first 8 digits of it.")


@app.callback()
def registry() -> None:
    """The models, which one serves, and the way back."""


@app.command("list")
def list_models(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """List all models, oldest first, and who serves."""
    with _open(url, folder) as service:
        state, models = service.state(), service.registry.models()
    payload = {"models": [model.as_dict() for model in models], **state.as_dict()}
    rows: list[tuple[object, ...]] = [
        (
            model.version,
            model.model_hash[:12],
            _role(model.model_hash, state),
            model.status,
            _time(model.created_ns),
        )
        for model in models
    ]
    emit(payload, as_json=as_json, view=table("Models", _LIST, rows))


@app.command()
def show(
    model: Annotated[str, _MODEL],
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Show a model: its files, who signed it, its verdict and what happened to it."""
    with _open(url, folder) as service:
        found = service.registry.find(model)
        artifact = service.registry.load(found.model_hash)
        verdict = service.registry.sealed.verdict(found.model_hash)
        told = [
            entry.as_dict()
            for entry in service.history()
            if entry.data.get("model") == found.model_hash
        ]
        state = service.state()
    payload = {
        **found.as_dict(),
        "role": _role(found.model_hash, state),
        "signed_by": artifact.signed_by,
        "folder": str(artifact.folder),
        "manifest": artifact.manifest.model_dump(mode="json"),
        "verdict": None if verdict is None else verdict.as_dict(),
        "history": told,
    }
    rows: list[tuple[object, ...]] = [
        (name, payload[name])
        for name in ("version", "model_hash", "role", "status", "signed_by", "folder")
    ]
    rows.append(("verdict", "none" if verdict is None else verdict.sentence))
    rows += [(f"file {name}", digest) for name, digest in sorted(artifact.manifest.files.items())]
    rows += [(_time(entry["at_ns"]), entry["event"]) for entry in told]
    emit(payload, as_json=as_json, view=table(found.version, ("what", "is"), rows))


@app.command()
def verify(
    model: Annotated[str | None, _MODEL] = None,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Check hashes and signatures of a model, or of all and the history; exit code 3 if wrong."""
    with _open(url, folder) as service:
        wrong = service.registry.verify(model)
        checked = len(service.registry.models()) if model is None else 1
    payload = {"ok": not wrong, "checked": checked, "wrong": list(wrong)}
    rows: list[tuple[object, ...]] = [(found,) for found in wrong] or [("all is as it was signed",)]
    emit(payload, as_json=as_json, view=table(f"{checked} models checked", ("found",), rows))
    if wrong:
        raise typer.Exit(EXIT_DATA)


@app.command()
@writes("another champion")
def promote(  # noqa: PLR0913 - each option of a command is an argument
    model: Annotated[str, _MODEL],
    to: Annotated[Stage | None, typer.Option(help="Stage; default: the next one.")] = None,
    percent: Annotated[
        float, typer.Option(min=0.01, max=99.99, help="Share of agents of a canary, %.")
    ] = 10.0,
    first: Annotated[bool, typer.Option("--first", help="As the first champion of all.")] = False,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take a model one stage further: into shadow, the canary, or full service.

    Into shadow comes only what the gate has let through. The share of a canary is set then.
    """
    with _open(url, folder, RolloutPolicy(canary_percent=percent)) as service:
        wanted = service.registry.find(model).model_hash
        rollout = service.state().rollout
        under_way = rollout is not None and rollout.model == wanted
        if first:
            service.install(wanted)
        elif not under_way or rollout is None or to == "shadow":
            service.deploy(wanted)
        else:
            service.advance(to or ("canary" if rollout.stage == "shadow" else "full"))
        state = service.state()
    _say(state, as_json=as_json)


@app.command()
@writes("the champion before")
def rollback(
    reason: Annotated[str, typer.Option(help="Why; it is written into the history.")],
    to: Annotated[str | None, typer.Option(help="A former champion; default: the last.")] = None,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take back what is under way, or the last champion."""
    with _open(url, folder) as service:
        state = service.rollback(reason, to)
    _say(state, as_json=as_json)


@app.command()
def history(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Everything that has happened, oldest first, and whether it is whole."""
    with _open(url, folder) as service:
        entries, wrong = service.history(), service.registry.ledger.check_history()
    payload = {
        "whole": not wrong,
        "wrong": list(wrong),
        "entries": [entry.as_dict() for entry in entries],
    }
    rows: list[tuple[object, ...]] = [
        (entry.position, _time(entry.at_ns), entry.event, _short(entry.data), entry.hash[:12])
        for entry in entries
    ]
    title = "History" if not wrong else f"History: {'; '.join(wrong)}"
    emit(payload, as_json=as_json, view=table(title, _HISTORY, rows))
    if wrong:
        raise typer.Exit(EXIT_DATA)


_LIST = ("version", "hash", "role", "status", "registered")
_HISTORY = ("#", "when", "event", "what", "hash")


@contextmanager
def _open(
    url: str | None, folder: Path | None, policy: RolloutPolicy | None = None
) -> Iterator[ModelDeploymentService]:
    loop = LoopFolder.at(folder)
    with TrajectoryStore.open(url, folder=loop.trajectories) as store:
        yield ModelDeploymentService(ModelRegistry.open(store.database, loop.models), policy)


def _say(state: RegistryState, *, as_json: bool) -> None:
    rollout = state.rollout
    rows: list[tuple[object, ...]] = [("champion", state.champion or "none")]
    rows.append(("before it", state.previous or "none"))
    if rollout is not None:
        share = f", {rollout.percent:g} % of agents" if rollout.stage == "canary" else ""
        rows.append(("rollout", f"{rollout.model} in {rollout.stage}{share}"))
        rows.append(("watch", rollout.monitor.decision().words))
    emit(state.as_dict(), as_json=as_json, view=table("Who serves", ("role", "model"), rows))


def _role(model_hash: str, state: RegistryState) -> str:
    if state.rollout is not None and state.rollout.model == model_hash:
        return "champion" if state.rollout.stage == "full" else state.rollout.stage
    roles = {state.champion: "champion", state.previous: "previous"}
    return roles.get(model_hash, "")


def _short(data: dict[str, Any]) -> str:
    shown = {name: str(value)[:12] if name == "model" else value for name, value in data.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
