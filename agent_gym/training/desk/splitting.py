"""Splits in time that let no label look across the cut."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agent_gym.training.desk.dataset import Dataset


class Split(NamedTuple):
    """Three parts in the order of time."""

    fit: Dataset
    calibrate: Dataset
    test: Dataset
    purged: int


def purged_split(dataset: Dataset, fit: float = 0.6, calibrate: float = 0.2) -> Split:
    """Cut by time; rows whose label ends in the next part, or after it began, are purged."""
    n = len(dataset)
    first, second = round(n * fit), round(n * (fit + calibrate))
    learn = before(dataset.take(slice(0, first)), dataset.t[first])
    adjust = before(dataset.take(slice(first, second)), dataset.t[second])
    test = dataset.take(slice(second, n))
    return Split(learn, adjust, test, n - len(learn) - len(adjust) - len(test))


def before(dataset: Dataset, time: float) -> Dataset:
    """Return the rows whose label was known before a time."""
    return dataset.take(dataset.t_end < time)


def forward_folds(dataset: Dataset, folds: int) -> list[tuple[Dataset, Dataset]]:
    """Return pairs of all that was known before, and the part that follows."""
    cuts = np.linspace(0, len(dataset), folds + 2).astype(int)
    pairs = []
    for start, stop in pairwise(cuts[1:]):
        judged = dataset.take(slice(start, stop))
        pairs.append((before(dataset.take(slice(0, start)), judged.t[0]), judged))
    return pairs
