"""How the command line speaks: one JSON document or a readable table, and errors with a remedy."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from agent_gym.apps.cli.exit_codes import EXIT_DATA, EXIT_OK, EXIT_RUN, EXIT_USAGE
from agent_gym.core.errors import AgentGymError, ConfigError, DataError
from agent_gym.core.files import to_json

__all__ = [
    "EXIT_DATA",
    "EXIT_OK",
    "EXIT_RUN",
    "EXIT_USAGE",
    "emit",
    "notes",
    "report",
    "screen",
    "table",
]

screen = Console()
notes = Console(stderr=True)


def emit(payload: dict[str, Any], *, as_json: bool, view: RenderableType) -> None:
    """Print the payload as JSON, or the view of it for a person."""
    if as_json:
        screen.print(to_json(payload), markup=False, highlight=False, soft_wrap=True)
    else:
        screen.print(view)


def table(title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> Table:
    """Return a table with text on the left and numbers on the right; cells are never markup."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(escape(_cell(value)) for value in row))
    return made


def report(error: AgentGymError, *, as_json: bool) -> int:
    """Print an error and return the exit code that belongs to it."""
    if as_json:
        screen.print(to_json(error.as_dict()), markup=False, highlight=False, soft_wrap=True)
    else:
        notes.print(f"[bold red]{type(error).__name__}[/]: {escape(error.what)}", soft_wrap=True)
        for field, value in error.as_dict().items():
            if field not in ("error", "what") and value is not None:
                notes.print(f"  {field + ':':10}{escape(value)}", soft_wrap=True, highlight=False)
    if isinstance(error, ConfigError):
        return EXIT_USAGE
    return EXIT_DATA if isinstance(error, DataError) else EXIT_RUN


def _cell(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
