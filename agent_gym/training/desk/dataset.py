"""The table a model learns from: one row a signal, known in time, weighed by what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.files import to_json
from agent_gym.core.types import FloatArray

Status: TypeAlias = Literal["ok", "insufficient"]
FLAG_MARK = "="  # "strategy=momentum" is a yes-or-no column: absent means no, not unknown


@dataclass(frozen=True, slots=True)
class Row:
    """One signal with what was known of it and what came of it."""

    signal_id: str
    features: Mapping[str, float]
    t: float
    t_end: float
    payoff: float
    strategy: str
    symbol: str
    counterfactual: bool


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows in the order of their time.

    Attributes:
        X: Features known when the signal came; NaN is missing.
        y: 1 if the payoff after costs is above 0.
        t: When the signal came, epoch seconds.
        t_end: When its label was known.
        weight: Uniqueness among overlapping labels, times the weight of a paper label.
        payoff: Net return on what was traded.
        groups: The strategy of each row.
        counterfactual: True where the label is a paper one.
        excluded: Signals left out, by reason.
        notes: Rows whose features are not those that the live desk saw, by reason.
        status: "insufficient" with a ``reason`` below the counts that training takes.
    """

    X: FloatArray
    y: NDArray[np.int8]
    t: FloatArray
    t_end: FloatArray
    weight: FloatArray
    payoff: FloatArray
    groups: NDArray[np.str_]
    counterfactual: NDArray[np.bool_]
    feature_names: tuple[str, ...]
    as_of: float
    horizon: str
    excluded: Mapping[str, int] = field(default_factory=dict)
    status: Status = "ok"
    reason: str = ""
    notes: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.y.size)

    def take(self, rows: NDArray[Any] | slice) -> Dataset:
        """Return some of the rows."""
        columns = ("X", "y", "t", "t_end", "weight", "payoff", "groups", "counterfactual")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rows there are, and of which kind."""
        wins = int(self.y.sum())
        paper = int(self.counterfactual.sum())
        return {"rows": len(self), "wins": wins, "losses": len(self) - wins, "paper": paper}

    @property
    def hash(self) -> str:
        """Return a fingerprint of all that training reads."""
        digest = blake2b(digest_size=16)
        digest.update(to_json([list(self.feature_names), self.horizon]).encode())
        digest.update("\0".join(self.groups.tolist()).encode())
        for column in (self.X, self.y, self.t, self.t_end, self.weight, self.payoff):
            digest.update(np.ascontiguousarray(column).tobytes())
        digest.update(self.counterfactual.tobytes())
        return digest.hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return what the table is, without the table."""
        return {
            "status": self.status,
            "reason": self.reason,
            "counts": self.counts,
            "excluded": dict(self.excluded),
            "notes": dict(self.notes),
            "features": list(self.feature_names),
            "horizon": self.horizon,
            "as_of": self.as_of,
            "hash": self.hash,
        }


def tabled(
    rows: Sequence[Row],
    *,
    as_of: float,
    horizon: str,
    paper_weight: float,
    excluded: Mapping[str, int],
) -> Dataset:
    """Return rows as a table, ordered by time and then by id, with their weights."""
    rows = sorted(rows, key=lambda row: (row.t, row.signal_id))
    names = tuple(sorted({name for row in rows for name in row.features}))
    table = np.full((len(rows), len(names)), np.nan)
    table[:, [FLAG_MARK in name for name in names]] = 0.0
    place = {name: column for column, name in enumerate(names)}
    for i, row in enumerate(rows):
        for name, value in row.features.items():
            table[i, place[name]] = value
    t = np.array([row.t for row in rows], dtype=np.float64)
    t_end = np.array([row.t_end for row in rows], dtype=np.float64)
    paper = np.array([row.counterfactual for row in rows], dtype=np.bool_)
    payoff = np.array([row.payoff for row in rows], dtype=np.float64)
    weight = uniqueness(t, t_end, [row.symbol for row in rows])
    return Dataset(
        X=table,
        y=(payoff > 0.0).astype(np.int8),
        t=t,
        t_end=t_end,
        weight=weight * np.where(paper, paper_weight, 1.0),
        payoff=payoff,
        groups=np.array([row.strategy for row in rows], dtype=np.str_),
        counterfactual=paper,
        feature_names=names,
        as_of=as_of,
        horizon=horizon,
        excluded=dict(sorted(excluded.items())),
    )


def uniqueness(t: FloatArray, t_end: FloatArray, symbols: Sequence[str]) -> FloatArray:
    """Return the mean share of its time that each label has for itself, by symbol.

    Two labels over the same hours tell about one piece of the market, so each counts half.

    Example:
        >>> uniqueness(np.array([0.0, 0.0, 5.0]), np.array([1.0, 1.0, 6.0]), ["A"] * 3).tolist()
        [0.5, 0.5, 1.0]
    """
    out = np.ones(t.size)
    names = np.array(symbols, dtype=np.str_)
    for symbol in np.unique(names):
        mine = names == symbol
        out[mine] = _uniqueness(t[mine], t_end[mine])
    return out


def _uniqueness(t: FloatArray, t_end: FloatArray) -> FloatArray:
    edges = np.unique(np.concatenate([t, t_end]))
    starts, ends = np.searchsorted(edges, t), np.searchsorted(edges, t_end)
    steps = np.zeros(edges.size)
    np.add.at(steps, starts, 1.0)
    np.add.at(steps, ends, -1.0)
    crowd = np.cumsum(steps)[:-1]
    # Where nobody is under way the share is not asked for.
    alone = np.diff(edges) / np.maximum(crowd, 1.0)
    total = np.concatenate([[0.0], np.cumsum(alone)])
    length = t_end - t
    shared = total[ends] - total[starts]
    return np.where(length > 0.0, shared / np.where(length > 0.0, length, 1.0), 1.0)
