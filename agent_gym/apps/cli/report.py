"""``agent-gym report``: the page of a run of any kind, by its name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent_gym.apps.cli.output import emit, screen, table
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home, write_text
from agent_gym.core.registry import unknown
from agent_gym.reporting.pages import (
    COMMENT,
    NIGHTLY,
    Page,
    comment_of,
    find_pages,
    page_in,
)

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
LATEST = "latest"


@app.callback()
def report(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Name of a run, its folder or its page; latest is the last night. Without it all "
            "pages are listed.",
        ),
    ] = None,
    open_it: Annotated[
        bool, typer.Option("--open", help="Open it in the browser of this machine.")
    ] = False,
    markdown: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Write the comment of a night for a pull request here; - prints it.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Tell where the page of a run is: nightly, backtest, training, UMC, battle, harness, sandbox.

    Example: agent-gym report latest --open
    """
    if run is None:
        if open_it or markdown is not None:
            raise ConfigError(
                "it is not said which page",
                where="--open" if open_it else "--markdown",
                expected="RUN",
                remedy="`agent-gym report` lists all; `agent-gym report latest --open` opens one",
            )
        show_all(find_pages(home()), as_json=as_json)
        return
    page = find(run)
    if markdown is not None:
        write_comment(page, markdown, as_json=as_json)
        return
    opened = open_it and typer.launch(page.absolute().as_uri()) == 0
    note = "" if opened or not open_it else "\nNo browser could be opened; open this file yourself."
    payload = {"run": run, "page": str(page), "opened": opened}
    emit(payload, as_json=as_json, view=Text(f"{page}{note}", overflow="fold", no_wrap=True))


def write_comment(page: Path, target: str, *, as_json: bool) -> None:
    """Write the Markdown of a night to a file, or print it."""
    found = comment_of(page)
    if found is None:
        raise ConfigError(
            "this run has no comment for a pull request",
            where=str(page),
            expected=f"a night, with {COMMENT} beside its page",
            remedy="`agent-gym nightly --comment FILE` writes one; other runs have a page only",
        )
    text = found.read_text(encoding="utf-8")
    if target == "-":
        if as_json:
            emit({"page": str(page), "markdown": text}, as_json=True, view="")
        else:  # as it is: a line that is broken is another Markdown
            screen.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    check_target(Path(target), "--markdown")
    write_text(Path(target), text)
    emit({"page": str(page), "written": target}, as_json=as_json, view=Text(f"Written: {target}"))


def show_all(pages: tuple[Page, ...], *, as_json: bool) -> None:
    """Print every page, the newest first."""
    rows: list[tuple[object, ...]] = [
        (page.name, page.kind, _time(page.changed_s), str(page.path)) for page in pages
    ]
    payload = {
        "pages": [
            {"name": name, "kind": kind, "written": written, "page": path}
            for name, kind, written, path in rows
        ]
    }
    title = f"Pages in {home()}" if rows else f"No pages in {home()} yet; try `agent-gym demo`"
    emit(payload, as_json=as_json, view=table(title, ("run", "kind", "written", "page"), rows))


def find(word: str) -> Path:
    """Return the page that a word means: a path, or the name of a run."""
    path = Path(word).expanduser()
    if path.is_file() and path.suffix == ".html":
        return path
    inside = page_in(path) if path.is_dir() else None
    if inside is not None:
        return inside
    pages = {page.name: page.path for page in reversed(find_pages(home()))}
    wanted = NIGHTLY if word == LATEST else word
    if wanted in pages:
        return pages[wanted]
    trained = path if path.is_dir() else home() / "experiments" / word
    if trained.is_dir():
        raise ConfigError(
            "this run has no page yet",
            where=str(trained),
            remedy=f"`agent-gym results page {trained}` makes that of a training",
        )
    raise _missing(word, tuple(pages))


def _missing(word: str, names: tuple[str, ...]) -> ConfigError:
    """Return why there is no page for a word; only names that would work are offered."""
    if names and word != LATEST:
        nights = (LATEST,) if NIGHTLY in names else ()
        return unknown("run with a page", word, tuple(sorted({*names, *nights})))
    return ConfigError(
        "there is no night yet" if names else "there are no pages yet",
        where=str(home()),
        found=word,
        remedy="`agent-gym nightly` makes the page of a night"
        + (", `agent-gym report` lists the other pages" if names else ", `agent-gym demo` another"),
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
