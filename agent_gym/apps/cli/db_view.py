"""How the store's keeping is shown: bars while it goes on, tables at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent_gym.apps.cli.cleanup import size
from agent_gym.apps.cli.output import notes, table
from agent_gym.core.clock import SECOND_NS
from agent_gym.rollouts.database.keeping.place import Watch
from agent_gym.rollouts.database.keeping.statistics import StoreFigures


@contextmanager
def shown(*, quiet: bool) -> Iterator[Watch]:
    """Show a bar for each piece of work, if somebody looks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    hidden = quiet or not notes.is_terminal
    with Progress(*columns, console=notes, disable=hidden, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield watch


def lines(title: str, payload: dict[str, Any]) -> RenderableType:
    """Return a table of names and values."""
    rows: list[tuple[object, ...]] = [(name, str(value)) for name, value in payload.items()]
    return table(title, ("what", "is"), rows)


def stats_view(found: StoreFigures) -> RenderableType:
    """Return the figures of a store for a person."""
    tables: list[tuple[object, ...]] = [
        (
            each.name,
            each.rows,
            _size(each.bytes),
            _size(each.index_bytes),
            _or_unknown(each.dead_rows),
            each.partitions,
        )
        for each in found.tables
    ]
    indexes: list[tuple[object, ...]] = [
        (
            each.name,
            _size(each.bytes),
            _or_unknown(each.scans),
            _or_unknown(each.rows_per_scan),
            "broken" if not each.valid else "unused" if each.unused else "",
        )
        for each in found.indexes
    ]
    pending = ", ".join(found.schema["pending"]) or "none"
    whole = {
        "database": found.database,
        "schema": f"{found.schema['found']} (pending: {pending})",
        "bytes of the database": _size(found.bytes),
        "oldest": _time(found.oldest_ns),
        "newest": _time(found.newest_ns),
        "steps": f"{found.steps:,}",
        "step files": f"{found.step_files['files']:,}, {size(found.step_files['bytes'])}",
        "damaged files": found.step_files["damaged"],
        "waiting recordings": found.waiting,
        **{name.replace("_", " "): n for name, n in found.orphans.items() if name != "examples"},
    }
    heads = ("table", "rows", "size", "indexes", "dead rows", "partitions")
    marks = ("index", "size", "scans", "rows a scan", "note")
    return Group(
        lines("Store", whole), table("Tables", heads, tables), table("Indexes", marks, indexes)
    )


def _size(n_bytes: int | None) -> str:
    return "unknown" if n_bytes is None else size(n_bytes)


def _or_unknown(value: float | None) -> object:
    return "unknown" if value is None else round(value, 1)


def _time(at_ns: int | None) -> str:
    if at_ns is None:
        return "none"
    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
