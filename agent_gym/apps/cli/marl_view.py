"""How trainings of teams are shown: bars while they go on, a table of all seeds at their end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Group, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from agent_gym.apps.cli.output import notes, table
from agent_gym.apps.cli.train_view import LINE_S, POLL_S, say
from agent_gym.evaluation.marl import AGREED, TeamRun
from agent_gym.evaluation.statistics import wilson
from agent_gym.reporting.text import many
from agent_gym.training.marl.jobs import TeamJob, read_progress
from agent_gym.training.rl.result import error_text

SHOWN_FIGURES = ("entropy", "approx_kl", "clip_fraction", "information", "model_r2")
HEADS = ("seed", *(f"steps to {rate:.0%}" for rate in AGREED), "fresh starts won", "steps", "cpu s")


@contextmanager
def shown_trainings(jobs: Sequence[TeamJob], workers: int) -> Iterator[None]:
    """Show how far all trainings are: bars at a terminal, a line now and then elsewhere."""
    first = os.path.commonpath([job.folder.parent for job in jobs])
    say(f"{many(len(jobs), 'training')}, {min(workers, len(jobs))} at a time, into {first}")
    stop = Event()
    show = _bars if notes.is_terminal else _lines
    thread = Thread(target=show, args=(jobs, stop), daemon=True)
    thread.start()
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        say("Stopped. The same command goes on from the last checkpoint of each, to the bit.")
        raise
    finally:
        stop.set()
        thread.join()


def _bars(jobs: Sequence[TeamJob], stop: Event) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:>9,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[look]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        every = sum(job.config.env_steps for job in jobs)
        whole = bar.add_task("all", total=every, look="")
        tasks: dict[str, TaskID] = {}
        while True:
            bar.update(whole, completed=_watch(jobs, bar, tasks), look=f"{_done(jobs)} done")
            if stop.wait(POLL_S):
                return


def _watch(jobs: Sequence[TeamJob], bar: Progress, tasks: dict[str, TaskID]) -> int:
    """Move the bars of trainings that are at work; return the steps of all."""
    steps = 0
    for job in jobs:
        total, key = job.config.env_steps, str(job.folder)
        found = read_progress(job.folder)
        if found is None:
            steps += total if job.done else 0
            if key in tasks:
                bar.remove_task(tasks.pop(key))
            continue
        if key not in tasks:
            tasks[key] = bar.add_task(job.label, total=total, look="")
        steps += min(total, found["env_steps"])
        bar.update(tasks[key], completed=min(total, found["env_steps"]), look=look_words(found))
    return steps


def _lines(jobs: Sequence[TeamJob], stop: Event) -> None:
    while not stop.wait(LINE_S):
        say(progress_line(jobs))


def progress_line(jobs: Sequence[TeamJob]) -> str:
    """Return how far all trainings are, in one line."""
    parts = []
    for job in jobs:
        found = read_progress(job.folder)
        if found is not None:
            share = found["env_steps"] / job.config.env_steps
            parts.append(f"{job.label} {share:.0%} ({look_words(found)})")
    return f"{_done(jobs)} of {len(jobs)} done" + "".join(f"; {part}" for part in parts)


def _done(jobs: Sequence[TeamJob]) -> int:
    return sum(job.done for job in jobs)


def look_words(found: Mapping[str, Any]) -> str:
    """Return the win rate of the last look and what tells whether it learns well.

    Example:
        >>> told = {"look": {"wins": 60, "episodes": 64}, "figures": {"entropy": 0.5}}
        >>> look_words(told)
        'wins 94 %, entropy 0.5'
    """
    look, figures = found["look"], found["figures"]
    wins = "no look yet" if look is None else f"wins {100 * look['wins'] / look['episodes']:.0f} %"
    names = [name for name in SHOWN_FIGURES if name in figures]
    names += [name for name in figures if name.startswith("ess ") and name != "ess fresh"]
    parts = [
        f"{name.replace('approx_', '').replace('_', ' ')} {figures[name]:.2g}" for name in names
    ]
    return ", ".join([wins, *parts])


def seed_row(run: TeamRun, cpu_s: float) -> dict[str, Any]:
    """Return what one seed reached, as plain values."""
    times = {str(rate): run.reached(rate, run.end) for rate in AGREED}
    return {
        "seed": run.seed,
        "env_steps": run.env_steps,
        "steps_to": {
            rate: {"env_steps": steps, "reached": seen} for rate, (steps, seen) in times.items()
        },
        "final": wilson(run.wins, run.episodes).as_dict()
        | {"wins": run.wins, "episodes": run.episodes},
        "model_hash": run.model_hash,
        "cpu_s": cpu_s,
    }


def trained_view(said: Mapping[str, Any]) -> RenderableType:
    """Return the table of all seeds, the figures over them, and where everything lies.

    Without a seed that was trained there is only to say what failed.
    """
    rows = [_row(each) for each in said["seeds"]]
    untrained = Text(f"Nothing was trained: {said['title']}", style="bold red")
    parts: list[RenderableType] = [table(said["title"], HEADS, rows) if rows else untrained]
    figures = said["figures"]
    if figures is not None:
        over = f"Over {len(figures['seeds'])} seeds" if len(rows) > 1 else "One seed"
        parts.append(Text(f"{over}: {_summary(figures)}", style="bold"))
    parts += [
        Text(f"Seed {seed} failed: {error_text(error, 'it was not done')}")
        for seed, error in said["failed"].items()
    ]
    if rows:
        parts.append(Text(f"Written to {said['folder']}", overflow="fold"))
    return Group(*parts)


def _row(each: Mapping[str, Any]) -> tuple[object, ...]:
    final = each["final"]
    return (
        each["seed"],
        *(reached_words(found) for found in each["steps_to"].values()),
        f"{final['estimate']:.1%} ({final['low']:.1%}-{final['high']:.1%})",
        f"{each['env_steps']:,}",
        f"{each['cpu_s']:.0f}",
    )


def reached_words(found: Mapping[str, Any]) -> str:
    """Return steps to a win rate; what was not reached is later than the last look.

    Example:
        >>> reached_words({"env_steps": 56000, "reached": True})
        '56,000'
        >>> reached_words({"env_steps": 250000, "reached": False})
        'not by 250,000'
    """
    return f"{'' if found['reached'] else 'not by '}{found['env_steps']:,}"


def _summary(figures: Mapping[str, Any]) -> str:
    final = figures["final"]
    words = f"final wins {final['estimate']:.1%}"
    if final["low"] is not None:
        words += f" ({final['low']:.1%} to {final['high']:.1%})"
    if figures["best"] is not None:
        words += f", teams of the best looks {figures['best']['estimate']:.1%}"
    for rate, found in figures["steps_to"].items():
        median = found["median"]["estimate"]
        half = "half the seeds did not get there" if median is None else f"{median:,.0f} steps"
        words += f"; median to {float(rate):.0%}: {half}"
    return f"{words}; {figures['area']['estimate']:.1%} on average over all steps"
