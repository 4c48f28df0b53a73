"""Where results go, and which source made them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import agent_gym
from agent_gym.core.errors import ConfigError

HOME_VARIABLE = "AGENT_GYM_HOME"
DEFAULT_HOME = Path("results")


def home() -> Path:
    """Return the folder of all results: ``AGENT_GYM_HOME``, or ``results`` in this folder."""
    return Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)


def check_writable(folder: Path) -> None:
    """Raise ConfigError unless a folder can be made and written here; nothing is left behind."""
    ancestor = folder
    while not ancestor.exists():
        ancestor = ancestor.parent
    if not ancestor.is_dir():
        raise ConfigError("not a folder", where=str(folder), found=f"{ancestor} is a file")
    try:
        with tempfile.TemporaryFile(dir=ancestor):
            return
    except OSError as error:
        raise ConfigError(
            "this folder cannot be written",
            where=str(folder),
            found=error.strerror,
            remedy="Choose another folder with --out",
        ) from error


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
