"""Which modules of the user's a subject is made of, beside those that are named.

What a source file imports is read from its text, so an import inside a function counts too and the
answer does not depend on what has been loaded so far. Imports that no text shows are seen when they
happen: a worker says what it has loaded.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent_gym.pipeline.nightly.libraries import distributions_of, is_installed
from agent_gym.pipeline.nightly.sources import files_of, found_places, source_files

OWN = "agent_gym"
# The program, and what an environment loads before it; neither is what it plays.
_STARTED = {"__main__", "__mp_main__", "_virtualenv", "sitecustomize", "usercustomize"}
_STANDARD = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def imported_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the packages and all top-level packages that they import, near and far.

    The standard library and libraries are left out. Our own package imports nothing else. What is
    installed without being of any distribution (a folder put there by hand) is the user's.
    """
    found: set[str] = set()
    waiting = sorted(packages)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting.extend(each for each in _imported_by(name) if is_of_the_user(each))
    return tuple(sorted(found))


def imported_libraries(packages: Iterable[str]) -> set[str]:
    """Return the distributions that the sources of packages import from; see libraries.py."""
    names = {name for package in packages for name in _imported_by(package)}
    return {
        each
        for name in names
        if any(is_installed(path) for path in found_places(name))
        for each in distributions_of(name)
    }


def imported_by_bot(folder: Path) -> tuple[set[str], set[str]]:
    """Return what the Python files of a folder import: packages of the user's, and distributions.

    Modules of the folder itself are neither; all of it counts anyway.
    """
    paths = [path for _, path in files_of(folder)]
    own = {path.name for path in folder.iterdir()}
    names = {name for name in _imports(paths) if not {name, f"{name}.py"} & own}
    installed = {name for name in names if any(is_installed(at) for at in found_places(name))}
    libraries = {each for name in installed for each in distributions_of(name)}
    return {name for name in names if is_of_the_user(name)}, libraries


def loaded_packages() -> dict[str, str]:
    """Return the packages of the user's that this process has loaded, with a file of each."""
    found: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if isinstance(file, str) and top not in _STARTED and _is_own(top, Path(file)):
            found.setdefault(top, file)
    return found


def loaded_installed(before: Collection[str]) -> dict[str, str]:
    """Return the installed modules that this process has loaded since, with a file of each."""
    found: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if top in before or top in _STARTED or not isinstance(file, str):
            continue
        if is_installed(Path(file)):
            found.setdefault(top, file)
    return found


def is_of_the_user(package: str) -> bool:
    """Say whether a package can be found and is neither Python's nor a library."""
    found = found_places(package)
    if not found or package in _STARTED:
        return False
    if all(is_installed(path) for path in found):
        return package not in sys.stdlib_module_names and not distributions_of(package)
    return any(_is_own(package, path) for path in found)


def _is_own(name: str, path: Path) -> bool:
    if name in sys.stdlib_module_names or is_installed(path):
        return False
    return path.suffix != ".py" or not any(path.is_relative_to(each) for each in _STANDARD)


def _imported_by(package: str) -> Iterator[str]:
    if package == OWN or not found_places(package):
        return
    yield from _imports(path for _, path in source_files(package))


def _imports(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the top-level names that Python sources import."""
    for path in paths:
        if path.suffix != ".py":
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a template, or not for this Python: nothing loads it
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module.partition(".")[0]
