"""A project of the user's own, whose names are found without installing it.

Its ``pyproject.toml`` announces them as entry points, as any package does. ``AGENT_GYM_PROJECT``
says where it lies, so that every process of a run finds the same names.
"""

import os
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError

PROJECT_VARIABLE, PROJECT_FILE, TABLE = "AGENT_GYM_PROJECT", "pyproject.toml", "agent-gym"


@cache
def read_project(folder: Path) -> dict[str, Any]:
    """Return what the project file of a folder says; empty without the table [tool.agent-gym]."""
    file = folder / PROJECT_FILE
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError("this project cannot be read", where=str(file), found=error) from error
    return said if TABLE in said.get("tool", {}) else {}


def enter_path() -> dict[str, Any]:
    """Let the project's modules be imported; return what its file says, empty without a project.

    Its folder goes to the end of the path: frozen code of an earlier night comes before it.
    """
    named = os.environ.get(PROJECT_VARIABLE)
    said = read_project(Path(named)) if named else {}
    if named and said and named not in sys.path:
        sys.path.append(named)
    return said


def announced_by_project(kind: str) -> dict[str, str]:
    """Return the names of a kind that the project announces, name -> module."""
    groups = enter_path().get("project", {}).get("entry-points", {})
    return dict(groups.get(f"agent_gym.{kind}", {}))
