"""The one way in which a file is written: whole or not at all.

Core reads and writes nothing of its own accord; this is the tool that every room above uses.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_gym.core.errors import StoreError

HOME_VARIABLE = "AGENT_GYM_HOME"
DATABASE_VARIABLE = "AGENT_GYM_DATABASE"
DEFAULT_HOME = Path("results")


def home() -> Path:
    """Return the folder of all results: ``AGENT_GYM_HOME``, or ``results`` in this folder."""
    return Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success it is synced and renamed onto it.

    If the body raises, the temporary file is removed and the old target stays as it was.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise StoreError("cannot write here", where=str(target), found=error.strerror) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        sync(temporary)
        temporary.chmod(0o644)
        temporary.replace(target)
        sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write text atomically."""
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:
    """Write JSON atomically: sorted keys, no NaN, a final newline."""
    write_text(target, to_json(value) + "\n")


def to_json(value: Any) -> str:
    """Return readable JSON; a value that JSON cannot say is an error, never a null."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)


def sync(path: Path) -> None:
    """Make a file or a folder last: what it holds now is there after a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
