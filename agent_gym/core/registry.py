"""One registry for everything that can be named in a config file.

A thing is announced by an entry point (``agent_gym.<kind>``: name -> module) and registered by a
decorator in that module. The module is imported when the name is first asked for, so a list of
names costs nothing and an optional library is needed only by those who name what uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_gym.core.errors import ConfigError
from agent_gym.core.project import announced_by_project

Kind: TypeAlias = Literal[
    "market",
    "world",
    "agent",
    "team",
    "metric",
    "learner",
    "scenario",
    "check",
    "desk",
    "tier",
    "crowd",
]


class Config(BaseModel):
    """Base of every config: frozen, unknown keys and non-finite numbers are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )


class Ref(Config):
    """A name in the registry and its parameters, as written in YAML."""

    use: str
    params: dict[str, Any] = Field(default_factory=dict)


LONGEST_FOUND = 200
C = TypeVar("C", bound=Config)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the registry knows of one name."""

    config: type[Config]
    factory: Callable[[Any], object]


_entries: dict[tuple[str, str], Entry] = {}


def register(
    kind: Kind, name: str, config: type[C]
) -> Callable[[Callable[[C], T]], Callable[[C], T]]:
    """Register a factory that takes one config and returns one thing."""

    def add(factory: Callable[[C], T]) -> Callable[[C], T]:
        if (kind, name) in _entries:
            raise ConfigError(f"{kind} {name!r} is registered twice", where=factory.__module__)
        _entries[(kind, name)] = Entry(config, factory)
        return factory

    return add


@cache
def _announced(kind: Kind) -> Mapping[str, str]:
    installed = {point.name: point.value for point in entry_points(group=f"agent_gym.{kind}")}
    return announced_by_project(kind) | installed


def names(kind: Kind) -> tuple[str, ...]:
    """Return every known name of a kind, sorted, without importing what is behind it."""
    return tuple(sorted({*_announced(kind), *(n for k, n in _entries if k == kind)}))


def entry(kind: Kind, name: str) -> Entry:
    """Return what is registered under a name, importing its module on the first call."""
    if (kind, name) not in _entries and name in _announced(kind):
        _load(kind, name, _announced(kind)[name])
    if (kind, name) not in _entries:
        raise unknown(f"{kind}", name, names(kind))
    return _entries[(kind, name)]


def _load(kind: Kind, name: str, module: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{kind} {name!r} cannot be loaded",
            where=module,
            found=str(error),
            remedy="Install what is missing, or install the package that announces it again",
        ) from error


def make(kind: Kind, ref: Ref) -> object:
    """Build the thing a Ref names."""
    found = entry(kind, ref.use)
    return found.factory(configure(found.config, ref.params, where=f"{kind} {ref.use}"))


def configure(config: type[C], params: Mapping[str, Any], *, where: str) -> C:
    """Validate parameters into a config; the error names the field and the nearest right one."""
    try:
        return config.model_validate(dict(params))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        known = tuple(config.model_fields)
        said = _message(first["msg"])
        raise ConfigError(
            f"parameter {field!r}: {said}" if field else said,
            where=where,
            found=_shown(first.get("input")),
            remedy=_nearest(field, known) if first["type"] == "extra_forbidden" else None,
        ) from error


def _message(text: str) -> str:
    """Return pydantic's message as the rest of a sentence; names and patterns keep their case."""
    own = text.removeprefix("Value error, ")
    return own if own != text else f"{text[:1].lower()}{text[1:]}"


def _shown(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "nan, which is not a number"
    text = repr(value)
    return text if len(text) <= LONGEST_FOUND else f"{text[:LONGEST_FOUND]}..."


def unknown(noun: str, name: str, known: tuple[str, ...]) -> ConfigError:
    """Return the error for a name that does not exist, with the nearest one that does."""
    remedy = _nearest(name, known)
    return ConfigError(f"no {noun} is named {name!r}", where=noun, found=name, remedy=remedy)


def _nearest(name: str, known: tuple[str, ...]) -> str:
    by_lower = {other.lower(): other for other in known}
    asked = name.lower()
    begins = [lower for lower in by_lower if asked and lower.startswith(asked)]
    close = begins or get_close_matches(asked, by_lower, n=1)
    hint = f"Did you mean {by_lower[close[0]]!r}? " if close else ""
    return f"{hint}Known: {', '.join(known) or 'none'}"
