"""Where results go, and which source made them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import agent_gym
from agent_gym.core.errors import ConfigError

_OUT = "--out"
_SHOWN = 3
_LONGEST_NAME = 240  # 255 bytes less what the temporary name beside it adds


def check_writable(folder: Path, option: str = _OUT) -> None:
    """Raise ConfigError unless a folder can be made and written here; nothing is left behind.

    Args:
        folder: Where to.
        option: What chooses another place.
    """
    _check_names(folder, option)
    try:
        ancestor = folder.absolute()
        while not os.path.lexists(ancestor):
            ancestor = ancestor.parent
        if not ancestor.is_dir():
            raise ConfigError(
                "not a folder", where=str(folder), found=_kind(ancestor), remedy=_other(option)
            )
        with tempfile.TemporaryFile(dir=ancestor):
            return
    except OSError as error:
        raise ConfigError(
            "this folder cannot be written",
            where=str(folder),
            found=error.strerror,
            remedy=_other(option),
        ) from error


def check_own_folder(folder: Path, *marks: str) -> None:
    """Raise ConfigError if a folder holds files, and none of those that an earlier run leaves.

    Args:
        folder: Where a run is to be written, over an earlier one or where nothing is.
        marks: Names that tell an earlier run; a pattern such as ``*.jsonl`` is one too.
    """
    if not folder.is_dir():
        return
    inside = sorted(path.name for path in folder.iterdir())
    if not inside or any(any(folder.glob(mark)) for mark in marks):
        return
    shown = ", ".join(inside[:_SHOWN]) + (", ..." if len(inside) > _SHOWN else "")
    raise ConfigError(
        "this folder holds other files, which a run would be mixed with",
        where=str(folder),
        found=shown,
        expected=f"an empty folder, or an earlier run (with {' or '.join(marks)})",
        remedy=_other(_OUT),
    )


def check_target(path: Path, option: str = _OUT) -> None:
    """Raise ConfigError unless a file can be written here; an older file is only looked at.

    Every command asks this of every place it will write to, before it reads or computes anything,
    so that a wrong place is always a wrong command. A disk that fills up later is a StoreError.
    """
    if os.path.lexists(path) and path.exists() and not path.is_file():
        raise ConfigError(
            "a file cannot be written here",
            where=str(path),
            found=_kind(path),
            expected="the name of a file",
            remedy="Add a file name, such as bars.parquet" if path.is_dir() else _other(option),
        )
    _check_names(path, option)
    check_writable(path.absolute().parent, option)


def _other(option: str) -> str:
    return f"Choose another place with {option}"


def _check_names(path: Path, option: str) -> None:
    longest = max(len(os.fsencode(part)) for part in path.absolute().parts)
    if longest > _LONGEST_NAME:
        raise ConfigError(
            "this name is too long",
            where=str(path),
            found=f"{longest} bytes",
            expected=f"at most {_LONGEST_NAME}",
            remedy=_other(option),
        )


def _kind(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder"
    if path.is_file():
        return f"{path} is a file"
    return f"{path} is a device, a pipe or a link that leads nowhere"


def source_commit(package: Path | None = None) -> str | None:
    """Return the commit that the package runs from, None outside a git checkout."""
    root = (package or Path(agent_gym.__file__).parent).resolve().parent / ".git"
    try:
        head = (root / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if (root / name).is_file():
            return (root / name).read_text(encoding="utf-8").strip()
        packed = (root / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
