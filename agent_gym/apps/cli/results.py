"""``agent-gym results``: tables, pages and videos from stored training runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.reporting.canvas import steps_text
from agent_gym.reporting.rl import read_arms, verdict_of, write_lander_results, write_report
from agent_gym.reporting.rl.page import best_arm
from agent_gym.reporting.rl.results import algorithm_of

app = typer.Typer(no_args_is_help=True)
DOCS = Path("docs") / "results"


@app.callback()
def results() -> None:
    """What stored training runs have come to."""


@app.command()
@writes("table, page and picture of stored runs")
def lander(
    sources: Annotated[
        list[Path],
        typer.Option("--from", help="Folder above the runs; may be given more than once."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the table, its page and picture.")] = DOCS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write the table of the lunar lander, our seeds beside the published figures."""
    check_writable(out)
    words = [word for source in sources for word in ("--from", str(source))]
    command = shlex.join(("agent-gym", "results", "lander", *words, "--out", str(out)))
    rows = write_lander_results(sources, out, command)
    shown = table(
        f"Lunar lander ({out / 'lunar_lander.md'})",
        ("run", "algorithm", "steps taken", "seeds", "IQM", "95 %", "published"),
        [_line(row) for row in rows],
    )
    emit({"out": str(out), "rows": rows}, as_json=as_json, view=shown)


@app.command()
@writes("a page with curves and videos")
def page(
    folder: Annotated[Path, typer.Argument(help="A run, or a folder above several.")],
    out: Annotated[Path | None, typer.Option(help="Where to; default: the folder itself.")] = None,
    videos: Annotated[bool, typer.Option(help="Film the best, median and worst episode.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write the offline page of a training, the picture of its curve, and videos."""
    check_writable(out or folder)
    found = verdict_of(best_arm(read_arms(folder)))
    files = write_report(folder, out, videos=videos, say=_say)
    payload = {
        "verdict": found.word,
        "headline": found.headline,
        "page": str(files.page),
        "curve": str(files.curve),
        "videos": list(map(str, files.videos)),
    }
    rows: list[tuple[object, ...]] = [("verdict", found.word), ("result", found.headline)]
    rows += [("page", str(files.page)), ("curve", str(files.curve))]
    rows += [("video", str(path)) for path in files.videos]
    emit(payload, as_json=as_json, view=table("Training", ("", ""), rows))


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    known = row["published"]
    ends = "-" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
    beside = "-" if known is None else f"{known['mean']:g} at {steps_text(known['steps'])}"
    trained = (row["name"], algorithm_of(row), row["steps_taken"], row["seeds"])
    return (*trained, f"{row['iqm']:.1f}", ends, beside)


def _say(text: str) -> None:
    notes.print(text, markup=False, highlight=False, soft_wrap=True)
