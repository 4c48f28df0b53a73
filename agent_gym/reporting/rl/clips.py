"""A recorded episode, apart from what it takes to record one."""

from __future__ import annotations

from typing import NamedTuple


class Clip(NamedTuple):
    """A video and the episode that it shows."""

    mp4: bytes
    title: str
    seed: int
    reward: float
    length: int
