"""Figures that others have published for the lunar lander, to stand beside ours.

They are those of RL Baselines3 Zoo's benchmark table: one run each, on version 2 of the game, mean
and standard deviation over episodes. Version 3 mended how the game is reset, so the comparison is
of settings and budgets and cannot be exact.
"""

from __future__ import annotations

from typing import NamedTuple

SOLVED = 200.0
"""The return from which the lander counts as solved."""

SOURCE = "RL Baselines3 Zoo, one run, LunarLander-v2"


class Published(NamedTuple):
    """Mean and standard deviation over episodes of one run after so many steps."""

    mean: float
    deviation: float
    steps: int


DISCRETE = {
    "ppo": Published(242.1, 31.8, 1_000_000),
    "a2c": Published(155.8, 80.4, 200_000),
    "dqn": Published(154.4, 79.2, 100_000),
    "qrdqn": Published(70.2, 225.5, 100_000),
}
CONTINUOUS = {
    "ppo": Published(270.9, 32.1, 1_000_000),
    "a2c": Published(84.2, 145.9, 5_000_000),
    "sac": Published(260.4, 65.5, 500_000),
    "td3": Published(207.5, 67.6, 300_000),
    "tqc": Published(278.0, 25.5, 500_000),
}


def published(algo: str, env: str, *, continuous: bool = False) -> Published | None:
    """Return the figure of an algorithm on a game; None where none is known.

    Example:
        >>> published("ppo", "LunarLander-v3").mean, published("sac", "CartPole-v1")
        (242.1, None)
    """
    if not env.startswith("LunarLander"):
        return None
    known = CONTINUOUS if continuous or env.startswith("LunarLanderContinuous") else DISCRETE
    return known.get(algo)
