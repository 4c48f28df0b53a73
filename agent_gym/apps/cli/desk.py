"""``agent-gym desk``: what the desk did, what it can learn from it, and one signal to try it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.console import RenderableType
from rich.text import Text

from agent_gym.agents.desk import AgentRequest, RecentContext, plain
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.core_agent import DeskPlan
from agent_gym.agents.desk.log import verify
from agent_gym.agents.desk.scripted_agent import ScriptedAgent
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.desk_options import (
    DEMO_TIME,
    DemoSignal,
    LoopOptions,
    Memory,
    PlayOptions,
    must_exist,
)
from agent_gym.apps.cli.desk_view import behavior_view, play_view, retraining_view, training_view
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.clock import SECOND_NS, ManualClock
from agent_gym.core.files import home
from agent_gym.core.seeds import Seeds
from agent_gym.markets.readers import ReadRequest

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
@with_request
@with_options("memory", Memory, "What the desk remembers")
def analyze(
    memory: Memory,
    request: ReadRequest,
    window: Annotated[
        str | None, typer.Option(help="How far back, such as 7d; all if left out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the desk did: rates, rejections, patterns, missed value, latency, drift."""
    report = _learning().analyze(memory, request, window)
    emit(report, as_json=as_json, view=behavior_view(report))


@app.command()
@with_request
@with_options("memory", Memory, "What the desk remembers")
def train(
    memory: Memory,
    request: ReadRequest,
    now: Annotated[
        float | None, typer.Option(help="Epoch seconds; nothing known later is used.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train an acceptor and show how good it is; nothing is kept."""
    result = _learning().train(memory, request, now)
    emit(result, as_json=as_json, view=training_view(result))


@app.command()
@with_request
@with_options("memory", Memory, "What the desk remembers")
@with_options("options", LoopOptions, "The loop")
def retrain(
    memory: Memory,
    options: LoopOptions,
    request: ReadRequest,
    as_json: JsonOption = False,
) -> None:
    """Run the retraining loop once: train if there is a reason, promote by the rule."""
    root = options.store or _models()
    check_writable(root)
    report = _learning().retrain(memory, request, options, root)
    emit(report, as_json=as_json, view=retraining_view(report))


@app.command()
@writes("the pointer to the model that is served")
def rollback(
    store: Annotated[
        Path | None, typer.Option(help="Folder of the models (default: in the workspace).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the champion before the present one back into office."""
    back_to = _learning().rollback(store or _models())
    told = Text(f"champion: {back_to or 'none, as before the first promotion'}")
    emit({"champion": back_to}, as_json=as_json, view=told)


@app.command()
@with_options("options", PlayOptions, "The play")
@writes("the logs of a desk")
def play(
    options: PlayOptions,
    out: Annotated[Path, typer.Option(help="New folder for the log, the memory and the bars.")],
    as_json: JsonOption = False,
) -> None:
    """Let a desk work on a made-up market, so that the other commands have something to read."""
    check_writable(out)
    report = _learning().play(out, options)
    emit(report, as_json=as_json, view=play_view(report))


@app.command("verify-log")
def verify_log(
    path: Annotated[Path, typer.Argument(help="Log of the desk: core_agent.jsonl or its folder.")],
    as_json: JsonOption = False,
) -> None:
    """Check that a log of the desk is as it was written; exit code 3 if it is not."""
    must_exist(path)
    report = verify(path)
    payload = to_builtins(report)
    findings: list[tuple[object, ...]] = [
        (found.file, found.line, found.what, found.detail) for found in report.findings
    ]
    word = "as it was written" if report.ok else "NOT as it was written"
    title = f"{path}: {report.lines} lines, {word}"
    view: RenderableType = Text(title)
    if findings:
        view = table(title, ("file", "line", "what", "detail"), findings)
    emit(payload, as_json=as_json, view=view)
    if not report.ok:
        raise typer.Exit(EXIT_DATA)


@app.command()
@with_options("demo", DemoSignal, "The signal and what it meets")
def signal(demo: DemoSignal, as_json: JsonOption = False) -> None:
    """Take one signal through the desk on a simulated clock, with agents that always agree."""

    def fill(request: AgentRequest) -> dict[str, Any]:
        return {"status": "ok", "payload": {"filled": request.size, "avg_price": demo.price}}

    clock = ManualClock(round(DEMO_TIME * SECOND_NS))
    io = AgentIO()
    io.register("strategy", ScriptedAgent())
    io.register("risk", ScriptedAgent())
    io.register("execution", ScriptedAgent(fill))
    desk = DeskPlan().open(io=io, context=RecentContext(), seeds=Seeds(0))
    handled = desk.handle(demo.raw(), demo.view(), clock)
    payload = plain(handled) | {"state": handled.state.value}
    rows: list[tuple[object, ...]] = [
        ("state", handled.state.value),
        ("code", "none" if handled.code is None else handled.code.value),
        ("reason", "none" if handled.code is None else handled.code.text),
        ("detail", handled.filter_result.detail or "none"),
        ("filled", 0.0 if handled.outcome is None else handled.outcome.filled),
        ("latency, simulated ms", handled.latency_ms),
    ]
    emit(payload, as_json=as_json, view=table("signal1", ("what", "found"), rows))


def _models() -> Path:
    return home() / "models" / "desk"


def _learning() -> Any:
    """Return what does the learning: it brings scikit-learn along, which one signal need not."""
    return import_module("agent_gym.apps.cli.desk_learning")
