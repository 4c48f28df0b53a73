"""``agent-gym oracle``: what can be earned in a market whose law is known."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import Field, create_model
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import flag, with_options
from agent_gym.apps.cli.output import emit, table
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure
from agent_gym.evaluation.oracle import Attainable, attainable
from agent_gym.evaluation.oracle.plan import PLANS
from agent_gym.markets.known import KNOWN, KnownMarketConfig, full_name
from agent_gym.markets.known.source import LAWS

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")

OWN_OPTIONS = ("--cost-bp", "--allow-short", "--json")
# The mean of M4's signals is 0 wherever it stands and however many stand beside it.
NOT_OF_THE_LAW = {*KnownMarketConfig.model_fields, "decoys", "place"}


def law_fields(name: str) -> tuple[str, ...]:
    """Return the parameters of a known market that change what can be earned in it."""
    if name not in PLANS:
        return ()
    fields = LAWS[name].config.model_fields
    return tuple(field for field in fields if field not in NOT_OF_THE_LAW)


def _options() -> type[Config]:
    """Return a config with every parameter of every market, none of them set."""
    fields: dict[str, Any] = {}
    for name in KNOWN:
        for field in law_fields(name):
            about = LAWS[name].config.model_fields[field].description or ""
            fields.setdefault(field, (float | None, Field(default=None, description=about)))
    return create_model("LawOptions", __base__=Config, **fields)


# Options may follow the market, and one that does not exist is refused by the name of the market.
@app.callback(
    context_settings={"allow_interspersed_args": True, "ignore_unknown_options": True},
)
@with_options("law", _options(), "Parameters of the market, each for the markets that have it")
def oracle(
    law: Config,
    market: Annotated[
        list[str],
        typer.Argument(
            metavar="MARKET", help=f"Known market: {', '.join(KNOWN)}; m1 means known/m1."
        ),
    ],
    cost_bp: Annotated[float, typer.Option(help="Cost of a trade, of what is traded.")] = 5.0,
    allow_short: Annotated[bool, typer.Option(help="May be short, not only long or out.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compute what can be earned in a market of known law, after costs, and where to trade."""
    name = full_name(market[0])
    given = {field: value for field, value in law.model_dump().items() if value is not None}
    _refuse_unknown(name, [*(flag(field) for field in given), *market[1:]])
    params = configure(LAWS[name].config, given, where=f"market {name}")
    shown = {field: getattr(params, field) for field in law_fields(name)}
    found = attainable(Ref(use=name, params=given), cost_bp, allow_short=allow_short)
    payload = found.as_dict() | {
        "about": LAWS[name].about,
        "parameters": shown,
        "cost_bp": cost_bp,
        "allow_short": allow_short,
    }
    emit(payload, as_json=as_json, view=_view(found, payload))


def _refuse_unknown(name: str, words: list[str]) -> None:
    """Raise ConfigError for an option that this market does not have, or a stray word."""
    known = [*(flag(field) for field in law_fields(name)), *OWN_OPTIONS]
    for word in words:
        if word.partition("=")[0] not in known:
            raise ConfigError(
                f"{name} has no option {word.partition('=')[0]!r}"
                if word.startswith("-")
                else "one word too many",
                where="agent-gym oracle",
                found=repr(word),
                expected=f"options of {name}: {', '.join(known)}",
                remedy="`agent-gym oracle --help` lists the options of every market",
            )


def _view(found: Attainable, payload: dict[str, Any]) -> RenderableType:
    rows: list[tuple[object, ...]] = [
        ("attainable, bp a bar", _number(found.attainable_bp_per_bar)),
        ("Sharpe, a year", _number(found.sharpe)),
        ("Sharpe if told the hidden state", _number(found.oracle_sharpe)),
        ("turnover a bar", _number(found.turnover_per_bar)),
        *((name.replace("_", " "), _number(edge)) for name, edge in found.bands.items()),
        ("seconds", _number(found.seconds)),
    ]
    told = ", ".join(f"{name}={value:g}" for name, value in payload["parameters"].items())
    sides = "long, out or short" if payload["allow_short"] else "long or out"
    lines = [
        f"{payload['about']}; {told or 'no parameters'}; cost {payload['cost_bp']:g} bp; {sides}"
    ]
    if not found.attainable_bp_per_bar:
        lines.append("Nothing can be earned here; who earns before costs has looked ahead.")
    return Group(table(found.market, ("figure", "value"), rows), Text("\n".join(lines)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
