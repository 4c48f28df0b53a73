"""Which modules of the user's a subject is made of, beside those that are named.

What a source file imports is read from its text, so an import inside a function counts too and the
answer does not depend on what has been loaded so far. Imports that no text shows are seen when they
happen: a worker says what it has loaded.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

OWN = "agent_gym"
_INSTALLED = {"site-packages", "dist-packages"}
_STARTED = {"__main__", "__mp_main__"}  # the program, not what it plays
_STANDARD = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def imported_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the packages and all top-level packages that they import, near and far.

    The standard library and what is installed are left out: libraries count by their versions. Our
    own package imports nothing else.
    """
    found: set[str] = set()
    waiting = sorted(packages)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name != OWN:
            waiting.extend(each for each in _imported_by(name) if is_of_the_user(each))
    return tuple(sorted(found))


def loaded_packages() -> dict[str, str]:
    """Return the packages of the user's that this process has loaded, with a file of each."""
    found: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if isinstance(file, str) and top not in _STARTED and _is_own(top, Path(file)):
            found.setdefault(top, file)
    return found


def is_of_the_user(package: str) -> bool:
    """Say whether a package can be found and is neither Python's nor installed."""
    top = _top(package)
    return top is not None and _is_own(package, top)


def _is_own(name: str, path: Path) -> bool:
    if name in sys.stdlib_module_names or _INSTALLED & set(path.parts):
        return False
    return path.suffix != ".py" or not any(path.is_relative_to(each) for each in _STANDARD)


def _top(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if folders:
        return Path(folders[0])
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    return Path(spec.origin)


def _imported_by(package: str) -> Iterator[str]:
    top = _top(package)
    if top is None:
        return
    for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a template, or not for this Python: nothing loads it
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module.partition(".")[0]
