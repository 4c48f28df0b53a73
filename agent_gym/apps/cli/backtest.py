"""``agent-gym backtest``: one agent over one market, beside baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from pydantic import Field
from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import flag, parse_pairs, with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.workspace import check_target, check_writable, source_commit
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, Ref, configure, entry, names
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import Comparison, compare, short_table
from agent_gym.evaluation.funding import funding_words
from agent_gym.evaluation.saved import save_comparison
from agent_gym.evaluation.tearsheet import FORMATS, Sheet, format_of, sheet_of, write_sheet
from agent_gym.exchange.tape import funding_rates
from agent_gym.markets.bars import Bars, source_words
from agent_gym.markets.file_source import FileMarket, FileMarketConfig
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers import ReadRequest, attach_funding, read_funding
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT
from agent_gym.markets.source import open_market

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")

CHART, REPORT = "chart.png", "report.html"
FLAGS = {"taker_bps": "--fee-bps", "latency_bars": "--latency", "max_leverage": "--leverage"}


class BacktestJob(Config):
    """Who trades what."""

    agent: str | None = Field(
        default=None, description="agent by name; see `agent-gym agents list`"
    )
    param: tuple[str, ...] = Field(default=(), description="parameter of the agent, repeatable")
    data: Path | None = Field(default=None, description="CSV, Parquet or Feather file of bars")
    market: str | None = Field(default=None, description="market by name, such as synthetic/btc-1h")
    market_param: tuple[str, ...] = Field(
        default=(), description="parameter of the market, repeatable"
    )
    bars: int | None = Field(default=None, ge=2, description="bars that the market generates")
    funding: Path | None = Field(
        default=None, description="file of a perpetual's funding rates to lay beside the bars"
    )
    seed: int = Field(default=0, ge=0, description="seed of the market and of the agent")


class Outputs(Config):
    """What is written, and where."""

    report: tuple[Path, ...] = Field(
        default=(),
        description="tear sheet, repeatable; the name says the format: " + ", ".join(FORMATS),
    )
    out: Path | None = Field(default=None, description="folder for results.json and tables")
    plot: bool = Field(default=False, description="also write chart.png and report.html there")

    def checked(self, agent: Ref) -> Path | None:
        """Return the folder, if any; a place that cannot be written is a ConfigError now."""
        for path in self.report:
            check_target(path)
            format_of(path)
        if not self.plot and self.out is None:
            return None
        out = self.out or home() / "backtests" / agent.use.replace("/", "-")
        check_writable(out)
        return out


@app.callback()
@with_request
@with_options("config", BacktestConfig, "Costs, limits and risk", FLAGS)
@with_options("outputs", Outputs, "What is written")
@with_options("job", BacktestJob, "What is run")
@writes("figures, curves and pages, where --out and --report say")
def backtest(
    job: BacktestJob,
    outputs: Outputs,
    config: BacktestConfig,
    request: ReadRequest,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run an agent over a market and report it beside baselines with the same costs and timing."""
    agent = chosen_agent(job)
    out = outputs.checked(agent)
    bars = with_funding(open_bars(job, request), job.funding, request)
    words = [*words_of(job), *words_of(config, FLAGS), *request_words(request)]
    command = ["agent-gym", "backtest", *words]
    engine = BacktestEngine(config, command=command, commit=source_commit())
    comparison = compare(engine, bars, agent, job.seed)
    sheet = sheet_from(comparison) if out is not None or outputs.report else None
    if out is not None and sheet is not None:
        save_comparison(comparison, sheet, out, (CHART, REPORT) if outputs.plot else ())
    if sheet is not None:
        for path in outputs.report:
            write_sheet(path, sheet)
    written = {"out": None if out is None else str(out), "reports": list(map(str, outputs.report))}
    view = view_of(comparison, out, outputs.report)
    emit(comparison.payload() | written, as_json=as_json, view=view)


def chosen_agent(job: BacktestJob) -> Ref:
    """Return the agent that was named, its parameters checked before anything is read."""
    if job.agent is None:
        raise ConfigError(
            "a backtest needs an agent",
            where="agent-gym backtest",
            expected="--agent NAME",
            remedy=known_names("agent"),
        )
    agent = Ref(use=job.agent, params=parse_pairs(job.param, "--param"))
    try:
        configure(entry("agent", agent.use).config, agent.params, where=f"agent {agent.use}")
    except ConfigError as error:
        error.remedy = error.remedy or f"`agent-gym agents show {agent.use}` tells its parameters"
        raise
    return agent


