"""How experiments are shown: how far they are while they run, and tables of what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from agent_gym.apps.cli.output import notes, table
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.training.rl.result import error_text, figure_text, interval_text

POLL_S = 0.5
LINE_S = 20.0
Steps = Callable[[], tuple[int, int]]


def say(text: str) -> None:
    """Print a line on stderr."""
    notes.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def shown_steps(title: str, steps: Steps, clock: Clock | None = None) -> Iterator[None]:
    """Show how many steps are done and what is left: a bar at a terminal, lines elsewhere."""
    stop = Event()
    show = _bar if notes.is_terminal else _lines
    thread = Thread(target=show, args=(title, steps, stop, clock or SystemClock()), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def told_if_stopped() -> Iterator[None]:
    """Say how it goes on to whoever stops it, by Ctrl-C or by a request to end (SIGTERM)."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        say("Stopped. What is done is kept; the same command goes on from the last checkpoints.")
        raise


def steps_line(title: str, done: int, total: int, begun: int, elapsed_s: float) -> str:
    """Return how far it is in one line; what was done before counts, but not for the speed.

    Example:
        >>> steps_line("gamma", 600, 1000, 200, 10.0)
        'gamma: 600 of 1,000 steps, about 10 s left'
    """
    speed = (done - begun) / elapsed_s if elapsed_s > 0 else 0.0
    left = f", about {(total - done) / speed:,.0f} s left" if speed > 0 else ""
    return f"{title}: {done:,} of {total:,} steps{left}"


def _bar(title: str, steps: Steps, stop: Event, _clock: Clock) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(title, total=steps()[1])
        while not stop.wait(POLL_S):
            bar.update(task, completed=steps()[0])


def _lines(title: str, steps: Steps, stop: Event, clock: Clock) -> None:
    began_s, begun = clock.monotonic_s(), steps()[0]
    while not stop.wait(LINE_S):
        done, total = steps()
        say(steps_line(title, done, total, begun, clock.monotonic_s() - began_s))


def summary_view(title: str, summary: dict[str, Any]) -> RenderableType:
    """Return the arms, those against the first, what failed, and what to keep in mind."""
    arms = summary["arms"]
    columns = ("arm", "seeds", "IQM", "mean", "worst", "best", "steps to threshold", "cpu s")
    parts: list[RenderableType] = [table(title, columns, [_arm(arm) for arm in arms])]
    compared = [arm for arm in arms if arm["against_first"] is not None]
    if compared:
        heads = ("arm", "difference of IQM", "chance to be ahead", "p (Holm)", "steps: p (Holm)")
        rows = [_compared(arm) for arm in compared]
        parts.append(table(f"Against {arms[0]['name']}", heads, rows))
    for arm in arms:
        for run in arm["runs"]:
            if run["status"] == "error":
                why = error_text(run["error"], "error")
                parts.append(Text(f"Failed: {arm['name']} seed {run['seed']}: {why}"))
    parts += [Text(f"Note: {note}") for note in summary["notes"]]
    return Group(*parts)


def search_view(found: dict[str, Any]) -> RenderableType:
    """Return the trials, best first, and where the best settings are."""
    columns = ("trial", "state", "score", "seeds", "settings")
    ranked = sorted(found["trials"], key=lambda row: (row["score"] is None, -(row["score"] or 0)))
    rows: list[tuple[object, ...]] = [
        (
            row["number"],
            row["state"],
            _number(row["score"]),
            len(row["scores"]),
            ", ".join(f"{key}={_short(value)}" for key, value in row["settings"].items()),
        )
        for row in ranked
    ]
    parts: list[RenderableType] = [table(f"Search {found['name']}", columns, rows)]
    if found["best"] is None:
        parts.append(Text("No trial has finished"))
    else:
        parts.append(Text(f"Best settings: {found['best_file']}", overflow="fold"))
        parts.append(Text("Note: the best of many flatters; train it with fresh seeds"))
    return Group(*parts)


def _arm(arm: dict[str, Any]) -> tuple[object, ...]:
    count = str(arm["n"])
    for word in ("failed", "missing"):
        count += f", {arm[word]} {word}" if arm[word] else ""
    return (
        arm["name"],
        count,
        _interval(arm["iqm"]),
        _interval(arm["mean"]),
        _number(arm["worst"]),
        _number(arm["best"]),
        _reached(arm["steps_to_threshold"]),
        "-" if arm["cpu_s"] is None else f"{arm['cpu_s']:,.0f}",
    )


def _compared(arm: dict[str, Any]) -> tuple[object, ...]:
    against = arm["against_first"]
    chance, steps = against["improvement"], against["steps"]
    return (
        arm["name"],
        _signed(against["difference_of_iqm"]),
        f"{chance['estimate']:.2f} [{chance['low']:.2f}, {chance['high']:.2f}]",
        f"{chance['p_holm']:.3f}",
        "-" if steps is None else f"{steps['p_holm']:.3f}",
    )


def _reached(steps: dict[str, Any] | None) -> str:
    if steps is None:
        return "-"
    middle = steps["median"]["estimate"]
    told = "not reached" if middle is None else f"{middle:,.0f}"
    return f"{told} ({steps['reached']} of {steps['n']})"


def _interval(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return interval_text(found["estimate"], found["low"], found["high"])


def _number(value: float | None) -> str:
    return "-" if value is None else figure_text(value)


def _signed(value: float) -> str:
    return ("" if value < 0.0 else "+") + figure_text(value)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
