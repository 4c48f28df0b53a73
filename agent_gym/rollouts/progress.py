"""A progress bar for whoever waits at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from agent_gym.rollouts.batch import Progress


@contextmanager
def progress_bar(title: str, console: Console | None = None) -> Iterator[Progress]:
    """Show a bar and yield the callback that moves it; failed rows are counted beside it.

    Example:
        >>> import io
        >>> with progress_bar("episodes", Console(file=io.StringIO())) as progress:
        ...     progress(1, 2, {"status": "ok"})
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeRemainingColumn(),
    )
    failed = 0
    with Bar(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, failed=0)

        def move(done: int, total: int, row: dict[str, Any]) -> None:
            nonlocal failed
            failed += row.get("status") != "ok"
            bar.update(task, completed=done, total=total, failed=failed)

        yield move
