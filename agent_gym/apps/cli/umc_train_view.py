"""How the training of UMC is shown: a bar while it goes on, a table of folds at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from agent_gym.apps.cli.evaluate_view import evaluation_view
from agent_gym.apps.cli.output import notes, table
from agent_gym.evaluation.umc_walk import UmcRun
from agent_gym.training.umc import TrainEvent, UMCTrained
from agent_gym.training.umc.records import FoldRecord, Tell


@contextmanager
def shown_training(out: Path) -> Iterator[Tell]:
    """Show folds and steps on stderr; whoever stops it is told how it goes on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[score]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task("begin", total=None, score="")

        def tell(event: TrainEvent) -> None:
            fold = f"fold {event.fold} of {event.folds}"
            if event.fit is None:
                bar.reset(task, description=fold, total=None, score="")
                return
            fit = event.fit
            bar.update(
                task,
                description=f"{fold}, {fit_words(fit.fit)}",
                completed=fit.step,
                total=fit.steps,
                score="" if fit.score is None else f"held out {fit.score:.4g}",
            )

        try:
            yield tell
        except (KeyboardInterrupt, SystemExit):
            notes.print(
                f"Stopped. Kept in {out}; the same command goes on from there, to the bit.",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            raise


def fit_words(name: str) -> str:
    """Return what a fit is called, without its place in the seed tree.

    Example:
        >>> fit_words("fit/0/umc/model/umc/recurrent/whole")
        'recurrent, whole past'
    """
    parts = name.split("/")
    told = parts[-2] if parts[-1] == "whole" else parts[-1]
    return f"{told}, whole past" if parts[-1] == "whole" else told


def trained_view(trained: UMCTrained, run: UmcRun | None, registry: Path) -> RenderableType:
    """Return the table of folds, the verdict of a walk, and where everything lies."""
    heads = ("fold", "model", "decides", "steps", "cpu s")
    rows: list[tuple[object, ...]] = [_row(fold) for fold in trained.folds]
    parts: list[RenderableType] = [table("Trained", heads, rows)]
    parts += [
        Text(f"Fold {fold.number}: {fold.agent.mind.model.report.why}") for fold in trained.folds
    ]
    if run is not None:
        parts.append(evaluation_view(run.evaluation, registry, []))
    parts.append(Text(f"Written to {trained.folder}", overflow="fold"))
    return Group(*parts)


def _row(fold: FoldRecord) -> tuple[object, ...]:
    agent = fold.agent
    steps = ", ".join(
        f"{fit_words(fit.name)} {fit.steps:,}{' (warm)' if fit.warm else ''}" for fit in fold.fits
    )
    chosen = agent.mind.model.report.chosen
    return fold.number, chosen, agent.plans.decider, steps, round(fold.spent.cpu_s, 1)
