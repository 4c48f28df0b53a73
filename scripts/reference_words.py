"""Types, defaults and limits of configs as words for the pages of reference."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_gym.core.registry import Config

LONGEST = 60
LIMITS = {
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
    "min_length": "length >=",
    "max_length": "length <=",
}
_CODE = re.compile(r"(`[^`]*`)")
_SECTION = re.compile(r"\n\s*\n?(?:Example|Args|Attributes|Returns|Raises|Yields):")


def first_words(doc: str) -> str:
    r"""Return the first paragraph of a docstring, in one line.

    Example:
        >>> first_words("Two windows.\n\nMore.\n\nArgs:\n    x: y")
        'Two windows.'
    """
    text = _SECTION.split(doc.strip())[0].split("\n\n")[0]
    return re.sub(r"\s+", " ", text).replace("``", "`").strip()


def cell(text: str) -> str:
    r"""Return words so that Markdown shows them as they are, also inside a table.

    Example:
        >>> cell("a|b <c> `d|e` *")
        'a\\|b &lt;c> `d\\|e` \\*'
    """
    parts = _CODE.split(text)
    for number, part in enumerate(parts):
        shown = part.replace("|", r"\|")
        if not number % 2:
            shown = shown.replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")
        parts[number] = shown
    return "".join(parts)


def plain(value: Any) -> str:
    """Return a default as it would be written in a file, shortened if it is long.

    Example:
        >>> plain((1, "a")), plain(Path("results")), plain(True)
        ('[1, "a"]', 'results', 'true')
    """
    written = json.dumps(_jsonable(value), ensure_ascii=False)
    text = str(value) or written if isinstance(value, str | Path) else written
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return text.replace("|", r"\|").replace("`", "'")


def _jsonable(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, tuple | list | set | frozenset):
        return [_jsonable(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _jsonable(each) for name, each in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Fields:
    """Tables of configs; a config inside another gets a section of its own, once a page."""

    def __init__(self) -> None:
        self._waiting: list[type[Config]] = []
        self._shown: set[type[Config]] = set()
        self._titles: dict[str, type[Config]] = {}

    def section(self, model: type[Config], dotted: str) -> Iterator[str]:
        """Yield a config under its own heading, with the name to import it by."""
        self._shown.add(model)
        yield from (f"### {self._title(model)}", "", cell(first_words(model.__doc__ or "")), "")
        yield from (f"`{dotted}`", "", *self.table(model), "")

    def table(self, model: type[Config]) -> list[str]:
        """Return the fields of a config as rows."""
        rows = [
            f"| `{name}` | {self._type(field.annotation)}{_limits(field)} |"
            f" {self._default(field)} | {cell(field.description or '')} |"
            for name, field in model.model_fields.items()
        ]
        head = ["| field | type | default | meaning |", "|---|---|---|---|"]
        return [*head, *rows] if rows else ["It takes no parameters."]

    def parts(self) -> Iterator[str]:
        """Yield the configs that were named inside others."""
        if self._waiting:
            yield from ("## Parts", "", "Configs that stand inside others.", "")
        while self._waiting:
            model = self._waiting.pop(0)
            if model not in self._shown:
                yield from self.section(model, f"{model.__module__}.{model.__qualname__}")

    def _default(self, field: FieldInfo) -> str:
        if field.is_required():
            return "required"
        value = field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel) and plain(value) == "{}":
            return "its defaults"
        return f"`{plain(value)}`"

    def _type(self, kind: Any) -> str:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._type(inner[0])
        if origin in (Union, types.UnionType):
            return " or ".join(self._type(each) for each in inner)
        if origin is Literal:
            return ", ".join(f"`{plain(each)}`" for each in inner)
        if origin in (tuple, list, frozenset, set):
            return self._list(inner)
        if origin is not None and issubclass(origin, dict | types.MappingProxyType):
            return f"map of {self._type(inner[0])} to {self._type(inner[1])}"
        return self._plain_type(kind)

    def _title(self, model: type[Config]) -> str:
        """Return the heading of a config: its name, with its module if another has the name."""
        if self._titles.setdefault(model.__name__, model) is model:
            return model.__name__
        return f"{model.__name__} of {model.__module__.rpartition('.')[2]}"

    def _list(self, inner: tuple[Any, ...]) -> str:
        if len(inner) == 1 or inner[-1] is Ellipsis:
            return f"list of {self._type(inner[0])}"
        return f"[{', '.join(self._type(each) for each in inner)}]"

    def _plain_type(self, kind: Any) -> str:
        if isinstance(kind, type) and issubclass(kind, Config):
            if kind not in self._waiting:
                self._waiting.append(kind)
            title = self._title(kind)
            return f"[{title}](#{title.lower().replace(' ', '-')})"
        known = {"NoneType": "null", "str": "text", "Path": "path", "Any": "anything"}
        name = getattr(kind, "__name__", str(kind))
        return known.get(name, name)


def _limits(field: FieldInfo) -> str:
    found = [
        f"{sign} {getattr(item, name):g}"
        for item in field.metadata
        for name, sign in LIMITS.items()
        if getattr(item, name, None) is not None
    ]
    return cell("".join(f", {limit}" for limit in found))
