"""Which code makes the figures: a hash of every source that can change them.

It covers the package itself, the packages that the agent, the desk and the scenarios under test
come from, what those import of the user's, files that are named besides (prompts, models), the
libraries that decide the bits of a figure, Python and the kind of machine.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint, installed_versions
from agent_gym.core.registry import Kind, entry
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.git_state import GitState, git_state
from agent_gym.pipeline.nightly.imported import OWN, imported_packages

MORE_LIBRARIES = ("msgspec", "pydantic", "scipy", "scikit-learn", "river", "ta-lib")
LARGEST_BYTES = 200 * 2**20
_CACHES = {"__pycache__", "node_modules"}
_CACHED = {".pyc", ".pyo", ".nbi", ".nbc"}


class CodeIdentity(Struct, frozen=True):
    """The code of one side; equal hashes mean that equal seeds give equal figures."""

    code_hash: str
    commit: str | None
    dirty: bool
    packages: dict[str, str]
    versions: dict[str, str]
    also: dict[str, str] = {}


def code_identity(packages: Sequence[str], also: Sequence[Path] = ()) -> CodeIdentity:
    """Return what is there now of the named top-level packages, and of other files and folders."""
    sources = {name: sources_hash(name) for name in sorted({OWN, *packages})}
    versions = library_versions()
    more = also_hashes(also)
    states = {name: git_state(place(name)) for name in sources}
    return CodeIdentity(
        code_hash=fingerprint({"also": more, "sources": sources, "versions": versions}),
        commit=_commit(states),
        dirty=any(state.dirty for state in states.values()),
        packages=sources,
        versions=versions,
        also=more,
    )


def also_hashes(also: Sequence[Path]) -> dict[str, str]:
    """Return the hashes of files and folders outside of any package, by their whole paths."""
    return {str(path): _files_hash(path) for path in sorted({each.absolute() for each in also})}


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


def place(package: str) -> Path:
    """Return the folder of a package, or the file of a module that is no package."""
    try:
        spec: ModuleSpec | None = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if folders:
        return Path(folders[0])
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ConfigError(
            "the sources of this package cannot be found",
            found=package,
            remedy="Put the agent, desk or scenario into a module that can be imported",
        )
    return Path(spec.origin)


def source_files(package: str) -> Iterator[tuple[str, Path]]:
    """Yield every file of a package, caches left out, with its path below the package's parent."""
    yield from _files(place(package))


def sources_hash(package: str) -> str:
    """Return the hash of all files of a package and their names."""
    return _files_hash(place(package))


def _files(top: Path) -> Iterator[tuple[str, Path]]:
    if top.is_file():
        yield top.name, top
        return
    for path in sorted(top.rglob("*")):
        below = path.relative_to(top)
        hidden = any(part.startswith(".") or part in _CACHES for part in below.parts)
        if path.is_file() and not hidden and path.suffix not in _CACHED:
            yield (Path(top.name) / below).as_posix(), path


def _files_hash(top: Path) -> str:
    if not top.exists():
        raise ConfigError("there is no such file or folder", where="--also", found=str(top))
    digest, size = blake2b(digest_size=16), 0
    for name, path in _files(top):
        size += path.stat().st_size
        if size > LARGEST_BYTES:
            raise ConfigError(
                "this is too large to be read every night",
                where=str(top),
                found=f"more than {LARGEST_BYTES:,} bytes",
                remedy="Keep data outside of the package, and name what decides figures alone",
            )
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _commit(states: dict[str, GitState]) -> str | None:
    """Return the commit of our own sources, and those of other repositories behind it."""
    own = states[OWN].commit
    others = sorted(
        f"{name}:{state.commit}"
        for name, state in states.items()
        if state.commit is not None and state.commit != own
    )
    return " ".join([*([own] if own else []), *others]) or None
