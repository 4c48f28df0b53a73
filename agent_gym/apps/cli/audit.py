"""``agent-gym audit``: what is silently broken in an agent, in words and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agent_gym.apps.cli.config_options import parse_pairs, with_options
from agent_gym.apps.cli.known_names import TEAMS, agents_and_teams
from agent_gym.apps.cli.model_words import is_model, model_door
from agent_gym.apps.cli.output import emit
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure, entry, names, unknown
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.audit import AuditReport, Finding, Subject, audit
from agent_gym.evaluation.plain_file import read_yaml
from agent_gym.markets.bars import Bars, source_words
from agent_gym.markets.file_source import FileMarket, FileMarketConfig
from agent_gym.markets.source import open_market

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},  # options may follow the name
)

EXIT_FOUND = 1
MARKET = "synthetic/btc-1h"
LEAST_BARS = 200
STYLES = {"error": "bold red", "warning": "bold yellow", "note": "cyan", "fine": "green"}
HEADS = {
    "error": "Errors: do not trust its results before these are mended",
    "warning": "Warnings: look at these",
    "note": "Notes",
    "fine": "Looked at and found fine",
    "unchecked": "Not looked at, and why",
}


class AuditJob(Config):
    """Where an agent is audited, and how much work may be made of it."""

    market: str | None = Field(
        default=None, description=f"market by name; without it and --data {MARKET}"
    )
    data: Path | None = Field(default=None, description="CSV, Parquet or Feather file of bars")
    bars: int = Field(
        default=720, ge=LEAST_BARS, description="bars that are played; fewer for a slow agent"
    )
    lessons: int = Field(
        default=10, ge=1, description="episodes in which an agent may learn the planted bandit"
    )
    seed: int = Field(default=0, ge=0, description="seed of the market and of the agent")


@app.callback()
@with_options("job", AuditJob, "What is looked at")
def audit_agent(
    job: AuditJob,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT|MODEL",
            help="Name of the agent, such as rules/sma-cross, the folder of a trained model, or "
            f"a training of teams: {', '.join(TEAMS)}.",
        ),
    ],
    config: Annotated[
        Path | None, typer.Option(help="YAML or JSON file with the options of the agent.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="Option of the agent, repeatable."),
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(help="Check to run, repeatable; without it all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look for what is silently broken in an agent; the exit code is 1 if there is an error."""
    pairs = parse_pairs(option or (), "--set")
    if agent in TEAMS:
        report, ref = model_door("audit_team").audit_algorithm(agent, config, pairs, check, job)
    elif is_model(agent):
        checks = wanted(check or ())
        refuse_settings(config, pairs)
        report, ref = model_door("audit_model").audit_trained(agent, checks, job, open_bars)
    else:
        checks = wanted(check or ())
        ref = chosen(agent, config, pairs)
        subject = Subject.named(ref, open_bars(job), seed=job.seed, lessons=job.lessons)
        report = audit(subject, checks)
    payload = report.as_dict() | {"agent": ref.model_dump(mode="json")}
    emit(payload, as_json=as_json, view=view_of(report))
    if report.failed:
        raise typer.Exit(EXIT_FOUND)


def refuse_settings(file: Path | None, pairs: dict[str, Any]) -> None:
    """Raise ConfigError for settings of an agent that is a trained model."""
    if file is not None or pairs:
        raise ConfigError(
            "a trained model has no settings to change",
            found="--config" if file is not None else "--set",
            remedy="Leave it out; its settings were those of its training",
        )


def chosen(agent: str, file: Path | None, pairs: dict[str, Any]) -> Ref:
    """Return the agent with the options of the file, overridden by those of the command."""
    if agent not in agents_and_teams():
        raise unknown("agent or training of teams", agent, agents_and_teams())
    known = entry("agent", agent)
    params = {} if file is None else read_options(file, agent)
    ref = Ref(use=agent, params=params | pairs)
    try:
        configure(known.config, ref.params, where=f"agent {agent}")
    except ConfigError as error:
        error.remedy = error.remedy or f"`agent-gym agents show {agent}` tells its parameters"
        raise
    return ref


def read_options(file: Path, agent: str) -> dict[str, Any]:
    """Return the options in a file: the options themselves, or ``use`` and ``params``."""
    if not file.is_file():
        raise ConfigError(
            "there is no such file",
            where="--config",
            found=str(file),
            expected="a YAML or JSON file",
            remedy="Check the path",
        )
    found = read_yaml(file, "the file cannot be read as YAML or JSON")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ConfigError(
            "the file holds no options", where=str(file), expected="name: value on each line"
        )
    if "use" not in found:
        return found
    ref = configure(Ref, found, where=str(file))
    if ref.use != agent:
        raise ConfigError(
            "the file is for another agent", where=str(file), found=ref.use, expected=agent
        )
    return ref.params


def wanted(given: list[str] | tuple[()]) -> list[str]:
    """Return the checks to run; a name that does not exist is a usage error."""
    known = names("check")
    for name in given:
        if name not in known:
            raise unknown("check", name, known)
    return list(dict.fromkeys(given)) or list(known)


def open_bars(job: AuditJob) -> Bars:
    """Return the first bars of the market or file that was named."""
    if job.data is not None and job.market is not None:
        raise ConfigError(
            "an audit needs one source of bars",
            found="both --data and --market",
            remedy="Leave one of them out",
        )
    if job.data is not None:
        file = configure(FileMarketConfig, {"path": job.data}, where="--data")
        bars = FileMarket(file).bars(Seeds(job.seed))
    else:
        name = job.market or MARKET
        sized = "n_bars" in entry("market", name).config.model_fields
        params = {"n_bars": job.bars} if sized else {}
        bars = open_market(Ref(use=name, params=params), Seeds(job.seed))
    if len(bars) < LEAST_BARS:
        raise ConfigError(
            "an audit needs more bars",
            where=str(job.data or job.market),
            found=len(bars),
            expected=f"{LEAST_BARS} or more",
            remedy="Take a longer market",
        )
    return bars.rows(0, job.bars)


def view_of(report: AuditReport) -> RenderableType:
    """Return the report in words: the worst first, then what is fine, then what was not seen."""
    parts: list[RenderableType] = [
        Text(f"Audit of {report.subject}", style="bold"),
        Text(_place(report)),
        Text(report.summary, style="bold red" if report.failed else "bold"),
    ]
    for severity, head in HEADS.items():
        lines = [
            _lines(check.name, found)
            for check in report.checks
            for found in check.findings
            if found.severity == severity
        ]
        if lines:
            parts += [Text(), Text(head, style=STYLES.get(severity, "dim")), *lines]
    return Group(*parts)


def _place(report: AuditReport) -> str:
    market = report.market
    if "algorithm" in market:
        return (
            f"{market['algorithm']} on {market['map']}, windows of {market['n_steps']} steps in "
            f"{market['n_envs']} environments; seed {report.seed}"
        )
    if "env" in market:
        return f"{market['env']}, model {market['model']}; seed {report.seed}"
    symbol = market["instrument"]["symbol"]
    return (
        f"{market['rows']:,} bars of {market['period']}, {symbol}, from "
        f"{source_words(market)}; seed {report.seed}"
    )


def _lines(check: str, found: Finding) -> RenderableType:
    figures = ", ".join(f"{name} {_figure(value)}" for name, value in found.evidence.items())
    text = Text.assemble((f"{check}: ", "bold"), found.what)
    if figures:
        text.append(f" ({figures})", style="dim")
    if found.fix:
        text.append(f"\nTo mend it: {found.fix}.")
    return Padding(text, (0, 0, 0, 2))


def _figure(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
