"""What a tear sheet shows: curves, figures, trades and where they come from, before any drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.figures import FIGURES, Figure
from agent_gym.markets.bars import Bars

Number: TypeAlias = float | int | None


class Band(Protocol):
    """An estimate and its interval, such as ``statistics.Interval``."""

    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def level(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Versus:
    """How the subject differs from one baseline; above 0 it did better.

    Attributes:
        baseline: Label of the baseline, one of the arms.
        interval: The difference, in ``unit``.
        unit: What the difference is measured in.
        p_value: Of the test against no difference, if one was made.
    """

    baseline: str
    interval: Band
    unit: str = "bp a day"
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of time in which the market was in one known state."""

    start_ns: int
    end_ns: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Everything on one sheet; only title, subject, curves, figures and command are needed.

    Attributes:
        title: Headline.
        subject: Label of the arm that the sheet is about.
        ts: Times of the marks in UTC nanoseconds (closes of bars).
        equity: Equity at those times by arm, the subject and what stands beside it.
        figures: Figures by arm and name, as ``Metrics.as_dict`` gives them.
        command: What makes the same numbers again.
        verdict: The verdict and why, None where only a single backtest was made.
        intervals: Intervals of the subject's figures by name, in the figure's stored unit.
        versus: Differences to baselines with their intervals.
        bars: The bars that were traded, for candles; ``ts`` may mark a part of them only.
        fills: Fills of the subject (dtype ``exchange.series.FILL``), by bar of ``bars``.
        trips: Closed round trips of the subject (dtype ``exchange.round_trips.TRIP``).
        position: Units that the subject held at each mark.
        regimes: Known states of the market in time order, None where no truth is known.
        caps: Which risk part held back how often (``BacktestResults.caps``).
        provenance: Where everything comes from, name and value as text.
        manifest: The manifest as plain values.
        notes: Sentences that a reader has to know, under the verdict.
        kind: What sort of report it is.
        shown: How figures are named and written; those that no arm has are left out.
    """

    title: str
    subject: str
    ts: NDArray[np.int64]
    equity: Mapping[str, FloatArray]
    figures: Mapping[str, Mapping[str, Number]]
    command: str
    verdict: tuple[str, str] | None = None
    intervals: Mapping[str, Band] = field(default_factory=dict)
    versus: Sequence[Versus] = ()
    bars: Bars | None = None
    fills: NDArray[Any] | None = None
    trips: NDArray[Any] | None = None
    position: FloatArray | None = None
    regimes: Sequence[Regime] | None = None
    caps: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    kind: str = "Backtest"
    shown: Sequence[Figure] = FIGURES

    def __post_init__(self) -> None:
        if self.subject not in self.equity or self.subject not in self.figures:
            raise ConfigError(
                "a sheet needs a curve and figures of its subject",
                found=f"curves of {sorted(self.equity)}, figures of {sorted(self.figures)}",
                expected=self.subject,
            )
        lengths = {arm: curve.shape for arm, curve in self.equity.items()}
        if self.position is not None:
            lengths["position"] = self.position.shape
        wrong = {arm: shape for arm, shape in lengths.items() if shape != self.ts.shape}
        if wrong or self.ts.ndim != 1 or self.ts.size < 2:
            raise ConfigError(
                "the curves of a sheet have one mark for each of two times or more",
                found=wrong or self.ts.shape,
                expected=self.ts.shape,
            )
        for arm, curve in self.equity.items():
            if not np.isfinite(curve).all():
                raise ConfigError("a curve holds a value that is not finite", where=arm)
            if curve[0] <= 0.0:
                raise ConfigError("a curve starts above 0", where=arm, found=float(curve[0]))
        if self.fills is not None and self.fills.size and self.bars is None:
            raise ConfigError("fills are marked on bars", found="no bars", expected="bars")

    @property
    def curve(self) -> FloatArray:
        """Return the equity of the subject."""
        return self.equity[self.subject]

    @property
    def beside(self) -> list[str]:
        """Return the labels of the other arms."""
        return [arm for arm in self.equity if arm != self.subject]

    @property
    def quote(self) -> str:
        """Return the unit of money."""
        return (self.bars.instrument.quote if self.bars is not None else "") or "quote"

    @property
    def period_ns(self) -> int:
        """Return the time between marks: of the bars, else the usual distance of two marks."""
        if self.bars is not None:
            return self.bars.period_ns
        return int(np.median(np.diff(self.ts)))
