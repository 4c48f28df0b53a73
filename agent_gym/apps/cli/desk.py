"""``agent-gym desk``: what the desk did, what it can learn from it, and one signal to try it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from pydantic import Field
from rich.console import RenderableType
from rich.text import Text

from agent_gym.agents.desk import AgentRequest, DeskView, Holdings, Quote, RecentContext, plain
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.core_agent import DeskPlan
from agent_gym.agents.desk.log import replay, verify
from agent_gym.agents.desk.scripted_agent import ScriptedAgent
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.desk_view import behavior_view, retraining_view, training_view
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.workspace import check_writable, home, source_commit
from agent_gym.core.clock import SECOND_NS, ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT
from agent_gym.training.desk import (
    ResearchEngine,
    RetrainingConfig,
    RetrainingLoop,
    TrainingModule,
)

app = typer.Typer(no_args_is_help=True)

MOST_RECORDS = 1_000_000  # of each kind that are read from a memory or a log
DEMO_TIME = 1_700_000_000.0

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


class Memory(Config):
    """Where what the desk did is read from."""

    log: Path | None = Field(
        default=None, description="log of the desk: core_agent.jsonl or its folder"
    )
    db: Path | None = Field(default=None, description="memory of the desk, a SQLite file")
    data: Path | None = Field(
        default=None, description="file of bars by which signals are settled on paper"
    )
    horizon: str = Field(default="24h", description="over which a signal is judged")

    def context(self) -> RecentContext:
        """Return the memory that was named."""
        if (self.log is None) == (self.db is None):
            raise ConfigError(
                "one memory of the desk is needed",
                found="neither" if self.log is None else "both --log and --db",
                expected="--log FILE or --db FILE",
                remedy="The desk writes its log to logs/core_agent.jsonl",
            )
        if self.log is not None:
            _must_exist(self.log)
            return replay(self.log, maxlen=MOST_RECORDS)
        if self.db is not None:
            _must_exist(self.db)
        return RecentContext(MOST_RECORDS, self.db)

    def bars(self, request: ReadRequest) -> Bars | None:
        """Return the bars that were named, None if none were."""
        if self.data is None:
            return None
        bars = read_bars(self.data, request=request)
        if bars.instrument.symbol == UNKNOWN_INSTRUMENT.symbol:
            raise ConfigError(
                "the file does not say what it holds",
                where=str(self.data),
                remedy="Say it with --symbol BTC/USDT",
            )
        return bars

    def training(self, request: ReadRequest) -> TrainingModule:
        """Return what trains on it."""
        return TrainingModule(self.context(), self.bars(request), commit=source_commit())


class LoopOptions(Config):
    """How the loop is run."""

    store: Path | None = Field(
        default=None, description="folder of the models (default models/desk in the workspace)"
    )
    now: float | None = Field(
        default=None, description="epoch seconds; nothing known later is used"
    )
    reason: str | None = Field(default=None, description="train now, for this reason")
    dry_run: bool = Field(default=False, description="say what would be done, change nothing")


class DemoSignal(Config):
    """A signal, and the market and account that it meets."""

    strategy: str = Field(default="momentum", description="who sends it")
    amount: float = Field(default=0.01, description="units of the base")
    side: str = Field(default="buy", description="buy or sell")
    age_s: float = Field(default=0.0, description="how old the signal is")
    price: float = Field(default=50_000.0, gt=0.0, description="middle of the market")
    equity: float = Field(default=10_000.0, gt=0.0, description="what the account holds")
    drawdown: float = Field(default=0.0, ge=0.0, description="of the account, from its peak")

    def raw(self) -> dict[str, Any]:
        """Return the signal as it is sent."""
        params = {"amount": self.amount, "base": "BTC", "quote": "USDT", "side": self.side}
        return {
            "signal_id": "signal1",
            "strategy": self.strategy,
            "params": params,
            "timestamp": DEMO_TIME - self.age_s,
        }

    def view(self) -> DeskView:
        """Return what the desk sees."""
        half = 0.5e-4 * self.price
        quote = Quote(DEMO_TIME, self.price - half, self.price + half, 500.0, 0.005)
        account = Holdings(self.equity, self.equity, {}, 0.0, self.drawdown)
        return DeskView(DEMO_TIME, {"BTC/USDT": quote}, account)


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
    bars = memory.bars(request)
    engine = ResearchEngine(memory.context(), bars, horizon=memory.horizon)
    report = engine.analyze_behavior(window).as_dict()
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
    training = memory.training(request)
    result = training.train_model(training.prepare_dataset(now, memory.horizon)).as_dict()
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
    root = options.store or home() / "models" / "desk"
    check_writable(root)
    config = RetrainingConfig(horizon=memory.horizon)
    loop = RetrainingLoop(memory.training(request), config=config, store=root)
    report = loop.run_retraining(options.now, options.reason, options.dry_run).as_dict()
    emit(report, as_json=as_json, view=retraining_view(report))


@app.command()
def rollback(
    store: Annotated[
        Path | None, typer.Option(help="Folder of the models (default: in the workspace).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the champion before the present one back into office."""
    root = store or home() / "models" / "desk"
    _must_exist(root)
    back_to = RetrainingLoop(TrainingModule(RecentContext()), store=root).rollback()
    told = Text(f"champion: {back_to or 'none, as before the first promotion'}")
    emit({"champion": back_to}, as_json=as_json, view=told)


@app.command("verify-log")
def verify_log(
    path: Annotated[Path, typer.Argument(help="Log of the desk: core_agent.jsonl or its folder.")],
    as_json: JsonOption = False,
) -> None:
    """Check that a log of the desk is as it was written; exit code 3 if it is not."""
    _must_exist(path)
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


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise ConfigError("there is no such file", where=str(path), remedy="Check the name")
