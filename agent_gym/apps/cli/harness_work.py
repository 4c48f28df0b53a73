"""The work of ``agent-gym harness``: it runs the loop, shows how far it is, and tells the end."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.pipeline.automation.job import JobOutcome
from agent_gym.pipeline.harness.options import HarnessOptions, HarnessOutcome
from agent_gym.pipeline.harness.run import run_harness
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.batch import Progress as Told

HASH, FAILED, SIGNALLED = 12, 1, 128


class _Bars:
    """A bar for each stage, on the side where notes go."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: Any = None

    def stage(self, name: str, total: int | None = None) -> Told:
        """Begin a stage."""
        self._finish()
        self._task = task = self._bars.add_task(name, total=total)

        def move(done: int, of: int, row: dict[str, Any]) -> None:
            self._bars.update(task, completed=done, total=of)

        return move

    def tick(self) -> None:
        """Count one more of the stage."""
        self._bars.advance(self._task)

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bars.tasks[-1].total or 1
            self._bars.update(self._task, completed=total, total=total)


def play(options: HarnessOptions, folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Run the loop and print what it came to."""
    place = LoopFolder.at(folder)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=notes) as bars, _ended_at_once(bars):
        outcome = run_harness(options, place, _Bars(bars), argv=sys.argv, url=url)
    payload = outcome.model_dump(mode="json") | {"promoted": outcome.promoted}
    emit(payload, as_json=as_json, view=_view(outcome))
    if not outcome.rollout_verified:
        raise typer.Exit(FAILED)


@contextmanager
def _ended_at_once(bars: Progress) -> Iterator[None]:
    """End on Ctrl-C or SIGTERM as on kill -9, after which everything goes on, and say so.

    The job runs in a thread, which could not be stopped in any other way.
    """
    if current_thread() is not main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        bars.stop()
        notes.print("Stopped. The same command finishes this run.", soft_wrap=True)
        os._exit(SIGNALLED + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _view(outcome: HarnessOutcome) -> RenderableType:
    again = "one that had been cut off was finished; run it again for a new one"
    rows: list[tuple[object, ...]] = [
        ("run", again if outcome.cut_off else "new"),
        ("snapshots", ", ".join(f"{count} {name}" for name, count in outcome.snapshots.items())),
        ("trajectories stored", f"{outcome.trajectories['stored']:,}"),
        ("steps stored", f"{outcome.steps:,}"),
        ("champion before", outcome.champion_before[:HASH]),
        ("ready before playing", outcome.readiness_before["reason"] or "yes"),
        ("ready after playing", outcome.readiness_after["reason"] or "yes"),
        *_job_rows(outcome.job),
        ("agents answer with", _answering(outcome)),
        ("rollout verified", "yes" if outcome.rollout_verified else f"NO: {outcome.rollout_words}"),
        ("report", outcome.report),
    ]
    parts: list[RenderableType] = [table("Harness", ("what", "found"), rows)]
    verdict = (outcome.job.stages.get("verdict") if outcome.job else None) or {}
    if verdict:
        checks: list[tuple[object, ...]] = [
            (each["name"], "yes" if each["passed"] else "NO", each["words"])
            for each in verdict["checks"]
        ]
        parts.append(table("Gate", ("check", "passed", "found"), checks))
    return Group(*parts)


def _answering(outcome: HarnessOutcome) -> str:
    models = Counter((model or "nobody")[:HASH] for model in outcome.answered.values())
    return ", ".join(f"{model} ({count} agents)" for model, count in models.most_common())


def _job_rows(job: JobOutcome | None) -> list[tuple[object, ...]]:
    if job is None:
        return [("training", "not asked for")]
    told = job.stages.get("training")
    said = job.reason if job.ending in job.reason else f"{job.ending}: {job.reason}"
    rows: list[tuple[object, ...]] = [("outcome", said)]
    if told:
        for at, one in reversed(list(enumerate(told["rounds"], 1))):
            words = (
                f"{one['groups']['kept']} groups learned from, {one['groups']['dropped']} all "
                f"equal; mean return {one['return_mean']:+.3f}; model {one['model_after'][:HASH]}"
            )
            rows.insert(0, (f"round {at}", words))
    return rows
