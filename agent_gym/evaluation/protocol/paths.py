"""Paths: one account after the other, a tested stretch from each, over the whole series.

Every stretch is tested under several combinations. The first path takes the first of them for every
stretch, the second path the second, and so on: each tested stretch is used exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import risk_returns, sharpe
from agent_gym.evaluation.protocol.pnl import BP, BarPnl
from agent_gym.markets.bars import Bars

LOW, HIGH = 0.05, 0.95
RUIN = 1e-9  # of the capital: what a path goes on with after a ruin, so that ratios stay defined


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One account: what each bar of a tested stretch brought, and the targets behind it."""

    pnl: BarPnl
    targets: FloatArray


@dataclass(frozen=True, eq=False)
class Path:
    """Accounts in time order that cover every bar after the first."""

    bars: Bars
    pieces: tuple[Piece, ...]

    @cached_property
    def pnl(self) -> BarPnl:
        """Return what each bar brought."""
        parts = [piece.pnl for piece in self.pieces]
        return BarPnl(
            gross=np.concatenate([part.gross for part in parts]),
            net=np.concatenate([part.net for part in parts]),
            exposure=np.concatenate([part.exposure for part in parts]),
        )

    @property
    def targets(self) -> FloatArray:
        """Return what was asked for at each close, from the first on."""
        # The last target of an account is asked for at a close that belongs to the next one.
        made = [piece.targets[:-1] for piece in self.pieces]
        return np.concatenate([*made, self.pieces[-1].targets[-1:]])

    @cached_property
    def returns(self) -> tuple[FloatArray, float]:
        """Return the series that a trial is judged by and how many of its periods make a year."""
        grown = np.cumprod(1.0 + np.maximum(self.pnl.net, RUIN - 1.0))
        equity = np.concatenate([[1.0], grown])
        return risk_returns(self.bars.ts, self.bars.period_ns, equity)

    @cached_property
    def sharpe(self) -> float | None:
        """Return the yearly Sharpe ratio, None if nothing varied."""
        return sharpe(*self.returns)

    @cached_property
    def growth(self) -> float:
        """Return the log growth after costs over all bars."""
        return float(self.pnl.bars_bp("net", "growth").sum()) / BP

    def as_dict(self) -> dict[str, Any]:
        """Return the figures of the path."""
        return {
            "sharpe": self.sharpe,
            "growth": self.growth,
            "net_bp_per_bar": self.pnl.mean_bp("net", "growth"),
        }


@dataclass(frozen=True, slots=True)
class Distribution:
    """A figure over all paths."""

    median: float
    low: float
    high: float
    below_0: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution:
        """Return middle, 5 % and 95 % and the share below 0.

        Example:
            >>> Distribution.of([-1.0, 0.0, 1.0, 2.0]).below_0
            0.25
        """
        low, median, high = (float(q) for q in np.quantile(values, (LOW, 0.5, HIGH)))
        return cls(median, low, high, float(np.mean(np.asarray(values) < 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """All paths of one arm; of one that neither learns nor chooses, one for all of them.

    Attributes:
        paths: The paths that were traded.
        repeated: How often the split tests each row.
    """

    paths: tuple[Path, ...]
    repeated: int

    @property
    def is_one(self) -> bool:
        """Say whether all paths are one and the same."""
        return len({path.pnl.net.tobytes() for path in self.paths}) == 1

    @property
    def middle(self) -> int:
        """Return which path is in the middle by Sharpe ratio, the lower one of two."""
        order = sorted(range(len(self.paths)), key=lambda at: (self._ratios()[at], at))
        return order[(len(order) - 1) // 2]

    @property
    def note(self) -> str | None:
        """Return what must be said of a figure that is no distribution."""
        if self.repeated == 1:
            return "one group is tested at a time, so there is one path and no distribution"
        if len(self.paths) == 1:
            return (
                f"it neither learns nor chooses, so its {self.repeated} paths are one and the "
                "same: there is no distribution"
            )
        if self.is_one:
            return f"all {len(self.paths)} paths came out the same: there is no distribution"
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return every path, and the distributions where there are any."""
        growths = [path.growth for path in self.paths]
        return {
            "paths": [path.as_dict() for path in self.paths],
            "repeated": self.repeated,
            "median_path": self.middle + 1,
            "note": self.note,
            "sharpe": None if self.is_one else asdict(Distribution.of(self._ratios())),
            "growth": None if self.is_one else asdict(Distribution.of(growths)),
        }

    def _ratios(self) -> list[float]:
        """Return the Sharpe ratios; a path that never moved stands at 0."""
        return [0.0 if path.sharpe is None else path.sharpe for path in self.paths]


def places(choices: Sequence[tuple[int, ...]], groups: int) -> list[list[tuple[int, int]]]:
    """Return for each path the choice, and the place in it, of every group in time order.

    Example:
        >>> places([(0, 1), (0, 2), (1, 2)], 3)
        [[(0, 0), (0, 1), (1, 1)], [(1, 0), (2, 0), (2, 1)]]
    """
    tested = [
        [(at, choice.index(group)) for at, choice in enumerate(choices) if group in choice]
        for group in range(groups)
    ]
    return [list(path) for path in zip(*tested, strict=True)]
