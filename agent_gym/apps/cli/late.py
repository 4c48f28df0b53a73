"""Work that needs heavy libraries is imported when its command is sure what to do.

A command is two modules: NAME says what can be told to it and is light, ``NAME_work`` does it. So a
wrong option or name is refused before torch is loaded, and help comes at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def work_of(command: str) -> Any:
    """Return the module that does the work of a command."""
    return import_module(f"agent_gym.apps.cli.{command}_work")
