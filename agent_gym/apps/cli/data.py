"""``agent-gym data``: import market files, check them, say what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.data_fetch import register
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.targets import check_bars_target
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.bars import Bars, source_words
from agent_gym.markets.quality import QualityReport, format_time
from agent_gym.markets.readers import ReadRequest, attach_funding, read_funding, read_raw
from agent_gym.markets.readers.request import period_nanos
from agent_gym.markets.resample import resample
from agent_gym.markets.writers import write_series

app = typer.Typer(no_args_is_help=True)
register(app)

FileArgument = Annotated[
    Path, typer.Argument(help="CSV, Parquet or Feather file of bars, plain or packed.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("import")
@with_request
@writes("checked bars")
def import_file(
    file: FileArgument,
    out: Annotated[Path, typer.Option(help="Where the bars go: .parquet, .csv or .feather.")],
    request: ReadRequest,
    resample_to: Annotated[
        str | None, typer.Option("--resample", help="Longer period to make, such as 1h.")
    ] = None,
    funding: Annotated[
        Path | None, typer.Option(help="File of funding rates to lay beside the bars.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a market file, check it, repair what was asked for, and write it by its suffix."""
    check_bars_target(out)
    if out.exists() and file.exists() and out.samefile(file):
        raise ConfigError(
            "a file cannot be imported onto itself",
            where=str(out),
            expected="another file",
            remedy="Choose another name with --out",
        )
    if resample_to is not None:
        period_nanos(resample_to, where="option --resample")
    raw = read_raw(file, request=request)
    report = raw.check()
    bars = raw.admitted()
    if funding is not None:
        bars = attach_funding(bars, read_funding(funding, request=request))
    if resample_to is not None:
        bars = resample(bars, resample_to)
    form = write_series(out, bars)
    payload = {
        "out": str(out),
        "format": form,
        "bars": bars.describe(),
        "found": report.as_dict()["counts"],
    }
    emit(payload, as_json=as_json, view=_description(f"Imported to {out}", bars))


@app.command("check")
@with_request
def check_file(
    file: FileArgument,
    request: ReadRequest,
    examples: Annotated[int, typer.Option(min=1, help="Examples shown of each kind.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Report every fault of a market file; the exit code is 3 if it would be refused."""
    raw = read_raw(file, request=request)
    report = raw.check(examples=examples)
    refused: DataError | None = None
    try:
        raw.admitted()
    except DataError as error:
        refused = error
    payload = {
        "accepted": refused is None,
        "refusal": None if refused is None else refused.as_dict(),
        "report": report.as_dict(),
    }
    emit(payload, as_json=as_json, view=_report(report, refused))
    if refused is not None:
        raise typer.Exit(EXIT_DATA)


@app.command("info")
@with_request
def describe_file(file: FileArgument, request: ReadRequest, as_json: JsonOption = False) -> None:
    """Say what a market file holds, sound or not."""
    raw = read_raw(file, request=request)
    report = raw.check()
    payload = {"file": str(file), "bars": raw.bars.describe(), "found": report.as_dict()["counts"]}
    view = Group(_description(str(file), raw.bars), _counts(report))
    emit(payload, as_json=as_json, view=view)


def _description(title: str, bars: Bars) -> RenderableType:
    facts: dict[str, Any] = bars.describe()
    instrument = bars.instrument
    rows: list[tuple[object, ...]] = [
        ("instrument", f"{instrument.symbol} ({instrument.kind}, {instrument.exchange})"),
        ("bars", f"{len(bars):,} of {facts['period']}"),
        ("first", format_time(int(bars.ts.min()))),
        ("last", format_time(int(bars.ts.max()))),
        ("columns", ", ".join(bars.columns())),
        ("source", source_words(facts)),
        *((f"repair: {name}", count) for name, count in facts["repairs"].items()),
        *((f"detail: {name}", value) for name, value in facts["details"].items()),
        ("fingerprint", facts["fingerprint"]),
    ]
    return table(title, ("", ""), rows)


def _counts(report: QualityReport) -> RenderableType:
    if report.ok:
        return Text("No faults found.")
    rows: list[tuple[object, ...]] = list(report.counts.items())
    if report.missing_bars:
        rows.append(("bars missing in gaps", report.missing_bars))
        rows.append(("longest gap in bars", report.longest_gap_bars))
    return table("Faults", ("kind", "count"), rows)


def _report(report: QualityReport, refused: DataError | None) -> RenderableType:
    examples: list[tuple[object, ...]] = [
        (issue.kind, issue.row or "", issue.as_dict()["time"] or "", issue.value, issue.reason)
        for issue in report.issues
    ]
    parts: list[RenderableType] = [_counts(report)]
    if examples:
        names = ("kind", "row", "time", "value", "reason")
        parts.append(table("First examples", names, examples))
    parts.append(Text("Accepted." if refused is None else f"Refused: {refused}"))
    return Group(*parts)
