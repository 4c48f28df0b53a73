"""``agent-gym experiment``: trainings that differ in one thing, compared over several seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.experiment_view import (
    say,
    search_view,
    shown_steps,
    summary_view,
    told_if_stopped,
)
from agent_gym.apps.cli.output import EXIT_RUN, emit
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import configure
from agent_gym.training.rl.experiment import (
    DESCRIPTION,
    Experiment,
    experiments,
    read_arms,
    read_description,
)
from agent_gym.training.rl.experiment_config import ExperimentConfig, config_path, read_experiment
from agent_gym.training.rl.run_records import ArmRuns
from agent_gym.training.rl.search import SettingsSearch
from agent_gym.training.rl.summary import Ask, summarize

MOST_WORKERS = 256
_FILE = typer.Argument(metavar="FILE", help="YAML or JSON file, or the name of a shipped one.")
_WORKERS = typer.Option(min=1, max=MOST_WORKERS, help="Runs at a time; no figure depends on it.")
_FRESH = typer.Option("--fresh", help="Begin anew, instead of going on with what is there.")
_JSON = typer.Option("--json", help="Print one JSON document.")
app = typer.Typer(no_args_is_help=True)


@app.callback()
def experiment() -> None:
    """Trainings that differ in one thing, compared over several seeds."""


@app.command()
@on_executor
@writes("trainings, their models and figures")
def run(
    file: Annotated[str, _FILE],
    workers: Annotated[int | None, _WORKERS] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each arm.")] = None,
    fresh: Annotated[bool, _FRESH] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Run every arm with every seed, and say which is better; only what is missing is run.

    Exit code 4 says that a run has failed; the same command tries it again.
    """
    config = read_experiment(config_path(file))
    if seeds is not None:
        config = configure(ExperimentConfig, config.model_dump() | {"seeds": seeds}, where=file)
    made = Experiment(config)
    check_writable(made.folder)
    if fresh:
        made.begin_anew()
    with told_if_stopped(), shown_steps(config.name, made.steps):
        summary = made.run(workers, say)
    payload = summary | {"folder": str(made.folder)}
    emit(payload, as_json=as_json, view=summary_view(f"Experiment {config.name}", summary))
    if any(arm["failed"] for arm in summary["arms"]):
        raise typer.Exit(EXIT_RUN)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Experiment, or its folder.")],
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Show what an experiment says so far; nothing is run."""
    summary = summarize(read_arms(name), _ask((name,), None))
    payload = {"name": name} | summary
    emit(payload, as_json=as_json, view=summary_view(f"Experiment {name}", summary))


@app.command()
def compare(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Experiments, or arms as EXPERIMENT/ARM."),
    ],
    threshold: Annotated[
        float | None, typer.Option(help="Mean return whose first reaching is counted in steps.")
    ] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Compare arms, of one experiment or of several, with the first that is named."""
    arms = _named_apart([(name, arm) for name in names for arm in read_arms(name)])
    if len(arms) < 2:
        raise ConfigError(
            "there is only one arm to compare",
            found=arms[0].name,
            remedy="Name another experiment, or another arm as EXPERIMENT/ARM",
        )
    summary = summarize(arms, _ask(names, threshold))
    emit(summary, as_json=as_json, view=summary_view("Comparison", summary))


@app.command()
@on_executor
@writes("the trials of a search and the best settings")
def search(
    file: Annotated[str, _FILE],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in all, those of earlier calls included.")
    ] = None,
    workers: Annotated[int | None, _WORKERS] = None,
    fresh: Annotated[bool, _FRESH] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Search for better settings, each tried with several seeds; goes on where it was stopped."""
    made = SettingsSearch(read_experiment(config_path(file)))
    check_writable(made.folder)
    if fresh:
        made.begin_anew()
    title = f"search {made.config.name}"
    with told_if_stopped(), shown_steps(title, lambda: made.steps(trials)):
        found = made.run(trials, workers, say)
    emit(found, as_json=as_json, view=search_view(found))


def _ask(names: Sequence[str], threshold: float | None) -> Ask:
    """Return how figures are made: as the first experiment that says so was asked."""
    for name in names:
        for folder in _places(name):
            if (folder / DESCRIPTION).exists():
                config = read_description(folder)
                asked = config.threshold if threshold is None else threshold
                return Ask(asked, config.level, config.resamples)
    return Ask(threshold)


def _places(name: str) -> tuple[Path, ...]:
    """Return where the description of an experiment or of the one of an arm may be."""
    folder = Path(name) if Path(name).is_dir() else experiments() / name
    return folder, folder.parent


def _named_apart(found: Sequence[tuple[str, ArmRuns]]) -> list[ArmRuns]:
    """Return arms whose names say which is which; the same one twice is refused."""
    counts: Counter[str] = Counter(arm.name for _, arm in found)
    arms = []
    for word, arm in found:
        whole = word if word.endswith(arm.name) else f"{word}/{arm.name}"
        arms.append(arm if counts[arm.name] == 1 else replace(arm, name=whole))
    names = [arm.name for arm in arms]
    twice: Any = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError("an arm is named twice", found=twice)
    return arms
