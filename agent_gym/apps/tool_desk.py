"""Calls that others can make by name: what each does, its arguments, and how errors are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.core.errors import AgentGymError
from agent_gym.core.registry import Config, configure


class Nothing(Config):
    """No arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what it does, and its arguments."""

    about: str
    arguments: type[Config]
    work: Callable[[Any], dict[str, Any]]


class ToolDesk:
    """Carries out calls by name; what is wrong with a call is in its answer."""

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self.calls = dict(calls)

    def call(self, name: str, arguments: Any) -> tuple[bool, dict[str, Any]]:
        """Carry out a call; return whether it went well, and the answer or the error."""
        wanted = self.calls.get(name)
        if wanted is None:
            known = ", ".join(self.calls)
            return False, {"what": "there is no such call", "found": name[:64], "expected": known}
        given = arguments if isinstance(arguments, dict) else {}
        try:
            return True, wanted.work(configure(wanted.arguments, given, where=name))
        except AgentGymError as error:
            told = self.told(error)
            return False, told | {"where": told["where"] or name}

    def told(self, error: AgentGymError) -> dict[str, Any]:
        """Return an error as it is answered."""
        return dict(error.as_dict())
