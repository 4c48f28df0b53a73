"""``agent-gym data fetch``: bars of a real exchange into a file, or an error that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from agent_gym.apps.cli.config_options import configured
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.apps.cli.targets import check_bars_target
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.markets.bars import Bars
from agent_gym.markets.cache import BarCache
from agent_gym.markets.readers import parse_time
from agent_gym.markets.writers import write_series

if TYPE_CHECKING:
    from agent_gym.markets.live import FetchProgress, MarketDataLoader


def register(app: typer.Typer) -> None:
    """Add the command to the group of data commands."""
    app.command("fetch")(fetch)


@writes("bars of an exchange")
def fetch(  # noqa: PLR0913 - each option of a command is an argument
    out: Annotated[Path, typer.Option(help="Where the bars go: .parquet, .csv or .feather.")],
    start: Annotated[str, typer.Option(help="First open time, ISO (a date is its midnight UTC).")],
    end: Annotated[str, typer.Option(help="Last open time, ISO (a date is its midnight UTC).")],
    exchange: Annotated[str, typer.Option(help="Exchange, by its ccxt id.")] = "binance",
    symbol: Annotated[str, typer.Option(help="BTC/USDT spot, BTC/USDT:USDT perpetual.")] = (
        "BTC/USDT"
    ),
    period: Annotated[str, typer.Option(help="Bar period, such as 1m or 1h.")] = "1h",
    cache: Annotated[
        Path | None, typer.Option(help="Directory that keeps fetched months; resumes from it.")
    ] = None,
    keep_gaps: Annotated[
        bool, typer.Option("--keep-gaps", help="Accept up to 0.5 % missing bars, and list them.")
    ] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Use the test network; its prices are not real.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option(help="Server to ask instead of the exchange.")
    ] = None,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", help="Seconds for one request.")
    ] = None,
    retries: Annotated[int | None, typer.Option(help="Tries after the first.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fetch bars of an exchange, check that they are just those asked for, and write them."""
    check_bars_target(out)
    if cache is not None:
        check_writable(cache)
    params: dict[str, Any] = {
        "exchange": exchange,
        "symbol": symbol,
        "sandbox": sandbox,
        "base_url": base_url,
        "timeout_s": timeout_s,
        "max_retries": retries,
    }
    store = None if cache is None else BarCache(cache, sandbox=sandbox)
    span = parse_time(start, where="option --start"), parse_time(end, where="option --end")
    with _loader(params, store) as loader, _progress(quiet=as_json) as show:
        bars = loader.fetch_ohlcv(
            period, *span, gaps="keep" if keep_gaps else "raise", progress=show
        )
    form = write_series(out, bars)
    payload = {"out": str(out), "format": form, "bars": bars.describe()}
    emit(payload, as_json=as_json, view=_view(out, bars))


def _loader(params: dict[str, Any], cache: BarCache | None) -> MarketDataLoader:
    # ccxt takes a second or two to import: only those who fetch shall wait for it.
    live = import_module("agent_gym.markets.live")
    given = {name: value for name, value in params.items() if value is not None}
    flags = {"timeout_s": "--timeout", "max_retries": "--retries"}
    config = configured(live.LiveConfig, given, panel="data fetch", flags=flags)
    loader: MarketDataLoader = live.MarketDataLoader(config, cache=cache)
    return loader


class _Show:
    """Draws a download's progress."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("bars", total=None, eta="")

    def __call__(self, step: FetchProgress) -> None:
        eta = "" if step.eta_s is None else f"{step.eta_s:.0f} s to go"
        self._bar.update(self._task, completed=step.loaded, total=step.expected, eta=eta)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[_Show]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[eta]}"),
    )
    hidden = quiet or not notes.is_terminal
    with Progress(*columns, console=notes, disable=hidden, transient=True) as bar:
        yield _Show(bar)


def _view(out: Path, bars: Bars) -> RenderableType:
    details = bars.provenance.details
    rows: list[tuple[object, ...]] = [
        ("instrument", f"{bars.instrument.symbol} ({bars.instrument.kind})"),
        ("source", f"{bars.provenance.origin}, {details['server']}"),
        *([("caution", "test network: not market prices")] if bars.provenance.sandbox else []),
        ("bars", f"{len(bars):,} ({details['bars_from_cache']:,} from the cache)"),
        ("first", details["first_bar"]),
        ("last", details["last_bar"]),
        ("requests", f"{details['pages']} pages, {details['retries']} tried again"),
        ("gaps", details["gap_count"]),
        ("fingerprint", details["fingerprint"]),
    ]
    return table(f"Fetched to {out}", ("", ""), rows)
