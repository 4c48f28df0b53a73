"""Who is told how far the work is."""

from __future__ import annotations

from typing import Any, Protocol

from agent_gym.rollouts.batch import Progress


class Listener(Protocol):
    """Is told which stage begins, and how much of it is done."""

    def stage(self, name: str, total: int | None = None) -> Progress: ...
    def tick(self) -> None: ...


class Silence:
    """Listens to nothing."""

    def stage(self, name: str, total: int | None = None) -> Progress:
        """Take note of nothing."""
        return _unheard

    def tick(self) -> None:
        """Count nothing."""


def _unheard(done: int, of: int, row: dict[str, Any]) -> None:
    pass
