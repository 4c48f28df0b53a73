"""``agent-gym sandbox``: a simulated exchange that an unchanged bot trades on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.binding import is_loopback, names_of
from agent_gym.apps.cli.backtest import BacktestJob, open_bars, request_words
from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, notes, screen, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.workspace import check_writable, source_commit
from agent_gym.apps.sandbox.bots import Bot
from agent_gym.apps.sandbox.journal import Keeping, recover, was_killed
from agent_gym.apps.sandbox.keys import AccountKey, make_keys, read_keys, write_keys
from agent_gym.apps.sandbox.opening import open_session
from agent_gym.apps.sandbox.server import Place, serve
from agent_gym.apps.sandbox.session import Session
from agent_gym.apps.sandbox.settings import SandboxSettings
from agent_gym.core.clock import SECOND_NS, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, configure
from agent_gym.envs.benchmark.perpetuals import perpetual_bars
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.session import RATIOS, SessionOrigin, too_short
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers import ReadRequest
from agent_gym.markets.snapshot.public_file import load_snapshot

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
SHOWN = (
    ("final equity", "final_equity", "{:,.2f}"),
    ("return", "total_return", "{:.2%}"),
    ("Sharpe", "sharpe", "{:.2f}"),
    ("max drawdown", "max_drawdown", "{:.2%}"),
    ("fills", "trades", "{:,}"),
    ("fees", "fees", "{:,.2f}"),
)


class SandboxJob(Config):
    """Which market, and who trades on it."""

    data: tuple[Path, ...] = Field(
        default=(), description="CSV, Parquet or Feather file of bars; repeat it for more symbols"
    )
    snapshot: Path | None = Field(default=None, description="benchmark snapshot; its perpetuals")
    market: str | None = Field(default=None, description="market by name, such as synthetic/btc-1h")
    market_param: tuple[str, ...] = Field(
        default=(), description="parameter of the market, repeatable"
    )
    bars: int | None = Field(default=None, ge=2, description="bars that the market generates")
    seed: int = Field(default=0, ge=0, description="seed of the market")


class SandboxPlace(Config):
    """Where it listens and is kept, and who may trade."""

    host: str = Field(default="127.0.0.1", description="address to bind to")
    port: int = Field(default=8800, ge=0, le=65535, description="0: any that is free")
    remote: bool = Field(
        default=False, description="others may reach it; needed to bind to more than loopback"
    )
    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$",
        description="name of the session; default: when it began",
    )
    out: Path | None = Field(default=None, description="folder of sessions; default: sandbox")
    record: bool = Field(default=True, description="keep trajectories in the store")
    recover: bool = Field(
        default=False, description="put what a killed session (--name) has left into the store"
    )
    exit_at_end: bool = Field(default=False, description="end when the last bar is over")
    bot: str | None = Field(
        default=None,
        description="command of a bot to run; it finds SANDBOX_URL, SANDBOX_KEY and "
        "SANDBOX_SECRET in its environment, and the session ends with it",
    )
    allow_host: tuple[str, ...] = Field(
        default=(), description="a name it may be called by, repeatable"
    )
    account: tuple[str, ...] = Field(
        default=(), description="name of an account to make keys for, repeatable (default bot)"
    )
    keys: Path | None = Field(
        default=None, description="file of accounts, mode 0600; else keys are made and shown once"
    )
    new_keys: Path | None = Field(
        default=None, description="write the keys that are made here, instead of showing them"
    )


@app.callback()
@with_request
@with_options("settings", SandboxSettings, "Money, costs and clock")
@with_options("place", SandboxPlace, "Where, and who")
@with_options("job", SandboxJob, "What is traded")
@writes("reports and trajectories of a session")
def sandbox(
    job: SandboxJob,
    place: SandboxPlace,
    settings: SandboxSettings,
    request: ReadRequest,
    url: Annotated[str | None, DATABASE] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON document: where it listens, or what a bot came to."
        ),
    ] = False,
) -> None:
    """Serve a simulated Binance spot exchange over REST and websockets until it is ended.

    A ccxt bot trades on it unchanged; see docs/sandbox.md. Each account is judged as a backtest is.
    """
    if place.recover:
        _recover(place, url, as_json=as_json)
        return
    hosts = names_of(place.host, place.allow_host, remote=place.remote)
    keys = _keys(place)
    keeping = _keeping(place, url)
    words = [*words_of(job), *words_of(settings), *request_words(request)]
    origin = SessionOrigin(
        settings.backtest(),
        ["agent-gym", "sandbox", *words],
        settings.model_dump(mode="json") | {"accounts": [key.name for key in keys]},
        job.seed,
        source_commit(),
    )
    session = open_session(_markets(job, request), keys, settings, keeping, origin)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    if not is_loopback(place.host):
        notes.print(
            "[bold yellow]Others can reach this sandbox, and it speaks plain HTTP.[/] "
            "Put a proxy with TLS before it; its prices are open to all.",
            soft_wrap=True,
        )
    hidden = place.keys is not None or place.new_keys is not None
    if place.new_keys is not None:
        write_keys(place.new_keys, keys)

    place_of = Place(place.host, place.port, hosts, place.exit_at_end)
    if place.bot is not None:
        _run_bot(session, place_of, Bot(_bot(place.bot)))
        told = {"session": keeping.name, "folder": str(keeping.folder), "results": session.result}
        emit(told, as_json=as_json, view=_results(session.result or {}))
        return

    def ready(address: str, _end: Callable[[], None]) -> None:
        told = _told(session, address, keeping, () if hidden else keys)
        emit(told, as_json=as_json, view=_view(told, keys, hidden=hidden))

    serve(session, place_of, ready)
    if not as_json and session.result:
        screen.print(_results(session.result))


def _recover(place: SandboxPlace, url: str | None, *, as_json: bool) -> None:
    """Rescue the steps of a session that was killed."""
    if place.name is None:
        raise ConfigError(
            "a session that was killed is found by its name",
            where="--recover",
            expected="--name NAME",
            remedy=f"See {place.out or home() / 'sandbox'} for the names",
        )
    folder = (place.out or home() / "sandbox") / place.name
    found = recover(Keeping(place.name, folder, url))
    rows: list[tuple[object, ...]] = [
        (name, one["steps"], one["trajectory"]) for name, one in found.items()
    ]
    told = {"session": place.name, "recovered": found}
    emit(told, as_json=as_json, view=table("Recovered", ("account", "steps", "trajectory"), rows))


def _run_bot(session: Session, place: Place, bot: Bot) -> None:
    """Serve a session for as long as a bot runs."""

    def ready(address: str, end: Callable[[], None]) -> None:
        bot.start(address, session.keys[0], end, {})

    with bot.ended():
        serve(session, place, ready)
    bot.check()


def _bot(command: str) -> BotConfig:
    return configure(BotConfig, {"command": command}, where="--bot")


def _keys(place: SandboxPlace) -> tuple[AccountKey, ...]:
    if place.keys is not None:
        if place.account or place.new_keys is not None:
            raise ConfigError(
                "the accounts stand in the file of keys",
                where="--account, --new-keys",
                remedy="Leave them out, or leave out --keys",
            )
        return read_keys(place.keys)
    if not is_loopback(place.host):
        raise ConfigError(
            "a sandbox that others can reach needs keys that were given",
            where="--remote",
            expected="--keys FILE",
            remedy="Make a file with --new-keys FILE on loopback first, and hand its keys out",
        )
    return make_keys(place.account or ("bot",))


def _keeping(place: SandboxPlace, url: str | None) -> Keeping:
    began = datetime.fromtimestamp(SystemClock().now_ns() // SECOND_NS, UTC)
    name = place.name or f"{began:%Y%m%d-%H%M%S}"
    folder = (place.out or home() / "sandbox") / name
    check_writable(folder)
    if (folder / "session.json").exists():
        raise ConfigError(
            "there is a session of this name", where=str(folder), remedy="Choose another --name"
        )
    if was_killed(folder):
        raise ConfigError(
            "a session of this name runs, or was killed",
            where=str(folder),
            remedy=f"Choose another, or rescue it: agent-gym sandbox --name {name} --recover",
        )
    return Keeping(name, folder, url, record=place.record)


def _markets(job: SandboxJob, request: ReadRequest) -> list[Bars]:
    said = [name for name in ("data", "snapshot", "market") if getattr(job, name)]
    if len(said) != 1:
        raise ConfigError(
            "a sandbox needs one source of bars",
            found=" and ".join(f"--{name}" for name in said) or "none",
            expected="--data FILE, --snapshot FILE or --market NAME",
        )
    if job.snapshot is not None:
        return perpetual_bars(load_snapshot(job.snapshot))
    plain: dict[str, Any] = {"market_param": job.market_param, "bars": job.bars, "seed": job.seed}
    sources: list[dict[str, Any]] = [{"data": path} for path in job.data] or [
        {"market": job.market}
    ]
    return [open_bars(BacktestJob(**source, **plain), request) for source in sources]


def _told(
    session: Session, address: str, keeping: Keeping, keys: Sequence[AccountKey]
) -> dict[str, Any]:
    floor = session.floor
    bars = floor.venue.tape(floor.venue.symbols[0]).bars
    return {
        "url": address,
        "session": keeping.name,
        "folder": str(keeping.folder),
        "symbols": list(floor.venue.symbols),
        "period": format_period(bars.period_ns),
        "bars": len(bars) - floor.first - 1,
        "starts": format_time(floor.opened_ns),
        "ends": format_time(int(bars.ts[-1]) + bars.period_ns),
        "speed": session.speed or "step",
        "accounts": [
            {"name": one.name, "api_key": one.api_key, "secret": one.secret.get_secret_value()}
            for one in keys
        ],
    }


def _view(told: Mapping[str, Any], keys: Sequence[AccountKey], *, hidden: bool) -> RenderableType:
    rows: list[tuple[object, ...]] = [
        ("address", told["url"]),
        ("symbols", ", ".join(told["symbols"])),
        ("bars", f"{told['bars']:,} of {told['period']}, {told['starts']} to {told['ends']}"),
        ("speed", told["speed"]),
        ("accounts", ", ".join(one.name for one in keys)),
        ("results", told["folder"]),
    ]
    parts: list[RenderableType] = [table("Sandbox exchange", ("what", "is"), rows)]
    if not hidden:
        parts.append("Keys, shown once:")
    for one in told["accounts"]:
        # Lines of their own, never broken: they are copied by hand.
        parts += [
            Text(f"{one['name']}  {noun}: {one[noun]}", no_wrap=True, overflow="ignore")
            for noun in ("api_key", "secret")
        ]
    snippet = f'ccxt.binance(ccxt_options("{told["url"]}", API_KEY, SECRET))'
    parts += ["In a bot:", Text("from agent_gym.apps.sandbox import ccxt_options"), Text(snippet)]
    return Group(*parts)


def _results(found: Mapping[str, Any]) -> RenderableType:
    figures = {name: dict(one["metrics"]) for name, one in found.items()}
    short = dict.fromkeys(filter(None, map(too_short, figures.values())))
    for metrics in figures.values():
        metrics |= dict.fromkeys(RATIOS) if too_short(metrics) else {}
    rows: list[tuple[object, ...]] = [
        (noun, *(_shown(metrics[figure], form) for metrics in figures.values()))
        for noun, figure, form in SHOWN
    ]
    made = table("Results, after costs", ("", *figures), rows)
    for column in made.columns[1:]:
        column.justify = "right"
    said = [*short, *(f"Look at {one['report']}" for one in found.values())]
    return Group(made, *map(Text, said))


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
