"""``agent-gym benchmark``: players on snapshots, measured against the attainable optimum."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.agent_words import parse_agents
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.snapshot_files import snapshot_files
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, names, unknown
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.pipeline.automation.snapshot_set import refuse_sealed
from agent_gym.rollouts.progress import progress_bar

app = typer.Typer(no_args_is_help=True)
DEFAULT_AGENTS = ("benchmark/flat", "benchmark/random", "benchmark/sentiment")


@app.command()
@on_executor
def run(  # noqa: PLR0913 - each option of a command is an argument
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Snapshots, or folders of them.")
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Agent, such as NAME or NAME:model=FOLDER; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Episodes at a time.")] = 2,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Wall time of an episode.")] = 60.0,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Ticks of an episode.")] = None,
    text: Annotated[
        bool, typer.Option(help="Show the markets in words, too: for language models.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play agents on snapshots; failures are rows, and every score is a share of the optimum."""
    paths = snapshot_files(files)
    refuse_sealed(paths)
    agents = dict(_player(word) for word in agent or DEFAULT_AGENTS)
    config = RunnerConfig(
        workers=workers, timeout_s=timeout_s, max_steps=max_steps, world={"text": text}
    )
    with progress_bar("episodes") as progress:
        report = BenchmarkRunner(config).run(paths, agents, progress=progress)
    lines = report.summary()
    shown = ("player", "episodes", "failed", "mean_return", "share_of_optimum", "mean_drawdown")
    rows: list[tuple[object, ...]] = [
        tuple("-" if line[name] is None else line[name] for name in shown) for line in lines
    ]
    view = table("Benchmark", tuple(name.replace("_", " ") for name in shown), rows)
    emit({"summary": lines, "rows": list(report.rows)}, as_json=as_json, view=view)
    if any(line["failed"] for line in lines):
        raise typer.Exit(EXIT_RUN)


@app.command()
def mcp(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Public file of a snapshot.")],
) -> None:
    """Offer one snapshot as MCP tools on standard input and output."""
    import_module("agent_gym.apps.mcp_server").serve_stdio(file)


def _player(word: str) -> tuple[str, Ref]:
    """Return the name and the agent of a word."""
    if ":" not in word:
        if word not in names("agent"):
            raise unknown("agent", word, names("agent"))
        return word, Ref(use=word)
    arm, *others = parse_agents([word])
    if others or len(arm.refs) > 1:
        raise ConfigError("nothing is trained here, so a grid has no choice", found=word)
    return arm.label, arm.refs[0]
