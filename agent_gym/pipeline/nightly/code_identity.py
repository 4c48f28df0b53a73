"""Which code makes the figures: a hash of every source that can change them.

It covers the package itself, the packages that the agent, the desk and the scenarios under test
come from, what those import of the user's, the folder of a bot, files that are named besides
(prompts, models), what is installed of the libraries that any of it needs, Python and the kind of
machine.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct

from agent_gym.core.manifest import fingerprint, installed_versions
from agent_gym.core.registry import Kind, entry
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.git_state import GitState, git_state
from agent_gym.pipeline.nightly.imported import (
    OWN,
    imported_by_bot,
    imported_libraries,
    imported_packages,
)
from agent_gym.pipeline.nightly.libraries import (
    library_hashes,
    own_libraries,
    required,
    served_libraries,
)
from agent_gym.pipeline.nightly.sources import files_hash, places, sources_hash

MORE_LIBRARIES = ("msgspec", "pydantic", "scipy", "scikit-learn", "river", "ta-lib")


class CodeIdentity(Struct, frozen=True):
    """The code of one side; equal hashes mean that equal seeds give equal figures."""

    code_hash: str
    commit: str | None
    dirty: bool
    packages: dict[str, str]
    versions: dict[str, str]
    also: dict[str, str] = {}
    libraries: dict[str, str] = {}


class BotCode(Struct, frozen=True):
    """Packages of the user's, folders and distributions that a bot is made of."""

    packages: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()


def code_identity(
    packages: Sequence[str], also: Sequence[Path] = (), libraries: Sequence[str] = ()
) -> CodeIdentity:
    """Return what is there now of the named top-level packages, and of other files and folders.

    Args:
        packages: Packages of the user's.
        also: Files and folders beside them.
        libraries: Distributions beside those that the packages import from, and what those need.
    """
    sources = {name: sources_hash(name) for name in sorted({OWN, *packages})}
    versions = library_versions()
    more = also_hashes(also)
    installed = library_hashes(
        {*own_libraries(), *required(imported_libraries(sources)), *libraries}
    )
    states = [(name, git_state(at)) for name in sources for at in places(name)]
    said = {"also": more, "libraries": installed, "sources": sources, "versions": versions}
    return CodeIdentity(
        code_hash=fingerprint(said),
        commit=_commit(states),
        dirty=any(state.dirty for _, state in states),
        packages=sources,
        versions=versions,
        also=more,
        libraries=installed,
    )


def also_hashes(also: Sequence[Path]) -> dict[str, str]:
    """Return the hashes of files and folders outside of any package, by their whole paths."""
    return {str(path): files_hash(path) for path in sorted({each.absolute() for each in also})}


def bot_code(bot: BotConfig | None) -> BotCode:
    """Return what a bot under test adds to the code: its folder, what that imports, a server."""
    if bot is None or bot.folder is None:
        return BotCode()
    packages, imported = imported_by_bot(bot.folder)
    libraries = required(imported) | served_libraries()
    return BotCode(tuple(sorted(packages)), (bot.folder,), tuple(sorted(libraries)))


def packages_of(suite: Suite, subject: Subject, imports: Sequence[str]) -> tuple[str, ...]:
    """Return the top-level packages of the subject and the scenarios, and what those import."""
    named: list[tuple[Kind, str]] = [("agent", subject.agent.use), ("desk", subject.desk.use)]
    named.extend(("scenario", scenario.type) for scenario in suite.scenarios)
    modules = [entry(kind, name).factory.__module__ for kind, name in named]
    return imported_packages({OWN, *(each.partition(".")[0] for each in (*modules, *imports))})


def library_versions() -> dict[str, str]:
    """Return the versions of what decides the bits of a figure."""
    found = installed_versions() | {
        "machine": platform.machine(),
        "system": platform.system(),
        "implementation": platform.python_implementation(),
    }
    for name in MORE_LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _commit(states: Sequence[tuple[str, GitState]]) -> str | None:
    """Return the commit of our own sources, and those of other repositories behind it."""
    own = next(state.commit for name, state in states if name == OWN)
    others = {
        f"{name}:{state.commit}"
        for name, state in states
        if state.commit is not None and state.commit != own
    }
    return " ".join([*([own] if own else []), *sorted(others)]) or None
