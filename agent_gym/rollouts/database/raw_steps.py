"""Steps as they come in: taken quickly by the loop, turned into columns by somebody else later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.core.types import Step
from agent_gym.rollouts.database.records import plain_json

FLOAT = np.dtype(np.float64)
FLOAT_BYTES = 8


@dataclass(slots=True)
class RawSteps:
    """Some steps of one trajectory, and copies of what others may write into again.

    The steps themselves are frozen. Rows are counted from the first of them.
    """

    steps: list[Step] = field(default_factory=list)
    features: list[bytes] = field(default_factory=list)
    vectors: list[tuple[int, bytes]] = field(default_factory=list)
    said_at: list[int] = field(default_factory=list)
    said: list[dict[str, float]] = field(default_factory=list)
    infos: list[tuple[int, str]] = field(default_factory=list)
    versions: list[tuple[int, str | None]] = field(default_factory=list)

    def clear(self) -> None:
        """Begin anew, with the version of the policy that decided last."""
        self.versions[:] = [(0, self.versions[-1][1])]
        for taken in (self.steps, self.features, self.vectors):
            taken.clear()
        for told in (self.said_at, self.said, self.infos):
            told.clear()


def writer(
    raw: RawSteps, *, observations: bool, most: int, when_full: Callable[[], None]
) -> Callable[[Step], None]:
    """Return the call that takes one step; names that are looked up once cost nothing later.

    Args:
        raw: Where to.
        observations: Keep what was seen.
        most: Steps after which ``when_full`` is called.
        when_full: Must clear ``raw``.
    """
    steps, vectors, infos = raw.steps, raw.vectors, raw.infos
    keep, see, say, say_at = steps.append, raw.features.append, raw.said.append, raw.said_at.append
    last = most - 1

    def write(step: Step) -> None:
        row, decision = len(steps), step.decision
        if observations:
            features = step.before.features
            see(features.tobytes() if features.dtype is FLOAT else as_bytes(features))
        if type(decision.action) is np.ndarray:
            vectors.append((row, as_bytes(decision.action)))
        if decision.signals is not None:
            say(dict(decision.signals))
            say_at(row)
        if step.after.info is not None:
            infos.append((row, plain_json(step.after.info)))
        keep(step)
        if row == last:
            when_full()

    return write


def as_bytes(values: Any) -> bytes:
    """Return a copy of an array as float64; nothing if it is not made of numbers."""
    try:
        copied: bytes = np.asarray(values, FLOAT).tobytes()
    except (TypeError, ValueError):
        return b""
    return copied
