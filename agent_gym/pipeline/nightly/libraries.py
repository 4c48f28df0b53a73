"""Installed libraries: which distribution a module is of, and a hash of what is installed of it.

A distribution lists its files with their hashes (RECORD), so its hash is that of the list. Small
ones that only the user's code needs are read file by file: there a change in place counts as well.
Everything is read from the folders of ``sys.path``, so the answer is the same in every process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

INSTALLED = frozenset({"site-packages", "dist-packages"})
OURS, OUR_EXTRAS = "agent-gym", frozenset({"rl", "fast", "llm", "ray"})
READ_WHOLE_BYTES = 4 * 2**20
ABSENT = "absent"
_KINDS = (".dist-info", ".egg-info")
_REQUIRED = re.compile(r"^Requires-Dist:\s*([A-Za-z0-9._-]+)(.*)$", re.MULTILINE)
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def is_installed(path: Path) -> bool:
    """Say whether a file lies where libraries are installed."""
    return bool(INSTALLED & set(path.parts))


def distributions_of(module: str) -> tuple[str, ...]:
    """Return the names of the distributions that a top-level module is of, none if nobody says."""
    return _index(_searched()).get(module, ())


def required(names: Iterable[str], extras: frozenset[str] = frozenset()) -> set[str]:
    """Return installed distributions and all that they require, near and far.

    Args:
        names: Where to begin.
        extras: Optional sets of requirements of the first ones that count too.
    """
    known = _folders(_searched())
    found: set[str] = set()
    waiting = [(normal(name), extras) for name in names]
    while waiting:
        name, more = waiting.pop()
        if name in found or name not in known:
            continue
        found.add(name)
        waiting += [(each, frozenset()) for each in _required_by(known[name], more)]
    return found


@cache
def own_libraries() -> frozenset[str]:
    """Return the distributions that this package itself is made of."""
    return frozenset(required([OURS], OUR_EXTRAS) - {normal(OURS)})


@cache
def served_libraries() -> frozenset[str]:
    """Return the distributions that a server of this package is made of.

    What uvicorn takes if it is there counts, too: it speaks HTTP with it.
    """
    return frozenset(required([OURS, "uvicorn"], frozenset({"service", "standard"})) - {OURS})


def library_hashes(names: Iterable[str]) -> dict[str, str]:
    """Return version and hash of what is installed of each distribution."""
    known = _folders(_searched())
    return {name: _hash(name, known.get(name)) for name in sorted(set(names))}


def normal(name: str) -> str:
    """Return the name of a distribution as all spell it.

    Example:
        >>> normal("My.Lib_two")
        'my-lib-two'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _searched() -> tuple[str, ...]:
    return tuple(path for path in sys.path if path and Path(path).is_dir())


def _folders(searched: tuple[str, ...]) -> dict[str, Path]:
    """Return the folder (or file) of the metadata of each distribution; the first found counts."""
    found: dict[str, Path] = {}
    for place in searched:
        for entry in sorted(Path(place).iterdir()):
            if entry.suffix in _KINDS:
                found.setdefault(normal(entry.stem.split("-")[0]), entry)
    return found


@cache
def _index(searched: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, folder in _folders(searched).items():
        for module in _modules(folder):
            found[module] = (*found.get(module, ()), name)
    return found


def _modules(folder: Path) -> set[str]:
    listed = _read(folder / "RECORD").splitlines()
    said = set(_read(folder / "top_level.txt").decode(errors="replace").split())
    tops = {line.partition(b",")[0].strip(b'"').partition(b"/")[0] for line in listed}
    modules = {
        top.decode(errors="replace") for top in tops if not top.endswith((b".dist-info", b".pth"))
    }
    return said | {top.partition(".")[0] for top in modules} - {"", "__pycache__"}


def _required_by(folder: Path, extras: frozenset[str]) -> Iterator[str]:
    head = _metadata(folder).decode(errors="replace").partition("\n\n")[0]
    for name, condition in _REQUIRED.findall(head):
        asked = set(_EXTRA.findall(condition))
        if not asked or asked & extras:
            yield normal(name)


def _metadata(folder: Path) -> bytes:
    """Return what a distribution says about itself; in a working copy it lies in another file."""
    return _read(folder / "METADATA") or _read(folder / "PKG-INFO") or _read(folder)


def _hash(name: str, folder: Path | None) -> str:
    if folder is None:
        return ABSENT
    version = folder.stem.partition("-")[2] or "?"
    record = folder / "RECORD"
    listed = _read(record)
    digest = blake2b(_settled(listed), digest_size=16)
    if name not in own_libraries():
        lines = listed.decode(errors="replace").splitlines()
        names = [line.rsplit(",", 2)[0].strip('"') for line in lines] if lines else []
        paths = [folder.parent / each for each in names] or _unlisted(folder)
        _add_files(digest, [path for path in paths if path.suffix != ".pyc"])
    return f"{version} {digest.hexdigest()}"


def _settled(listed: bytes) -> bytes:
    """Return a list of files without those that come and go while Python runs."""
    return b"\n".join(line for line in listed.splitlines() if b".pyc," not in line)


def _unlisted(folder: Path) -> list[Path]:
    """Return the files of a distribution that lists none."""
    tops = [folder.parent / top for top in sorted(_modules(folder))]
    tops += [top.with_suffix(".py") for top in tops]
    return [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*")))]


def _add_files(digest: blake2b, paths: list[Path]) -> None:
    files = [path for path in paths if path.is_file()]
    if sum(path.stat().st_size for path in files) > READ_WHOLE_BYTES:
        return
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
