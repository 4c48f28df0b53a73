"""Where a package's sources are: all its folders, links followed, caches left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from agent_gym.core.errors import ConfigError
from agent_gym.core.project import enter_path

LARGEST_BYTES = 200 * 2**20
_CACHES = {"__pycache__", "node_modules"}
_CACHED = {".pyc", ".pyo", ".nbi", ".nbc"}


def found_places(package: str) -> tuple[Path, ...]:
    """Return the folders of a package, or the file of a module that is no package; none if unknown.

    A namespace package may lie in several folders; the first that has a file is imported from.
    """
    enter_path()  # who only asks where sources are has looked up no name yet
    try:
        spec: ModuleSpec | None = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return ()
    folders = tuple(map(Path, spec.submodule_search_locations or ()))
    folders = tuple(folder for folder in folders if folder.is_dir())
    if folders or spec.origin is None or not Path(spec.origin).is_file():
        return folders
    return (Path(spec.origin),)


def places(package: str) -> tuple[Path, ...]:
    """Return where a package is, at least one place; ConfigError if it cannot be found."""
    found = found_places(package)
    if not found:
        raise ConfigError(
            "the sources of this package cannot be found",
            found=package,
            remedy="Put the agent, desk or scenario into a module that can be imported",
        )
    return found


def source_files(package: str) -> Iterator[tuple[str, Path]]:
    """Yield every file of a package once, with its path below the package's parent."""
    seen: set[str] = set()
    for top in places(package):
        for name, path in files_of(top):
            if name not in seen:  # of two portions of a namespace the first has the say
                seen.add(name)
                yield name, path


def files_of(top: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder in order, or the file itself, caches and hidden ones left out.

    Links to folders are followed, but never into a folder that they are in: that would not end.
    """
    if top.is_file():
        yield top.name, top
        return
    for path in _walk(top, (top.resolve(),)):
        yield (Path(top.name) / path.relative_to(top)).as_posix(), path


def _walk(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda each: each.name)
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith(".") or entry.name in _CACHES:
            continue
        if entry.is_dir():
            real = path.resolve()
            if real not in above:
                yield from _walk(path, (*above, real))
        elif entry.is_file() and path.suffix not in _CACHED:
            yield path


def sources_hash(package: str) -> str:
    """Return the hash of all files of a package and their names."""
    return _hash(source_files(package), package)


def files_hash(top: Path) -> str:
    """Return the hash of a file, or of all files of a folder and their names."""
    if not top.exists():
        raise ConfigError("there is no such file or folder", where="--also", found=str(top))
    return _hash(files_of(top), str(top))


def _hash(files: Iterator[tuple[str, Path]], where: str) -> str:
    digest, size = blake2b(digest_size=16), 0
    for name, path in files:
        size += path.stat().st_size
        if size > LARGEST_BYTES:
            raise ConfigError(
                "this is too large to be read every night",
                where=where,
                found=f"more than {LARGEST_BYTES:,} bytes",
                remedy="Keep data outside of the package, and name what decides figures alone",
            )
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
