"""Reads a file as plain values, and nothing that a hostile or careless file could hide in it."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn

import yaml
from typing_extensions import override

from agent_gym.core.errors import ConfigError

LARGEST_BYTES = 1_000_000
DEEPEST = 20
MOST_VALUES = 100_000
SUITE = "a suite file cannot be read"


def read_plain(path: Path) -> Any:
    """Return the content of a JSON or YAML file, by its ending.

    Refused are files over a million bytes, keys that are given twice, YAML aliases and tags, values
    nested deeper than twenty levels, and numbers that are not finite.
    """
    if path.suffix.lower() not in (".json", ".yaml", ".yml"):
        raise _refused(path, f"the ending is {path.suffix!r}", ".json, .yaml or .yml")
    text = bounded_text(path, SUITE)
    try:
        value = _json(text) if path.suffix.lower() == ".json" else _yaml(text)
    except RecursionError:
        raise _refused(path, "it is nested too deeply", f"at most {DEEPEST} levels") from None
    except (ValueError, yaml.YAMLError) as error:
        raise _refused(path, " ".join(str(error).split()), "valid JSON or YAML") from error
    _check(path, value)
    return value


def read_yaml(path: Path, what: str) -> Any:
    """Return the content of a YAML file of any ending, with the same refusals; JSON is YAML too.

    Args:
        path: The file.
        what: What is wrong if it cannot be read, in words.
    """
    text = bounded_text(path, what)
    try:
        value = _yaml(text)
    except RecursionError:
        raise _refused(path, "it is nested too deeply", f"{DEEPEST} levels", what) from None
    except (ValueError, yaml.YAMLError) as error:
        raise _refused(path, " ".join(str(error).split()), "valid YAML", what) from error
    _check(path, value, what)
    return value


def check_expansion(root: yaml.Node | None) -> None:
    """Raise YAMLError if aliases make too much of what a file says, or make it hold itself.

    A file of a few lines can mean billions of values; they are counted without being made.
    """
    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise yaml.YAMLError("a value holds itself")
            return known
        sizes[id(node)] = None
        total = 1
        if isinstance(node, yaml.MappingNode):
            total += sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(size(value) for value in node.value)
        sizes[id(node)] = total
        return total

    try:
        found = size(root) if root is not None else 0
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    if found > MOST_VALUES:
        raise yaml.YAMLError(f"it says {found:,} values, {MOST_VALUES:,} are allowed")


def bounded_text(path: Path, what: str) -> str:
    """Return the text of a file, unless it is too large or none."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _refused(path, str(error.strerror), "a file that can be read", what) from error
    if len(raw) > LARGEST_BYTES:
        raise _refused(path, "it is too large", f"at most {LARGEST_BYTES:,} bytes", what)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, f"byte {error.start} is no text", "UTF-8", what) from error


def _refused(path: Path, found: str, expected: str, what: str = SUITE) -> ConfigError:
    return ConfigError(what, where=str(path), found=found, expected=expected)


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON knows")


class BoundedLoader(yaml.SafeLoader):
    """Plain YAML that is not nested too deeply."""

    depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > 2 * DEEPEST:  # before it is built: a deep file must not cost anything
            raise RecursionError
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _StrictLoader(BoundedLoader):
    """YAML without aliases and without a key given twice."""

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [str(key.value) for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise yaml.YAMLError(f"the key {name!r} is given twice")
        return super().construct_mapping(node, deep=deep)


def _yaml(text: str) -> Any:
    # A SafeLoader with more refusals: no tag makes anything but plain values.
    return yaml.load(text, Loader=_StrictLoader)


def _check(path: Path, value: Any, what: str = SUITE) -> None:
    """Refuse what is nested too deeply, and numbers that are none (YAML has .nan and .inf)."""
    level: list[tuple[str, Any]] = [("", value)]
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise _refused(path, "it is nested too deeply", f"at most {DEEPEST} levels", what)
        below: list[tuple[str, Any]] = []
        for name, each in level:
            if isinstance(each, float) and not math.isfinite(each):
                kind = "is not a number" if math.isnan(each) else "is infinite"
                found = f"{name or 'the value'} {kind} ({each})"
                raise _refused(path, found, "finite numbers", what)
            if isinstance(each, dict):
                below.extend((f"{name}.{key}".lstrip("."), held) for key, held in each.items())
            elif isinstance(each, list):
                below.extend((f"{name}[{at}]", held) for at, held in enumerate(each, start=1))
        level = below
