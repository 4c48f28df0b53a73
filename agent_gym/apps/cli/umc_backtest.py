"""``agent-gym umc backtest``: UMC walked forward, with the reasons of every trade."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.backtest import (
    FLAGS,
    BacktestJob,
    open_bars,
    request_words,
    with_funding,
)
from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.evaluate import costs_of, progress, rows_of, user
from agent_gym.apps.cli.evaluate_options import TRIALS, EvaluateJob
from agent_gym.apps.cli.evaluate_view import evaluation_view
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.output import emit, notes
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.umc_options import MindOptions, Outputs, SourceJob, WalkJob, check_inputs
from agent_gym.apps.cli.workspace import (
    check_own_folder,
    check_target,
    check_writable,
    source_commit,
)
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home, write_text
from agent_gym.evaluation.backtest import BacktestConfig
from agent_gym.evaluation.protocol.forward import ForwardPlan
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.results import staged
from agent_gym.evaluation.umc_walk import UmcPlan, UmcRun, walk_umc, write_run
from agent_gym.evaluation.umc_walk.store import TRACE
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest
from agent_gym.reporting.text import many
from agent_gym.reporting.umc import html_page

REPORT = "report.html"


@with_request
@on_executor
@with_options("config", BacktestConfig, "Costs, limits and risk", FLAGS)
@with_options("outputs", Outputs, "What is written")
@with_options("mind", MindOptions, "The agent")
@with_options("job", WalkJob, "What is walked over")
@writes("a walk with its beliefs, and the files of --report")
def backtest(
    job: WalkJob,
    mind: MindOptions,
    outputs: Outputs,
    config: BacktestConfig,
    request: ReadRequest,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Walk UMC forward beside baselines, register the trials, and keep why it traded.

    Every fold learns from its past alone. The folder that is written serves `umc explain` and
    `umc stress`.
    """
    params, account = mind.params(), account_of(job, config)
    echoes = mind.echoes(job.seed)
    registry = TrialRegistry(outputs.registry or home() / TRIALS)
    out = outputs.out or home() / "umc" / _name(job)
    _check_places(registry, outputs, out)
    bars = read_bars(job, request)
    check_inputs(tuple(params.get("inputs", ())), bars)
    plan = UmcPlan(params=params, forward=forward_plan(job, account, bars), echoes=echoes)
    for warning in registry.check():
        notes.print(f"Warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    words = (*words_of(job), *words_of(mind), *words_of(config, FLAGS), *request_words(request))
    with progress("walk") as done:
        setting = Setting(
            registry,
            command=("agent-gym", "umc", "backtest", *words),
            commit=source_commit(),
            jobs=outputs.jobs,
            done=done,
        )
        run = walk_umc(bars, plan, setting)
    page = html_page(run) if outputs.plot or outputs.report else None
    reports = _write(run, out, outputs, page)
    written = {"out": str(out), "registry": str(registry.path), "reports": reports}
    emit(run.payload() | written, as_json=as_json, view=_view(run, registry.path, out, reports))


def account_of(job: SourceJob, config: BacktestConfig) -> BacktestConfig:
    """Return what trading costs; known markets have one flat cost and may be sold short."""
    source = EvaluateJob(market=job.market, cost_bp=job.cost_bp)
    return costs_of(source, config)


def read_bars(job: SourceJob, request: ReadRequest) -> Bars:
    """Return the bars of a file or of a market."""
    fields = set(BacktestJob.model_fields) & set(SourceJob.model_fields)
    source = BacktestJob(**{name: getattr(job, name) for name in fields})
    return with_funding(open_bars(source, request), job.funding, request)


def forward_plan(job: WalkJob, config: BacktestConfig, bars: Bars) -> ForwardPlan:
    """Return the walk, lengths of time turned into bars; too few bars are a ConfigError now."""
    walk = WalkForward(
        train=rows_of(job.train, bars, "--train"),
        validate=rows_of(job.validation, bars, "--validation"),
        test=rows_of(job.test, bars, "--test"),
        purge=job.purge,
        embargo=job.embargo,
    )
    lockbox = rows_of(job.lockbox, bars, "--lockbox")
    walk.folds(len(bars) - lockbox)
    return ForwardPlan(
        walk=walk,
        config=config,
        lockbox=lockbox,
        release=job.release,
        who=user(),
        seed=job.seed,
        draws=job.draws,
    )


def _name(job: WalkJob) -> str:
    if job.data is not None:
        return job.data.stem
    return (job.market or "walk").replace("/", "-")


def _check_places(registry: TrialRegistry, outputs: Outputs, out: Path) -> None:
    """Raise ConfigError unless everything can be written where it is asked for."""
    check_writable(out)
    check_own_folder(out, TRACE)
    check_target(registry.path, "--registry")
    for path in outputs.report:
        check_target(path, "--report")
        if path.suffix.lower() not in (".html", ".htm"):
            raise ConfigError(
                "the report is an HTML page",
                where="--report",
                found=str(path),
                expected="a name that ends in .html",
                remedy="`agent-gym evaluate umc --report` writes other formats",
            )
        if os.path.realpath(path) == os.path.realpath(registry.path):
            raise ConfigError("the report must not be written over the registry", where=str(path))


def _write(run: UmcRun, out: Path, outputs: Outputs, page: str | None) -> list[str]:
    """Write the folder, all of it or nothing, then the reports; return where the pages are."""
    with staged(out) as stage:
        write_run(stage, run)
        if outputs.plot and page is not None:
            write_text(stage / REPORT, page)
    for path in outputs.report:
        write_text(path, page or "")
    return [*([str(out / REPORT)] if outputs.plot else []), *map(str, outputs.report)]


def _view(run: UmcRun, registry: Path, out: Path, reports: list[str]) -> RenderableType:
    lines = [lambda_words(run), tier_words(run)]
    if run.leakage is not None and run.echoes is not None:
        held = "held" if run.leakage.passed else "NOT held"
        lines.append(
            f"{run.echoes.size} echoes lived beside it on {run.echoes.bars:,} bars; "
            f"the gate between a crowd and the model, measured on known/m1 with the exact tier "
            f"alone: {held}"
        )
    lines.append(f"Written to {out}; ask why with: agent-gym umc explain --run {out} --at TIME")
    found = evaluation_view(run.evaluation, registry, [Path(each) for each in reports])
    return Group(found, *map(Text, lines))


def lambda_words(run: UmcRun) -> str:
    """Say where lambda was, and whether that says anything."""
    path = run.lam
    share: Any = path.share_at_bounds
    told = f"Lambda {path.values.mean():.3f} on average"
    if share is None:
        return f"{told}; it is fixed"
    held = f", at a bound {100 * share:.0f} % of the time"
    return f"{told}{held}; recorded bars show the same whatever is held, so it changed no trade"


def tier_words(run: UmcRun) -> str:
    """Say which models were followed."""
    chosen = [row["tier"] for row in run.tiers()]
    counted = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
    return "Followed " + ", ".join(
        f"{name} in {many(count, 'fold')}" for name, count in counted.items()
    )
