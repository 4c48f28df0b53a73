"""The options with which every command reads a market file, made from the models they fill.

One field is one option, with the model's own description and default, so the command line cannot
drift away from ``ReadRequest``, ``RepairPolicy`` and ``Instrument``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from agent_gym.apps.cli.config_options import configured
from agent_gym.core.registry import Config
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.readers import ReadRequest
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT
from agent_gym.markets.repair import RepairPolicy

_PARTS: dict[str, type[Config]] = {"instrument": Instrument, "repair": RepairPolicy}
_DEFAULTS: dict[str, Any] = UNKNOWN_INSTRUMENT.model_dump()
_HELP = {
    "symbol": "what is traded, such as BTC/USDT",
    "exchange": "where it is traded",
    "kind": "what sort of instrument it is",
}


def with_request(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes a ``request`` one option for each field of it."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    options = _options()

    @wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in options}
        command(request=build_request(given), **values)

    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.name != "request"]
    wrapped: Any = run
    wrapped.__signature__ = inspect.Signature([*kept, *options.values()])
    run.__annotations__ = {}
    return run


def build_request(given: Mapping[str, Any]) -> ReadRequest:
    """Return the request for options by field name; None means that it was not given."""
    said = {name: value for name, value in given.items() if value is not None}
    fields: dict[str, Any] = {k: v for k, v in said.items() if k in ReadRequest.model_fields}
    for part, model in _PARTS.items():
        chosen = {name: value for name, value in said.items() if name in model.model_fields}
        if chosen and part == "instrument":
            chosen = _DEFAULTS | chosen
        if chosen:
            fields[part] = configured(model, chosen, panel=f"the {part}")
    return configured(ReadRequest, fields, panel="the file")


def _options() -> dict[str, inspect.Parameter]:
    found = {}
    panels: dict[str, type[Config]] = {"the file": ReadRequest, **_PARTS}
    for panel, model in panels.items():
        for name, field in model.model_fields.items():
            if name not in _PARTS:
                found[name] = inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=None,
                    annotation=_annotation(name, field, panel.capitalize()),
                )
    return found


def _annotation(name: str, field: FieldInfo, panel: str) -> Any:
    kind: Any = field.annotation
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    number = next((known for known in (float, int) if kind == known or kind == known | None), str)
    default = _DEFAULTS.get(name, field.default)
    option = typer.Option(
        help=(field.description or _HELP[name])
        + ("" if default is None else f" (default {default})"),
        metavar="|".join(map(str, choices)) or None,
        rich_help_panel=panel,
        show_default=False,
    )
    return Annotated[number | None, option]
