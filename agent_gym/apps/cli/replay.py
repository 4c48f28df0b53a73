"""``agent-gym replay``: one seed of a run, played again."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.output import emit, table
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.pipeline.nightly import Replay, Workspace, replay_seed
from agent_gym.pipeline.nightly.replay import Side

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
SIDES: dict[str, Side] = {"candidate": "candidate", "baseline": "baseline"}


@app.callback()
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id, latest, or a baseline id.")],
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="The scenario's name.")],
    seed: Annotated[int, typer.Argument(metavar="SEED", min=0, help="The seed.")],
    side: Annotated[
        str, typer.Option(help="Whose code and subject play: candidate or baseline.")
    ] = "candidate",
    any_seed: Annotated[
        bool, typer.Option("--any-seed", help="Play a seed that the run did not play.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play one seed again as the run did, and show it beside what was recorded and the baseline."""
    if side not in SIDES:
        raise ConfigError(
            "there is no such side", where="--side", found=side, expected=" or ".join(SIDES)
        )
    workspace = Workspace(home())
    found = replay_seed(workspace, run, scenario, seed, side=SIDES[side], any_seed=any_seed)
    emit(payload(found), as_json=as_json, view=view(found))
    raise typer.Exit(found.exit_code)


def payload(found: Replay) -> dict[str, Any]:
    """Return the replay for ``--json``."""
    return {
        "scenario": found.scenario,
        "seed": found.seed,
        "side": found.side,
        "plant": found.plant,
        "same": found.same,
        "same_code": found.same_code,
        "status": found.played.status,
        "error": found.played.error,
        "trajectory_hash": found.played.trajectory_hash,
        "recorded_hash": None if found.recorded is None else found.recorded.trajectory_hash,
        "baseline_hash": None if found.baseline is None else found.baseline.trajectory_hash,
        "events": found.events,
        "notes": list(found.notes),
        "figures": {
            name: {"recorded": was, "replayed": now, "baseline": base}
            for name, was, now, base in found.rows()
        },
        "exit_code": found.exit_code,
    }


def view(found: Replay) -> RenderableType:
    """Return the replay for a person."""
    rows: list[tuple[object, ...]] = [
        (name, *("-" if value is None else value for value in values), _mark(values))
        for name, *values in found.rows()
    ]
    words = {True: "the same hash and figures", False: "NOT the same", None: "not recorded then"}
    lines = [Text(f"{found.scenario} seed {found.seed}, {found.side}: {words[found.same]}", "bold")]
    if found.plant is not None:
        lines.append(Text(f"SELF-TEST with the fault {found.plant}", "bold red"))
    if not found.same_code:
        lines.append(Text("the code has changed since the run", "yellow"))
    if found.played.error is not None:
        lines.append(Text(f"{found.played.status}: {found.played.error}", "red"))
    lines.append(Text(f"{found.events} events, hash {found.played.trajectory_hash or '-'}"))
    lines.extend(Text(note) for note in found.notes)
    columns = ("metric", "recorded", "replayed", "baseline", "")
    return Group(*lines, table("Figures", columns, rows))


def _mark(values: list[Any]) -> str:
    _, now, base = values
    return "" if base is None or now == base else "differs from the baseline"
