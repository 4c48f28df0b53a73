"""Command line options made from a config, one for each field, with its description and default.

So the command line cannot drift away from the config, and a command is written back from what it
was given.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure

NONE = "none"

C = TypeVar("C", bound=Config)
_LARGEST = 2**53  # beyond it a float64 skips numbers, and no length is that long
_FIELD = re.compile(r"parameter '(?P<field>\w+)': (?P<rule>.*)", re.DOTALL)


def with_options(
    parameter: str, model: type[Config], panel: str, flags: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command that takes a config as ``parameter`` one option for each field of it.

    Args:
        parameter: The argument of the command that takes the config.
        model: The config.
        panel: The heading of these options in the help.
        flags: Other names of options by field, such as ``{"latency_bars": "--latency"}``.
    """
    options = {
        name: _option(name, field, panel, (flags or {}).get(name))
        for name, field in model.model_fields.items()
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) for name in options}
            said = {name: _said(value) for name, value in given.items() if value not in (None, [])}
            built = configured(model, said, panel=panel, flags=flags)
            command(**{parameter: built}, **values)

        kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.name != parameter]
        wrapped: Any = run
        wrapped.__signature__ = inspect.Signature([*kept, *options.values()])
        run.__annotations__ = {}
        return run

    return decorate


def configured(
    model: type[C], said: Mapping[str, Any], *, panel: str, flags: Mapping[str, str] | None = None
) -> C:
    """Return the config that options give; an error names the option, not the field behind it."""
    where = f"options of {panel.lower()}"
    try:
        return configure(model, said, where=where)
    except ConfigError as error:
        named = _FIELD.match(error.what)
        if named is None:
            raise
        option = (flags or {}).get(named["field"], flag(named["field"]))
        raise ConfigError(
            f"the option {option} does not take this value",
            where=where,
            found=error.found,
            expected=named["rule"],
            remedy=error.remedy or "See --help for what it takes",
        ) from error


def flag(name: str) -> str:
    """Return the option of a field."""
    return "--" + name.replace("_", "-")


def words_of(config: Config, flags: Mapping[str, str] | None = None) -> list[str]:
    """Return the options that give this config, defaults left out.

    Example:
        >>> class Fees(Config):
        ...     fee_bps: float = 10.0
        ...     rebate: bool = False
        >>> words_of(Fees(fee_bps=2.5, rebate=True))
        ['--fee-bps', '2.5', '--rebate']
    """
    words: list[str] = []
    for name, field in type(config).model_fields.items():
        value, option = getattr(config, name), (flags or {}).get(name, flag(name))
        if value == field.get_default(call_default_factory=True):
            continue
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        elif isinstance(value, tuple):
            words += [word for each in value for word in (option, str(each))]
        else:
            words += [option, NONE if value is None else str(value)]
    return words


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return ``name=value`` pairs as parameters; a value that is JSON is taken as that.

    Example:
        >>> parse_pairs(["fast=10", "mode=slow"], "--param")
        {'fast': 10, 'mode': 'slow'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(
                f"{option} takes name=value",
                where=option,
                found=repr(pair),
                expected=f"a name, an equals sign and a value, such as {option} period=21",
                remedy="`agent-gym agents show NAME` lists the parameters of an agent",
            )
        if name in found:
            raise ConfigError(
                f"{option} names {name!r} twice",
                where=option,
                found=repr(pair),
                expected="each name once",
                remedy="Leave one of them out",
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
        if isinstance(found[name], int) and abs(found[name]) > _LARGEST:
            raise ConfigError(
                f"{option} gives {name!r} a number that is too large",
                where=option,
                found=text,
                expected=f"at most {_LARGEST}",
                remedy="Give a smaller number",
            )
    return found


def _said(value: Any) -> Any:
    return None if value == NONE else value


def _option(name: str, field: FieldInfo, panel: str, other: str | None) -> inspect.Parameter:
    kind, default = _kind(field), field.get_default(call_default_factory=True)
    own = other or flag(name)
    option = typer.Option(
        f"{own}/{own.replace('--', '--no-', 1)}" if kind is bool else own,
        help=_help(field, default),
        metavar=_metavar(kind, field),
        rich_help_panel=panel,
        show_default=False,
    )
    annotated: Any = Annotated  # the type is known only now, which a checker cannot follow
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=annotated[kind | None, option],
    )


def _kind(field: FieldInfo) -> Any:
    """Return the type that the command line reads; the config does the rest."""
    parts = set(get_args(field.annotation)) if _is_union(field.annotation) else {field.annotation}
    optional = type(None) in parts
    parts.discard(type(None))
    (kind,) = parts
    if get_origin(kind) is tuple:
        return list[str]
    if kind is bool:
        return bool
    # "none" must be sayable where null differs from leaving the option out.
    if optional and field.default is not None:
        return str
    return kind if kind in (int, float) else str


def _metavar(kind: Any, field: FieldInfo) -> str | None:
    if kind == list[str]:
        if Path in get_args(field.annotation):
            return "FILE"
        return "NAME" if "name" in (field.description or "") else "NAME=VALUE"
    return f"FLOAT|{NONE}" if kind is str and isinstance(field.default, float) else None


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _help(field: FieldInfo, default: Any) -> str:
    text = field.description or ""
    if field.is_required() or default is None or default == ():
        return text
    return f"{text} (default {default})"
