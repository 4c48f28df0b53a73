"""How training is shown: bars or lines while it goes on, a table of all seeds at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Group, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from agent_gym.apps.cli.output import notes, table
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import DataError
from agent_gym.training.rl.result import error_text, figure_text, interval_text
from agent_gym.training.rl.run_records import read_run, steps_taken

POLL_S = 0.5
LINE_S = 20.0


class Watched:
    """The seeds of one training while they are at work, read from their files.

    Args:
        folder: Holds ``seed_<n>``.
        seeds: Which.
        total: Steps of each.
    """

    def __init__(self, folder: Path, seeds: Sequence[int], total: int) -> None:
        self.seeds, self.total = tuple(seeds), total
        self._folder = folder

    def steps(self, seed: int) -> int:
        """Return how far a seed is."""
        return steps_taken(self._folder / f"seed_{seed}", self.total)

    def last_look(self, seed: int) -> str:
        """Return the mean return of the last evaluation, as text."""
        try:
            looks = read_run(self._folder / f"seed_{seed}", seed).looks
        except DataError:  # a row is being written
            return ""
        return f"greedy {figure_text(looks[-1][1])}" if looks else ""


@contextmanager
def shown_progress(watched: Watched, clock: Clock | None = None) -> Iterator[None]:
    """Show how far all seeds are: bars at a terminal, a line now and then elsewhere."""
    stop = Event()
    show = _bars if notes.is_terminal else _lines
    thread = Thread(target=show, args=(watched, stop, clock or SystemClock()), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def say(text: str) -> None:
    """Print a line on stderr."""
    notes.print(text, markup=False, highlight=False, soft_wrap=True)


def _bars(watched: Watched, stop: Event, _clock: Clock) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:>9,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[look]}"),
        TimeRemainingColumn(),
    )
    many = len(watched.seeds) > 1
    with Progress(*columns, console=notes, transient=True) as bar:
        tasks: dict[int, TaskID] = {
            seed: bar.add_task(f"seed {seed}", total=watched.total, look="")
            for seed in watched.seeds
        }
        every = watched.total * len(tasks)
        whole = bar.add_task("all seeds", total=every, look="") if many else None
        while True:
            steps = {seed: watched.steps(seed) for seed in tasks}
            for seed, task in tasks.items():
                bar.update(task, completed=steps[seed], look=watched.last_look(seed))
            if whole is not None:
                bar.update(whole, completed=sum(steps.values()))
            if stop.wait(POLL_S):
                return


def _lines(watched: Watched, stop: Event, clock: Clock) -> None:
    began_s, begun = clock.monotonic_s(), sum(map(watched.steps, watched.seeds))
    while not stop.wait(LINE_S):
        steps = {seed: watched.steps(seed) for seed in watched.seeds}
        elapsed_s = clock.monotonic_s() - began_s
        say(progress_line(steps, watched, begun, elapsed_s))


def progress_line(steps: dict[int, int], watched: Watched, begun: int, elapsed_s: float) -> str:
    """Return how far all seeds are and how long it will take, in one line."""
    done, every = sum(steps.values()), watched.total * len(steps)
    parts = []
    for seed, taken in steps.items():
        look = watched.last_look(seed)
        parts.append(f"seed {seed} {taken / watched.total:.0%}" + (f" ({look})" if look else ""))
    speed = (done - begun) / elapsed_s if elapsed_s > 0 else 0.0
    left = f", about {(every - done) / speed:,.0f} s left" if speed > 0 else ""
    return f"{done:,} of {every:,} steps{left}: {', '.join(parts)}"


def trained_view(said: dict[str, Any]) -> RenderableType:
    """Return the table of all seeds, the figure over them, and where everything lies."""
    rows: list[tuple[object, ...]] = []
    for each in said["seeds"]:
        if each["final_mean"] is None:
            error = each["error"] or {}
            rows.append((each["seed"], each["status"], error.get("what", ""), "", "", ""))
            continue
        share = "" if each["share_above_200"] is None else f"{each['share_above_200']:.0%}"
        rows.append(
            (
                each["seed"],
                each["status"].replace("_", " "),
                interval_text(each["final_mean"], each["final_low"], each["final_high"]),
                share,
                f"{each['best_step']:,} of {each['steps']:,}",
                "" if each["cpu_s"] is None else f"{each['cpu_s']:.0f}",
            )
        )
    columns = ("seed", "status", "final mean", ">= 200", "kept step", "cpu s")
    parts: list[RenderableType] = [table(said["title"], columns, rows)]
    if said["iqm"] is not None:
        over = f"IQM over {said['n']} seed{'s' * (said['n'] != 1)}"
        text = f"{over}: {interval_text(said['iqm'], said['low'], said['high'])}"
        parts.append(Text(text, style="bold"))
    parts += [
        Text(f"Seed {each['seed']} failed: {error_text(each['error'], each['status'])}")
        for each in said["seeds"]
        if each["status"] == "error"
    ]
    parts += [Text(f"{name}: {path}", overflow="fold") for name, path in said["files"].items()]
    parts += [Text(f"Note: {text}") for text in said["notes"]]
    return Group(*parts)
