"""Other futures for a whole series: where to cut it, and what to put after the cut.

A leak may be sparse: it acts at few moments, and only if what follows lies in some band. So cuts
are drawn half anywhere and half right behind a change of mind, where a leak would have acted, and
the future is changed by a little as well as by a lot.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from agent_gym.core.types import FloatArray

CUTS = 64
MILD = (1.003, 0.997)  # one future rises and one falls, so that even a sign gives itself away
MIDDLE = (1.03, 0.97)
STRONG = (2.0, 0.5)


def drawn_cuts(whole: FloatArray, n_cuts: int, rng: np.random.Generator) -> list[int]:
    """Return rows at which a future begins: each is the first row that is not known any more.

    Args:
        whole: The targets of the series.
        n_cuts: How many are drawn; a short series has fewer.
        rng: Draws them.

    Example:
        >>> from agent_gym.core.seeds import Seeds
        >>> targets = np.zeros(1_000)
        >>> targets[500] = 1.0
        >>> cuts = drawn_cuts(targets, 8, Seeds(0).rng())
        >>> 501 in cuts, 502 in cuts
        (True, True)
    """
    n = len(whole)
    if n < 2:
        return []
    behind = (
        np.flatnonzero(whole[1:] != whole[:-1]) + 2
    )  # the decision that changed is the last one known
    behind = behind[behind < n]
    if behind.size > n_cuts // 2:
        behind = rng.choice(behind, n_cuts // 2, replace=False)
    others = np.setdiff1d(np.arange(1, n), behind)
    anywhere = rng.choice(others, min(others.size, n_cuts - behind.size), replace=False)
    return sorted(np.concatenate([behind, anywhere]).astype(int).tolist())


def even_cuts(whole: FloatArray, parts: int) -> list[int]:
    """Return the cuts between equal parts, each moved on to right behind the next change of mind.

    Example:
        >>> even_cuts(np.array([0.0, 0, 0, 0, 0, 1, 1, 1]), 2)
        [6]
    """
    n = len(whole)
    if n < 2:
        return []
    even = np.array([max(1, n * part // parts) for part in range(1, parts)])
    behind = np.append(np.flatnonzero(whole[1:] != whole[:-1]) + 2, n)
    moved = behind[np.searchsorted(behind[:-1], even)]
    cuts: list[int] = np.unique(np.where(moved < n, moved, even)).tolist()
    return cuts


def with_future(
    columns: Mapping[str, FloatArray], cut: int, factor: float | None, tail: int
) -> dict[str, FloatArray]:
    """Return the columns up to the cut and ``tail`` rows of another future; of none without factor.

    What is positive is multiplied by the factor and stays positive; what is not is moved too.

    Example:
        >>> with_future({"close": np.array([2.0, 3.0, 4.0])}, 1, 2.0, 1)["close"].tolist()
        [2.0, 6.0]
    """
    if factor is None:
        return {name: column[:cut].copy() for name, column in columns.items()}
    other = {name: column[: cut + tail].copy() for name, column in columns.items()}
    for column in other.values():
        shift = 0.0 if column.min() > 0.0 else factor - 1.0
        column[cut:] = column[cut:] * factor + shift
    return other