def open_bars(job: BacktestJob, request: ReadRequest) -> Bars:
    """Return the bars that were asked for; anything that does not fit together is a ConfigError."""
    if (job.data is None) == (job.market is None):
        raise ConfigError(
            "a backtest needs one source of bars",
            found="neither" if job.data is None else "both --data and --market",
            expected="--data FILE or --market NAME",
            remedy=known_names("market"),
        )
    span = request.expected()
    if job.data is not None:
        _refuse("--market", {"--bars": job.bars, "--market-param": job.market_param})
        fields = {name: getattr(request, name) for name in ReadRequest.model_fields}
        file = configure(FileMarketConfig, {"path": job.data} | fields, where="--data")
        bars = FileMarket(file).bars(Seeds(job.seed))
    else:
        asked = request.model_copy(update={"start": None, "end": None})
        _refuse("--data", {word: word for word in request_words(asked) if word.startswith("--")})
        params = parse_pairs(job.market_param, "--market-param")
        if job.bars is not None:
            params["n_bars"] = job.bars
        whole = open_market(Ref(use=str(job.market), params=params), Seeds(job.seed))
        bars = whole.between(span.start_ns, span.end_ns)
        if len(bars) < 2:
            raise ConfigError(
                "fewer than two bars lie between start and end",
                where=f"market {job.market}",
                found=f"bars from {_time(whole.ts[0])} to {_time(whole.ts[-1])}",
                expected="two bars or more",
                remedy="Change --start and --end, or ask for more with --bars",
            )
    if len(bars) < 2:
        cut = span.start_ns is not None or span.end_ns is not None
        raise (ConfigError if cut else DataError)(
            "fewer than two bars cannot be traded",
            where=str(job.data),
            found=f"one bar, of {_time(bars.ts[0])}",
            expected="two bars or more",
            remedy="Change --start and --end" if cut else "Take a longer file",
        )
    return bars


def with_funding(bars: Bars, file: Path | None, request: ReadRequest) -> Bars:
    """Return the bars with the rates of a file beside them; those beyond its span have none."""
    if file is None:
        return bars
    if not file.is_file():
        found = "a directory" if file.is_dir() else "no such file"
        raise ConfigError("there is no file of funding rates here", where=str(file), found=found)
    if bars.instrument.kind != "perpetual":
        raise ConfigError(
            "funding is paid on perpetuals alone",
            where="--funding",
            found=f"{bars.instrument.symbol}, {bars.instrument.kind}",
            remedy="Leave it out, or say --kind perpetual if that is what the file holds",
        )
    if np.isfinite(funding_rates(bars)).any():
        raise ConfigError(
            "the bars come with funding rates of their own",
            where="--funding",
            found=bars.provenance.origin,
            remedy="Leave it out, or import the bars without their funding column",
        )
    return attach_funding(bars, read_funding(file, request=request), outside="missing")


def sheet_from(comparison: Comparison, title: str | None = None) -> Sheet:
    """Return the tear sheet of a comparison."""
    runs = comparison.baselines
    return sheet_of(comparison.main, runs, label=comparison.subject, title=title)


def view_of(
    comparison: Comparison, out: Path | None, reports: Sequence[Path] = ()
) -> RenderableType:
    """Return the table, where the data come from and where the files are."""
    run = comparison.main
    bars, data = run.bars, run.manifest.data
    span = f"{_time(bars.ts[0])} to {_time(bars.ts[-1])}"
    lines = [
        f"{len(bars):,} bars of {data['period']}, {bars.instrument.symbol}, {span}, from "
        f"{source_words(data)}; "
        f"final equity {run.equity[-1]:,.2f}, equity hash {run.equity_hash}",
    ]
    if data["funding"]["due"]:
        lines.append(f"Funding: {funding_words(data['funding'], len(bars))}")
    if run.caps:
        held = ", ".join(f"{part} {times:,}" for part, times in run.caps["bound"].items())
        lines.append(f"Held back in {run.caps['decisions']:,} decisions: {held}")
    if out is not None:
        lines.append(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    lines += [f"Look at {path}" for path in reports]
    return Group(short_view(comparison), *(Text(line) for line in lines))


def short_view(comparison: Comparison) -> RenderableType:
    """Return the table of a comparison, narrow enough for any terminal."""
    heads, rows = short_table(comparison)
    made = table("After costs", heads, [tuple(row) for row in rows])
    made.box = box.SIMPLE_HEAD
    for column in made.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return made


def known_names(kind: Literal["agent", "market"]) -> str:
    """Return the names that could have been given."""
    return f"Known: {', '.join(names(kind)) or 'none'}"


def _refuse(source: str, given: dict[str, Any]) -> None:
    """Raise ConfigError for options that belong to the other source of bars."""
    said = [name for name, value in given.items() if value not in (None, ())]
    if said:
        raise ConfigError(
            f"these options go with {source} only",
            where="options of agent-gym backtest",
            found=", ".join(said),
            remedy=f"Leave them out, or use {source}",
        )


def request_words(request: ReadRequest) -> list[str]:
    """Return the options that give this request, defaults left out."""
    plain = request.model_copy(update={"instrument": None, "repair": type(request.repair)()})
    words = words_of(plain) + words_of(request.repair)
    if request.instrument is not None:
        for name, value in request.instrument.model_dump().items():
            if value != getattr(UNKNOWN_INSTRUMENT, name):
                words += [flag(name), str(value)]
    return words


def _time(ts: Any) -> str:
    return format_time(int(ts))
