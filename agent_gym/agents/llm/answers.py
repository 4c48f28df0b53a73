"""The words a model may answer with, and what each of them asks for."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

LONGEST_REPLY = 4_000


class Answers(Config):
    """Words and the target position behind each of them.

    Example:
        >>> Answers().words_in_a_row
        'BUY, HOLD or SELL'
        >>> Answers().read("I would BUY here."), Answers().read("BUY or SELL?")
        (2, None)
    """

    words: tuple[str, ...] = Field(default=("SELL", "HOLD", "BUY"), min_length=2, max_length=16)
    levels: tuple[float, ...] = Field(
        default=(-1.0, 0.0, 1.0), description="target position of each word, rising"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.words) != len(self.levels):
            raise ValueError("every word needs a level")
        if any(b <= a for a, b in pairwise(self.levels)):
            raise ValueError("levels must rise")
        if bad := [word for word in self.words if not re.fullmatch(r"[A-Za-z]{1,20}", word)]:
            raise ValueError(f"an answer is one word of letters, found {bad[0]!r}")
        if len({word.lower() for word in self.words}) != len(self.words):
            raise ValueError("two answers are the same word")
        return self

    @property
    def words_in_a_row(self) -> str:
        """Return the words as a question lists them, the highest level first."""
        *most, last = reversed(self.words)
        return f"{', '.join(most)} or {last}"

    @cached_property
    def targets(self) -> FloatArray:
        """Return the levels as an array."""
        return np.array(self.levels)

    def read(self, reply: str) -> int | None:
        """Return which answer a free reply gives; None if it gives none, or more than one."""
        said = {word.lower() for word in re.findall(r"[A-Za-z]+", reply[:LONGEST_REPLY])}
        found = [i for i, word in enumerate(self.words) if word.lower() in said]
        return found[0] if len(found) == 1 else None
