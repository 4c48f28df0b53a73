"""Which of several models is used: the lightest one that no heavier one beats for sure.

Models are compared bar by bar on bars that none of them was fitted on. The standard error comes
from the means of batches, since what a model gains at neighbouring bars hangs together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

SURE = 2.0  # standard errors of a lead that outweigh being the lighter one
BATCHES = 20
FEWEST_BARS = 2 * BATCHES


@dataclass(frozen=True, slots=True)
class TierScore:
    """How one model did on the held-out bars, in nats a bar.

    Attributes:
        name: Which model.
        score: Mean log density of the returns.
        error: Standard error of the mean.
        lead: How far it is ahead of the one that was best among the lighter; None for the lightest.
        lead_error: Standard error of the lead, bar by bar against the same bars.
    """

    name: str
    score: float
    error: float
    lead: float | None = None
    lead_error: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Which model was chosen, and why.

    Attributes:
        chosen: Its name.
        why: The reason in a sentence.
        bars: How many bars it was judged by.
        scores: All models, from light to heavy; none if there was nothing to choose.
    """

    chosen: str
    why: str
    bars: int = 0
    scores: tuple[TierScore, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """Return the report that as_dict() was made of."""
        scores = tuple(TierScore(**score) for score in values["scores"])
        return cls(values["chosen"], values["why"], values["bars"], scores)


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean and its standard error by batch means."""
    batches = [float(part.mean()) for part in np.array_split(values, BATCHES)]
    return float(values.mean()), float(np.std(batches, ddof=1) / math.sqrt(BATCHES))


def choose_model(names: Sequence[str], scores: Sequence[FloatArray]) -> Report:
    """Choose among models that are given from light to heavy, by their scores of the same bars.

    A heavier one is taken only if it leads by more than twice the standard error of its lead.

    Example:
        >>> luck = np.tile([1.0, -1.0], 50)
        >>> choose_model(["light", "heavy"], [luck, luck + 0.1]).chosen
        'heavy'
        >>> choose_model(["light", "heavy"], [luck, luck]).chosen
        'light'
    """
    rows = np.stack(scores)
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    if rows.shape[1] < FEWEST_BARS:
        raise DataError(
            "too few held-out bars to choose a model by",
            where="umc",
            found=rows.shape[1],
            expected=f"at least {FEWEST_BARS} that every model scored",
            remedy="Give a longer past, hold out more of it, or name one tier",
        )
    best, why = 0, f"no heavier one leads {names[0]} by more than twice its standard error"
    found = [TierScore(names[0], *mean_and_error(rows[0]))]
    for i in range(1, len(names)):
        lead, error = mean_and_error(rows[i] - rows[best])
        found.append(TierScore(names[i], *mean_and_error(rows[i]), lead, error))
        if lead > SURE * error:
            ahead = f"{lead:.2g} nats a bar, with a standard error of {error:.2g}"
            best, why = i, f"{names[i]} leads {names[best]} by {ahead}"
    return Report(names[best], why, rows.shape[1], tuple(found))
