"""What the page of a run of the loop tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agent_gym.evaluation.page import Light


class Played(NamedTuple):
    """Champion and challenger on one sealed snapshot."""

    snapshot: str
    scenario: str
    champion: float
    challenger: float


class Round(NamedTuple):
    """One round of play and training."""

    trajectories: int
    mean_return: float
    steps: int
    model: str
    groups_kept: int
    groups_dropped: int


class Asked(NamedTuple):
    """A question, whether the answer will do, and the answer in words."""

    name: str
    passed: bool
    words: str


@dataclass(frozen=True, slots=True)
class LoopReport:
    """A run from snapshots to a served model.

    ``verdict`` is the ending in one word or two, ``reason`` the sentence behind it; ``checks`` are
    those of the gate, and there are none when it was not asked.
    """

    run_id: str
    verdict: str
    reason: str
    command: str
    champion: str
    challenger: str | None
    figures: tuple[tuple[str, str], ...]
    rounds: tuple[Round, ...] = ()
    pairs: tuple[Played, ...] = ()
    checks: tuple[Asked, ...] = ()
    readiness_before: tuple[Asked, ...] = ()
    readiness_after: tuple[Asked, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def light(self) -> Light:
        """Return the colour of the answer."""
        lights: dict[str, Light] = {
            "promoted": "good",
            "rolled back": "bad",
            "control passed": "bad",
            "not learnable": "bad",
            "not trained": "same",
        }
        return lights.get(self.verdict, "unsure")
