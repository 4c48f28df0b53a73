"""What a learned model offers the desk: a score, a threshold, and the right to say no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from agent_gym.agents.desk.features import signal_features
from agent_gym.agents.desk.rejections import RejectCode

__all__ = ["Acceptor", "Score", "signal_features"]


class Score(Struct, frozen=True):
    """A model's word on a signal: it may pass if ``score`` reaches ``threshold``.

    ``hold`` is set when the model will not judge: ``model.uncertain`` or ``model.drift_hold``.
    """

    score: float
    threshold: float
    version: str
    hold: RejectCode | None = None


class Acceptor(Protocol):
    """Scores the features of a signal; the filter lets it veto and nothing else."""

    def score(self, features: Mapping[str, float]) -> Score: ...
