"""How far a fit of the actor has come, without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.policy.config import ActorConfig
from agent_gym.agents.umc.policy.lessons import WHERE, Lessons
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the held-out bars found.

    Attributes:
        step: Steps taken so far.
        loss: Mean loss of a member over the steps since the look before, none at the first.
        learned_growth: Mean log growth of a bar it learns from, after costs.
        held_out_growth: The same of the bars it does not learn from; it decides when to stop.
        held_out_turnover: Mean position traded a bar there.
    """

    step: int
    loss: float | None
    learned_growth: float
    held_out_growth: float
    held_out_turnover: float


def learned_bars_of(config: ActorConfig, bars: int) -> int:
    """Return how many bars come before the held-out tail; too few are a DataError."""
    learned = int(bars * (1.0 - config.held_out_share))
    if learned <= config.sequence_bars or bars - learned < 3:
        raise DataError(
            "there are too few bars to learn from",
            where=WHERE,
            found=f"{bars} bars",
            expected=f"more than {config.sequence_bars} besides the held-out tail",
            remedy="Give more lessons, or lower sequence_bars",
        )
    return learned


def identity_of(
    config: ActorConfig, lessons: Lessons, seeds: Seeds, start_from: Arrays | None
) -> str:
    """Return a digest of all that decides what a fit comes to."""
    digest = blake2b(digest_size=16)
    told = [config.model_dump_json(), seeds.root, seeds.path, start_from is None]
    digest.update(json.dumps(told).encode())
    for array in lessons.arrays():
        digest.update(array.tobytes())
    for name in sorted(start_from or {}):
        digest.update(name.encode() + np.ascontiguousarray((start_from or {})[name]).tobytes())
    return digest.hexdigest()
