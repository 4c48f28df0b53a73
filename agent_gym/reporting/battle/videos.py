"""A battle as H.264 in MP4."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from agent_gym.evaluation.battle import Film
from agent_gym.reporting.battle.pictures import Painter
from agent_gym.reporting.encoding import encode

HOLD_S = 1.5


def mp4_of(film: Film, title: str) -> bytes:
    """Return a film as a video at the speed of the game, a picture a tick; the end is held."""
    painter, rate = Painter(film, title), film.battle.time.ticks_per_second
    end = np.asarray(painter.picture(film.ticks))
    held: Iterator[NDArray[np.uint8]] = repeat(end, round(HOLD_S * rate))
    return encode(chain(painter.frames(), held), rate)
