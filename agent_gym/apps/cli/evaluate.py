"""``agent-gym evaluate``: is there an edge, and how sure can one be?"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent_gym.apps.cli.agent_words import parse_agents
from agent_gym.apps.cli.backtest import (
    FLAGS,
    BacktestJob,
    known_names,
    open_bars,
    request_words,
    with_funding,
)
from agent_gym.apps.cli.config_options import parse_pairs, with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.evaluate_options import (
    KNOWN_COST_BP,
    OF_MODELS,
    TRAIN,
    TRIALS,
    EvaluateJob,
    Outputs,
)
from agent_gym.apps.cli.evaluate_view import evaluation_view
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.model_words import is_model, model_door
from agent_gym.apps.cli.output import EXIT_RUN, emit, notes
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.workspace import check_target, source_commit
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestConfig
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.protocol.combinatorial import CombinatorialPlan, evaluate_combinatorial
from agent_gym.evaluation.protocol.forward import ForwardPlan, evaluate_forward
from agent_gym.evaluation.protocol.report import Evaluation
from agent_gym.evaluation.protocol.seed_job import is_known
from agent_gym.evaluation.protocol.seeded import SeededPlan, evaluate_seeded, with_first_path
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.sheet import evaluation_sheet, regimes_of
from agent_gym.evaluation.protocol.splits import Combinatorial, WalkForward
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.tearsheet import Sheet, format_of, write_sheet
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.periods import parse_period
from agent_gym.markets.readers import ReadRequest
from agent_gym.markets.source import open_market

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)

IDLE = {  # options that say nothing under a protocol
    "seeds": ("validation", "test", "expanding", "lockbox", "release", "groups", "tested"),
    "walk-forward": ("seeds", "groups", "tested"),
    "combinatorial": ("seeds", "train", "validation", "test", "expanding", "release"),
}
COST_FIELDS = (
    "taker_bps",
    "maker_bps",
    "maker_share",
    "slippage_bps",
    "half_spread_bps",
    "impact",
    "participation",
)


@app.callback()
@on_executor
@with_request
@with_options("config", BacktestConfig, "Costs, limits and risk", FLAGS)
@with_options("outputs", Outputs, "What is written")
@with_options("job", EvaluateJob, "What is tested")
@writes("the register of trials, and the files of --csv and --report")
def evaluate(
    job: EvaluateJob,
    outputs: Outputs,
    config: BacktestConfig,
    request: ReadRequest,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT...|MODEL",
            help="Folder of a trained model; or agents: a name, a pattern such as 'rules/*', or "
            "NAME:fast=10,slow=50; several numbers (fast=10/20) make a grid that training chooses "
            "from.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Test agents beside baselines, register every trial, and say what the evidence is worth.

    A trained MODEL plays fresh greedy episodes of its own environment; with --market or --data it
    trades under a protocol, as any agent.
    """
    if any(map(is_model, agents or ())):
        others = [*words_of(config, FLAGS), *words_of(outputs), *request_words(request)]
        door = model_door("evaluate_model")
        agents = door.evaluate_models(agents, job, others, as_json=as_json)
        if not agents:
            return
    words = [*words_of(job), *words_of(config, FLAGS)]
    asked = Asked(
        chosen(agents),
        job,
        costs_of(job, config),
        request,
        pictures=bool(outputs.report),
    )
    protocols = {"walk-forward": forward, "combinatorial": combinatorial, "seeds": seeded}
    run = protocols[asked.protocol_name()]
    registry = TrialRegistry(outputs.registry or home() / TRIALS)
    check_places(registry, outputs)
    for warning in registry.check():
        notes.print(f"Warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    with progress("test") as done:
        setting = Setting(
            registry,
            command=("agent-gym", "evaluate", *(agents or ()), *words, *request_words(request)),
            commit=source_commit(),
            jobs=outputs.jobs,
            done=done,
        )
        found, sheet = run(asked, setting)
    if sheet is not None:
        for path in outputs.report:
            write_sheet(path, sheet)
    written = {"registry": str(registry.path), "reports": list(map(str, outputs.report))}
    view = evaluation_view(found, registry.path, outputs.report)
    emit(found.as_dict() | written, as_json=as_json, view=view)
    if outputs.gate and not found.passed:
        raise typer.Exit(EXIT_RUN)


def check_places(registry: TrialRegistry, outputs: Outputs) -> None:
    """Raise ConfigError unless everything can be written where it is asked for."""
    for path in outputs.report:
        format_of(path)
    check_target(registry.path, "--registry")
    for path in outputs.report:
        check_target(path, "--report")
        if os.path.realpath(path) == os.path.realpath(registry.path):
            raise ConfigError("the report must not be written over the registry", where=str(path))


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that the command line says about an evaluation."""

    agents: tuple[Arm, ...]
    job: EvaluateJob
    config: BacktestConfig
    request: ReadRequest
    pictures: bool

    def protocol_name(self) -> str:
        """Return the protocol; what does not fit together is a ConfigError."""
        if (self.job.data is None) == (self.job.market is None):
            raise ConfigError(
                "an evaluation needs one source of bars",
                found="neither" if self.job.data is None else "both --data and --market",
                expected="--data FILE or --market NAME",
                remedy=known_names("market"),
            )
        name = self.job.protocol or ("seeds" if self.job.market else "walk-forward")
        if name == "seeds" and self.job.data is not None:
            raise ConfigError(
                "a file holds one path, so no seeds can be drawn from it",
                found="--protocol seeds with --data",
                remedy="Leave out --protocol, or name a market",
            )
        if name == "combinatorial" and self.pictures:
            raise ConfigError(
                "a tear sheet is of one account, and combinatorial trades many",
                found="--report with --protocol combinatorial",
                remedy="Leave out --report and use --json, or choose walk-forward",
            )
        wrong = (*IDLE[name], *OF_MODELS)
        said = words_of(self.job.model_copy(update=_defaults(wrong)))
        idle = [word for word in words_of(self.job) if word not in said]
        if idle:
            raise ConfigError(
                f"these options change nothing under the protocol {name}",
                found=" ".join(idle),
                remedy="Leave them out, or choose another --protocol",
            )
        return name

    def arms(self, instrument: Instrument) -> tuple[Arm, ...]:
        """Return the agents and what they are measured against."""
        short = self.config.account().may_short(instrument)
        return (*self.agents, *reference_arms(allow_short=short))


def _defaults(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: EvaluateJob.model_fields[name].default for name in names}


def chosen(words: list[str] | None) -> tuple[Arm, ...]:
    """Return the agents that were named; none at all is a ConfigError."""
    if not words:
        raise ConfigError(
            "an evaluation needs an agent",
            where="agent-gym evaluate",
            expected="AGENT, such as rules/sma-cross or 'rules/*'",
            remedy=known_names("agent"),
        )
    return parse_agents(words)


def costs_of(job: EvaluateJob, config: BacktestConfig) -> BacktestConfig:
    """Return what trading costs: as said, or one flat cost; known markets may be sold short."""
    known = job.market is not None and is_known(Ref(use=job.market))
    free = BacktestConfig(
        slippage_bps=0.0, half_spread_bps=0.0, impact=0.0, participation=None
    ).model_dump(include=set(COST_FIELDS))
    usual = BacktestConfig().model_dump(include=set(COST_FIELDS))
    said = config.model_dump(include=set(COST_FIELDS)) != usual
    if job.cost_bp is not None and said:
        raise ConfigError(
            "one flat cost stands in place of all others",
            found="--cost-bp and other costs",
            remedy="Leave out --cost-bp, or the others",
        )
    changes: dict[str, Any] = {}
    if job.cost_bp is not None or (known and not said):
        flat = KNOWN_COST_BP if job.cost_bp is None else job.cost_bp
        changes = free | {"taker_bps": flat}
    if known and config.allow_short is None:
        changes["allow_short"] = True
    return config.model_copy(update=changes)


def forward(asked: Asked, setting: Setting) -> tuple[Evaluation, Sheet | None]:
    """Walk forward over one series."""
    job, bars = asked.job, one_series(asked)
    plan = ForwardPlan(
        walk=WalkForward(
            train=rows_of(job.train or TRAIN, bars, "--train"),
            validate=rows_of(job.validation, bars, "--validation"),
            test=rows_of(job.test, bars, "--test"),
            purge=job.purge,
            embargo=job.embargo,
            expanding=job.expanding,
        ),
        config=asked.config,
        lockbox=rows_of(job.lockbox, bars, "--lockbox"),
        release=job.release,
        who=user(),
        seed=job.seed,
        draws=job.draws,
    )
    found = evaluate_forward(bars, asked.arms(bars.instrument), plan, setting)
    return found, evaluation_sheet(found) if asked.pictures else None


def combinatorial(asked: Asked, setting: Setting) -> tuple[Evaluation, Sheet | None]:
    """Test every choice of stretches of one series."""
    job, bars = asked.job, one_series(asked)
    said = {name: getattr(job, name) for name in Combinatorial.model_fields}
    plan = CombinatorialPlan(
        split=Combinatorial(**said),
        config=asked.config,
        lockbox=rows_of(job.lockbox, bars, "--lockbox"),
        seed=job.seed,
        draws=job.draws,
    )
    return evaluate_combinatorial(bars, asked.arms(bars.instrument), plan, setting), None


def one_series(asked: Asked) -> Bars:
    """Return the bars of a file, or of a market that is drawn once."""
    job = asked.job
    fields = set(BacktestJob.model_fields) & set(EvaluateJob.model_fields)
    source = BacktestJob(**{name: getattr(job, name) for name in fields})
    return with_funding(open_bars(source, asked.request), job.funding, asked.request)


def seeded(asked: Asked, setting: Setting) -> tuple[Evaluation, Sheet | None]:
    """Draw the market for each seed."""
    job = asked.job
    params = parse_pairs(job.market_param, "--market-param")
    if job.bars is not None:
        params["n_bars"] = job.bars
    words = [word for word in request_words(asked.request) if word.startswith("--")]
    if words or job.funding is not None:
        raise ConfigError(
            "these options go with --data only",
            found=", ".join([*words, *(["--funding"] if job.funding else [])]),
            remedy="Leave them out, or use --data",
        )
    ref = Ref(use=str(job.market), params=params)
    first = open_market(ref, Seeds(job.seed))
    train = job.train
    plan = SeededPlan(
        market=ref,
        seeds=job.seeds,
        first_seed=job.seed,
        train=None if train is None else rows_of(train, first, "--train"),
        purge=job.purge,
        embargo=job.embargo,
        config=asked.config,
        draws=job.draws,
    )
    arms = asked.arms(first.instrument)
    found = evaluate_seeded(arms, plan, setting)
    if not asked.pictures:
        return found, None
    drawn, truth = with_first_path(found, arms, plan)
    return found, evaluation_sheet(drawn, regimes_of(drawn, truth))


def rows_of(length: str | None, bars: Bars, option: str) -> int:
    """Return a length of time in bars; none is 0."""
    if length is None:
        return 0
    rows = parse_period(length) // bars.period_ns
    if rows < 1:
        raise ConfigError("shorter than a bar", where=option, found=length)
    return int(rows)


def user() -> str:
    """Return who is logged in, for the record of the lockbox."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr and yield the call that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
