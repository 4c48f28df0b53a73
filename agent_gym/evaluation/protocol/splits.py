"""Which rows are learned from and which are tested: nothing tested lies close to what was learned.

A *purge* keeps labels that reach forward out of the training rows, an *embargo* keeps out what
features still remember. Here both are laid between segments, one after the other, on either side:
no tested row is nearer than ``purge + embargo`` to a row that was learned from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure

MOST_COMBINATIONS = 1_000


class Span(NamedTuple):
    """Rows from ``start`` up to, without, ``stop``."""

    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """Return the rows as a slice."""
        return slice(self.start, self.stop)

    @property
    def length(self) -> int:
        """Return how many rows there are."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Fold:
    """One step of a walk forward: learn, look, test; the past is always on the left."""

    train: Span
    validate: Span | None
    test: Span

    def as_dict(self) -> dict[str, Any]:
        """Return the rows as plain values."""
        validate = None if self.validate is None else list(self.validate)
        return {"train": list(self.train), "validate": validate, "test": list(self.test)}


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """One choice of tested groups: the rows to learn from and the rows to test, both rising."""

    groups: tuple[int, ...]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


class WalkForward(Config):
    """The segments of a walk forward, in rows."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    train: int = Field(ge=1, description="rows of the first training segment")
    test: int = Field(ge=1, description="rows of a test segment")
    validate_rows: int = Field(
        default=0, ge=0, alias="validate", description="rows between them to choose by; 0: none"
    )
    roll: int | None = Field(
        default=None, ge=1, description="rows from fold to fold; null: those of a test"
    )
    purge: int = Field(default=0, ge=0, description="rows that a label reaches forward")
    embargo: int = Field(default=0, ge=0, description="rows that a feature remembers")
    expanding: bool = Field(default=True, description="train from row 0 on, else roll along")

    @model_validator(mode="after")
    def _tested_once(self) -> Self:
        if self.roll is not None and self.roll < self.test:
            raise ValueError(
                f"a roll of {self.roll} is less than a test of {self.test}: "
                "a row would be tested twice"
            )
        return self

    @property
    def gap(self) -> int:
        """Return the rows between two segments."""
        return self.purge + self.embargo

    def folds(self, n: int) -> list[Fold]:
        """Return the folds over ``n`` rows; the last one takes what is left.

        Every row from the first test on is tested exactly once, unless ``roll`` leaves rows out.
        """
        gap, looked_at = self.gap, self.validate_rows
        behind = gap + (looked_at + gap if looked_at else 0)  # from the end of training to the test
        first = self.train + behind
        if first >= n:
            raise ConfigError(
                "too few rows for a walk forward",
                found=f"{n:,} rows",
                expected=f"more than {first:,}: train {self.train:,}, validation {looked_at:,}, "
                f"gaps of {gap:,}",
                remedy="Take a longer series, or shorten --train, --validation or --embargo",
            )
        folds = []
        for start in range(first, n, self.roll or self.test):
            end = start - behind
            learned = Span(0 if self.expanding else end - self.train, end)
            looked = Span(start - gap - looked_at, start - gap) if looked_at else None
            folds.append(Fold(learned, looked, Span(start, min(start + self.test, n))))
        return folds


def walk_forward(n: int, **segments: Any) -> list[Fold]:
    """Return the folds of a walk over ``n`` rows; the segments are the fields of WalkForward.

    Example:
        >>> folds = walk_forward(20, train=6, test=4, purge=1, embargo=1)
        >>> [(tuple(fold.train), tuple(fold.test)) for fold in folds]
        [((0, 6), (8, 12)), ((0, 10), (12, 16)), ((0, 14), (16, 20))]
    """
    return configure(WalkForward, segments, where="walk_forward").folds(n)


class Combinatorial(Config):
    """Groups of equal length, of which every choice of some is tested."""

    groups: int = Field(default=10, ge=2, description="stretches of equal length")
    tested: int = Field(default=2, ge=1, description="of them that are tested at a time")
    purge: int = Field(default=0, ge=0, description="rows that a label reaches forward")
    embargo: int = Field(default=0, ge=0, description="rows that a feature remembers")

    @property
    def paths(self) -> int:
        """Return how often every row is tested, and so how many paths there are."""
        return comb(self.groups - 1, self.tested - 1)

    def spans(self, n: int) -> list[Span]:
        """Return the rows of each group."""
        edges = [n * part // self.groups for part in range(self.groups + 1)]
        return [Span(start, stop) for start, stop in pairwise(edges)]

    def choices(self) -> list[tuple[int, ...]]:
        """Return every choice of tested groups, in their order."""
        count = comb(self.groups, self.tested)
        if not 0 < count <= MOST_COMBINATIONS or self.tested == self.groups:
            raise ConfigError(
                "these groups cannot be combined",
                found=f"{self.tested} of {self.groups} groups, {count:,} combinations",
                expected=f"fewer tested than groups, at most {MOST_COMBINATIONS:,} combinations",
                remedy="Lower --tested or --groups",
            )
        return list(combinations(range(self.groups), self.tested))

    def combination(self, n: int, chosen: tuple[int, ...]) -> Combination:
        """Return the rows of one choice; nothing left to learn from is a ConfigError."""
        gap, spans = self.purge + self.embargo, self.spans(n)
        is_test, near = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for start, stop in (spans[group] for group in chosen):
            is_test[start:stop] = True
            near[max(0, start - gap) : stop + gap] = True
        learned = np.flatnonzero(~near).astype(np.int64)
        if not learned.size:
            raise ConfigError(
                "purge and embargo leave nothing to learn from",
                where=f"groups {chosen}",
                found=f"{gap} rows on either side of {n // self.groups}",
                remedy="Use fewer groups, or a shorter purge or embargo",
            )
        return Combination(chosen, learned, np.flatnonzero(is_test).astype(np.int64))


def purged_combinations(
    n: int, groups: int, tested: int, purge: int = 0, embargo: int = 0
) -> Iterator[Combination]:
    """Yield every way to test ``tested`` of ``groups`` equal stretches and learn from the rest.

    Rows nearer than ``purge + embargo`` to a tested stretch are not learned from, on either side.
    Every row is tested ``comb(groups - 1, tested - 1)`` times.

    Example:
        >>> first, *_ = purged_combinations(12, groups=4, tested=1, purge=1)
        >>> first.test.tolist(), first.train.tolist()
        ([0, 1, 2], [4, 5, 6, 7, 8, 9, 10, 11])
    """
    if not (1 <= tested < groups <= n and purge >= 0 and embargo >= 0):
        raise ConfigError(
            "these groups cannot be combined",
            found=f"{tested} of {groups} groups of {n} rows, purge {purge}, embargo {embargo}",
            expected="1 <= tested < groups <= rows, and gaps of 0 or more",
        )
    split = Combinatorial(groups=groups, tested=tested, purge=purge, embargo=embargo)
    for chosen in combinations(range(groups), tested):
        yield split.combination(n, chosen)
