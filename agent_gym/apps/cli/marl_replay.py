"""``agent-gym marl record|verify|show``: battles that can be watched again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.marl_players import AsJson, Battles
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.apps.cli.workspace import check_target, check_writable
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import atomic_path, home, write_text
from agent_gym.evaluation.battle import (
    ENDING,
    Film,
    Replay,
    Start,
    film_of,
    open_team,
    read_replay,
    record,
    verify,
    verify_player,
    write_replay,
)
from agent_gym.reporting.battle import film_page, outcome
from agent_gym.rollouts.progress import progress_bar

HASH, SHOWN = re.compile(r"\b[0-9a-f]{32,}\b"), 12
"""What is cut for a reader; whole in ``--json``."""
DRAWN_BY = {".gif": "animation:gif_of", ".mp4": "videos:mp4_of"}
"""What draws a film, in ``reporting.battle``."""
ReplayFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help=f"Replays (*{ENDING}), or folders of them.")
]


@with_options("battles", Battles, "Who plays what")
@writes("replays of battles")
def record_battles(
    battles: Battles,
    episodes: Annotated[int, typer.Option(min=1, help="How many battles.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default: replays in the folder of results.")
    ] = None,
    replace: Annotated[bool, typer.Option(help="Write over replays of the same name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Play battles and keep each as a replay: actions, hashes of states, what the team thought."""
    folder = home() / "replays" if out is None else out
    check_writable(folder)
    player = battles.player()
    battle = battles.battle(player)
    stem = f"{battle.name}-{player.name}-seed{battles.seed}"
    paths = [folder / f"{stem}-{k:04d}{ENDING}" for k in range(1, episodes + 1)]
    _check_places(paths, replace=replace)
    rows: list[dict[str, Any]] = []
    with progress_bar("battles") as progress:
        for k, path in enumerate(paths, start=1):
            replay = record(player, battle, Start(battles.seed, k))
            write_replay(path, replay)
            rows.append({"file": str(path), **_facts(replay)})
            progress(k, episodes, {"status": "ok"})
    won = sum(row["won"] for row in rows)
    payload = {"folder": str(folder), "won": won, "episodes": episodes, "replays": rows}
    title = f"{won} of {episodes} won, in {folder}"
    emit(payload, as_json=as_json, view=_table(title, rows))


def verify_replays(
    files: ReplayFiles,
    policy: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Who must decide so again.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play replays again; one that was changed is refused with the step at fault.

    With --policy the team must also decide again as it did.
    """
    player = None if policy is None else open_team(policy)
    rows: list[dict[str, Any]] = []
    with progress_bar("replays") as progress:
        paths = list(_paths(files))
        for done, path in enumerate(paths, start=1):
            row: dict[str, Any] = {"file": str(path), "verified": False}
            try:
                replay = read_replay(path)
                verify(replay)
                if player is not None:
                    verify_player(replay, player)
                row |= {"verified": True, **_facts(replay)}
            except DataError as error:
                row["error"] = error.as_dict()
            rows.append(row)
            progress(done, len(paths), {"status": "ok" if row["verified"] else "error"})
    passed = all(row["verified"] for row in rows)
    cells: list[tuple[object, ...]] = [
        (Path(row["file"]).name, "yes" if row["verified"] else "NO", _words(row)) for row in rows
    ]
    view = table("Played again", ("replay", "holds", "found"), cells)
    emit({"passed": passed, "replays": rows}, as_json=as_json, view=view)
    if not passed:
        raise typer.Exit(EXIT_DATA)


@writes("a page, and a film where one is asked for")
def show_replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A replay.")],
    out: Annotated[
        Path | None, typer.Option(help="Page to write; default: beside the replay.")
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="Also write a GIF.")] = None,
    mp4: Annotated[Path | None, typer.Option(help="Also write a video.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a page that plays a replay in any browser, and a GIF or a video if asked for."""
    page = file.with_name(file.name.removesuffix(ENDING) + ".html") if out is None else out
    targets = {"--out": (page, ".html"), "--gif": (gif, ".gif"), "--mp4": (mp4, ".mp4")}
    for option, (path, ending) in targets.items():
        if path is not None and path.suffix != ending:
            raise ConfigError(f"this is written as {ending}", where=option, found=str(path))
        if path is not None:
            check_target(path, option)
    replay = read_replay(file)
    film = film_of(replay)
    title = f"{replay.header.map}, {replay.header.player}, seed {replay.header.seed}"
    write_text(page, film_page(film, replay, str(file)))
    for path in (gif, mp4):
        if path is not None:
            content = _drawn(path.suffix, film, title)
            with atomic_path(path) as temporary:
                temporary.write_bytes(content)
    written = [str(path) for path, _ in targets.values() if path is not None]
    payload = {"file": str(file), "written": written, **_facts(replay)}
    text = f"{outcome(replay.header).capitalize()}. Written: {', '.join(written)}"
    emit(payload, as_json=as_json, view=Text(text, overflow="fold"))


def _drawn(ending: str, film: Film, title: str) -> bytes:
    """Return a film as bytes of a format; the library that draws is imported only now."""
    module, _, function = DRAWN_BY[ending].partition(":")
    content: bytes = getattr(import_module(f"agent_gym.reporting.battle.{module}"), function)(
        film, title
    )
    return content


def _check_places(paths: list[Path], *, replace: bool) -> None:
    for path in paths:
        check_target(path)
        if path.exists() and not replace:
            raise ConfigError(
                "there is a replay of this name already",
                where=str(path),
                remedy="Choose another folder with --out, or say --replace",
            )


def _paths(files: list[Path]) -> Iterator[Path]:
    for path in files:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.glob(f"*{ENDING}"))
        if not inside:
            raise ConfigError("no replay is in this folder", where=str(path), expected=f"*{ENDING}")
        yield from inside


def _facts(replay: Replay) -> dict[str, Any]:
    told = replay.header
    return {
        "map": told.map,
        "player": told.player,
        "checkpoint": told.checkpoint,
        "seed": told.seed,
        "episode": told.episode,
        "steps": told.steps,
        "won": told.won,
        "total_reward": told.total_reward,
        "seal": replay.seal,
    }


def _words(row: dict[str, Any]) -> str:
    if row["verified"]:
        return f"{row['steps']} steps, {'won' if row['won'] else 'lost'}"
    error = row["error"]
    parts = [error["what"], *(f"{name} {error[name]}" for name in ("where", "found", "expected"))]
    words = "; ".join(part for part in parts if not part.endswith(" None"))
    return HASH.sub(lambda found: found[0][:SHOWN], words)


def _table(title: str, rows: list[dict[str, Any]]) -> Any:
    cells: list[tuple[object, ...]] = [
        (Path(row["file"]).name, row["steps"], "won" if row["won"] else "lost", row["total_reward"])
        for row in rows
    ]
    return table(title, ("replay", "steps", "end", "return"), cells)
