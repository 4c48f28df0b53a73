"""Other values for the fields of a config: near ones first, then far ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from agent_gym.core.registry import Config

FACTORS = (2.0, 0.5, 1.25, 0.75, 10.0, 0.1)
NUMBERS = (1.0, 0.5, 0.1, 2.0, 10.0, 100.0, 1_000.0, 1e-3)
ACTS_ON = "acts_on"


def others(config: Config, name: str) -> Iterator[Config]:
    """Yield configs that are valid and differ in one field.

    Example:
        >>> class Window(Config):
        ...     bars: int = 4
        >>> [other.bars for other in others(Window(), "bars")][:3]
        [8, 2, 5]
    """
    kind, field = type(config), type(config).model_fields[name]
    value = getattr(config, name)
    given = {key: getattr(config, key) for key in kind.model_fields}
    seen = [value]
    for other in _values(field.annotation, value):
        try:
            made = kind.model_validate(given | {name: other})
        except ValidationError:
            continue
        found = getattr(made, name)
        if found not in seen:
            seen.append(found)
            yield made


def is_switch(config: Config, name: str) -> bool:
    """Say whether a field turns other fields on or off: a flag, a choice, or something absent."""
    kinds = _kinds(type(config).model_fields[name].annotation)
    return bool in kinds or type(None) in kinds or any(get_origin(k) is Literal for k in kinds)


def acts_on(field: FieldInfo) -> str | None:
    """Return what a field says that it acts on, if not on decisions, such as speed."""
    extra = field.json_schema_extra
    said = extra.get(ACTS_ON) if isinstance(extra, Mapping) else None
    return None if said is None else str(said)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)


def _values(annotation: Any, value: Any) -> Iterator[Any]:
    for kind in _kinds(annotation):
        if kind is type(None):
            yield None
        elif get_origin(kind) is Literal:
            yield from get_args(kind)
        elif kind is bool:
            yield not value
        elif kind in (int, float):
            yield from _numbers(kind, value)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield from kind
        elif isinstance(value, BaseModel):
            yield from _parts(value)
        elif isinstance(value, tuple) and value:
            yield from _tuples(value)


def _numbers(kind: Any, value: Any) -> Iterator[Any]:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    near = [value * factor for factor in FACTORS] if plain else []
    if plain:
        near += [value + 1, value - 1, value + 0.1, value - 0.1]
    for number in (*near, *NUMBERS, 0.0, -1.0):
        yield math.ceil(number) if kind is int else float(number)


def _parts(value: BaseModel) -> Iterator[Any]:
    for name, field in type(value).model_fields.items():
        inner = getattr(value, name)
        for other in _values(field.annotation, inner):
            yield {**{k: getattr(value, k) for k in type(value).model_fields}, name: other}


def _tuples(value: tuple[Any, ...]) -> Iterator[Any]:
    yield value[:-1]
    for factor in FACTORS:
        numbers = [v * factor for v in value if isinstance(v, int | float)]
        if len(numbers) == len(value):
            yield tuple(numbers)
            yield tuple(math.ceil(number) for number in numbers)
