"""The commit that sources come from, and whether they differ from it, read without git itself.

The files are compared with git's index. What was staged and not committed is seen by the mark that
staging leaves there; when in doubt the sources count as changed.
"""

from __future__ import annotations

import struct
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

_FIXED = 62  # bytes of an entry before its name
_LONG = 0x4000  # flag: two more bytes follow


class GitState(Struct, frozen=True):
    """A commit, or None outside of a repository; ``dirty`` if the files are not the commit's."""

    commit: str | None
    dirty: bool


def git_state(package: Path) -> GitState:
    """Return the state of a package's files (a folder or one file)."""
    package = package.resolve()
    root = next((up for up in package.parents if (up / ".git").exists()), None)
    if root is None:
        return GitState(None, False)
    folder = _git_folder(root / ".git")
    commit = _commit(folder)
    try:
        tracked, unsettled = _index((folder / "index").read_bytes())
    except (OSError, ValueError, struct.error, IndexError):
        return GitState(commit, commit is not None)
    prefix = package.relative_to(root).as_posix()
    ours = {
        name: digest
        for name, digest in tracked.items()
        if name == prefix or name.startswith(f"{prefix}/")
    }
    if not ours:  # it only happens to lie below a repository, as an installed package may
        return GitState(None, False)
    return GitState(commit, _touches(unsettled, prefix) or _differs(root, package, ours))


def _differs(root: Path, package: Path, tracked: dict[str, bytes]) -> bool:
    files = [package] if package.is_file() else sorted(package.rglob("*.py"))
    known = all(file.relative_to(root).as_posix() in tracked for file in files)
    return not known or any(_blob(root / name) != digest for name, digest in tracked.items())


def _blob(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest()


def _git_folder(dot_git: Path) -> Path:
    """Return the folder behind ``.git``, which in a linked work tree is a file that names it."""
    if dot_git.is_dir():
        return dot_git
    named = dot_git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    return (dot_git.parent / named).resolve()


def _commit(folder: Path) -> str | None:
    try:
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        shared = folder
        if (folder / "commondir").is_file():
            shared = (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve()
        for place in (folder, shared):
            if (place / name).is_file():
                return (place / name).read_text(encoding="utf-8").strip()
        packed = (shared / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)


def _index(raw: bytes) -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the blob of each tracked file, and the folders in which something was staged."""
    magic, version, count = struct.unpack_from(">4sII", raw)
    if magic != b"DIRC" or version not in (2, 3):
        raise ValueError("an index of a form that is not read here")
    at, tracked = 12, {}
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", raw, at + 60)
        start = at + _FIXED + (2 if flags & _LONG else 0)
        end = raw.index(b"\0", start)
        tracked[raw[start:end].decode("utf-8", "surrogateescape")] = raw[at + 40 : at + 60]
        at += (end - at + 8) // 8 * 8
    return tracked, _unsettled(raw, at)


def _unsettled(raw: bytes, at: int) -> frozenset[str]:
    while at + 8 <= len(raw) - 20:
        name, size = struct.unpack_from(">4sI", raw, at)
        if name == b"TREE":
            return frozenset(_open_trees(raw[at + 8 : at + 8 + size]))
        at += 8 + size
    return frozenset()


def _open_trees(raw: bytes) -> list[str]:
    """Return the folders that git marks as changed since it last wrote them as a tree."""
    found: list[str] = []
    above: list[tuple[str, int]] = []
    at = 0
    while at < len(raw):
        end = raw.index(b"\0", at)
        line = raw.index(b"\n", end)
        entries, below = (int(word) for word in raw[end + 1 : line].split(b" "))
        name = raw[at:end].decode("utf-8", "surrogateescape")
        while above and above[-1][1] == 0:
            above.pop()
        if above:
            parent, left = above[-1]
            above[-1] = parent, left - 1
            name = f"{parent}/{name}" if parent else name
        if entries < 0:
            found.append(name)
        above.append((name, below))
        at = line + 1 + (20 if entries >= 0 else 0)
    return found


def _touches(folders: frozenset[str], prefix: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}/") for name in folders)
