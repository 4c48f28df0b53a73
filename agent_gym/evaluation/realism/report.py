"""Measure how real a market looks: facts in their bands, classifiers, and the search for money."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.evaluation.realism.bands import (
    Band,
    Bands,
    Control,
    bootstrap_bands,
    published_bands,
    published_control,
)
from agent_gym.evaluation.realism.classifier import Sample, auc, halves_auc, sample
from agent_gym.evaluation.realism.edge import ProbeRow, strongest_edge
from agent_gym.evaluation.realism.facts import facts_of
from agent_gym.evaluation.realism.probe import Search
from agent_gym.evaluation.realism.series import Series
from agent_gym.markets.bars import Bars

SCHEMA_VERSION = 2
SHARE_REQUIRED = 0.9
CLOSE_AUC_ALLOWED = 0.75
LEARNED_SERIES = 4  # the probe learns on this many series at most and trades every other one
TOO_FEW_SEEDS = "the probe learns on some seeds and trades others: give two or more"
NO_REAL_DATA = "no real bars to compare with: give a file with --against"


class FactRow(Config):
    """One fact: mean and spread over seeds beside the band of real markets."""

    name: str
    unit: str
    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    in_band: bool | None


class RealismReport(Config):
    """What was measured; a value that could not be measured is None and says why in ``notes``."""

    schema_version: int = SCHEMA_VERSION
    market: str
    seeds: tuple[int, ...]
    bars_per_seed: int
    bands_source: str
    share_in_band: float
    facts_scored: int
    facts: tuple[FactRow, ...]
    classifier_auc: float | None
    classifier_auc_full: float | None
    control_auc: float | None
    control_auc_full: float | None
    classifier_auc_by_seed: tuple[float, ...] = ()
    classifier_auc_full_by_seed: tuple[float, ...] = ()
    exploitable_bp: float | None = Field(description="net of a trade, where the case is strongest")
    exploitable_error_bp: float | None = None
    exploitable_lower_bp: float | None = Field(
        default=None, description="what is earned at least, at 95 % over all searches together"
    )
    probe: tuple[dict[str, float], ...] = ()
    notes: dict[str, str] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)

    def misses(self) -> tuple[str, ...]:
        """Return the parts of the gate that are missed or could not be judged, in words."""
        found = []
        if self.share_in_band < SHARE_REQUIRED:
            found.append(f"{self.share_in_band:.0%} of facts in band, {SHARE_REQUIRED:.0%} needed")
        if self.classifier_auc is None:
            found.append(f"close-only classifier not judged: {self.notes['classifier_auc']}")
        elif self.classifier_auc >= CLOSE_AUC_ALLOWED:
            found.append(
                f"close-only AUC {self.classifier_auc:.3f}, below {CLOSE_AUC_ALLOWED} needed"
            )
        if self.exploitable_lower_bp is None:
            found.append(f"exploitability not judged: {self.notes['exploitable_bp']}")
        elif self.exploitable_lower_bp > 0.0:
            found.append(
                f"past features earn {self.exploitable_bp:.2f} bp a trade after costs, "
                f"{self.exploitable_lower_bp:.2f} at least"
            )
        return tuple(found)


def measure(
    markets: Iterable[tuple[int, Bars]],
    *,
    market: str,
    against: Bars | None = None,
    published: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> RealismReport:
    """Measure generated series, one a seed, against published bands or a file of real bars.

    Args:
        markets: Seed and series; each series is let go once it has been measured.
        market: The name that the report carries.
        against: Real bars of the same period; without them the classifier cannot be judged.
        published: Take the published bands even if there are real bars to take some from.
        progress: Told what is being done, for a progress bar.
    """
    tally = _Tally(against, published, progress)
    for seed, bars in markets:
        tally.add(seed, bars)
    return tally.report(market)


class _Tally:
    """Collects what each series says, so that only a few series are held at once."""

    def __init__(
        self, against: Bars | None, published: bool, progress: Callable[[str], None]
    ) -> None:
        self._progress = progress
        self._published = published or against is None
        self._against = against
        self._real: Sample | None = None
        if against is not None:
            progress("real bars: features")
            self._real = sample(against)
        self._seeds: list[int] = []
        self._values: dict[str, list[float]] = {}
        self._aucs: dict[str, list[float]] = {"close": [], "full": []}
        self._kept: list[Bars] = []
        self._search: Search | None = None
        self._period_ns: int | None = None
        self._length = 0

    def add(self, seed: int, bars: Bars) -> None:
        """Measure one series."""
        self._check_period(bars)
        self._progress(f"seed {seed}: facts")
        self._seeds.append(seed)
        self._length = len(bars)
        series = Series(bars)
        for fact in facts_of(bars.period_ns):
            sums = fact.day_sums(series)
            if sums is not None:
                self._values.setdefault(fact.name, []).append(sums.total())
        if self._real is not None:
            self._progress(f"seed {seed}: classifier")
            made = sample(bars)
            self._aucs["close"].append(auc(self._real, made, "close"))
            self._aucs["full"].append(auc(self._real, made, "full"))
        self._look_for_money(seed, bars)

    def _look_for_money(self, seed: int, bars: Bars) -> None:
        """Keep the first series to learn from, and trade every later one before it is let go."""
        if len(self._kept) < LEARNED_SERIES:
            self._kept.append(bars)
            return
        self._progress(f"seed {seed}: search for exploitable returns")
        if self._search is None:
            self._search = Search(self._kept)
        self._search.trade(bars)

    def _check_period(self, bars: Bars) -> None:
        against = self._against
        if against is not None and against.period_ns != bars.period_ns:
            raise ConfigError(
                "the real bars have another period than the generated ones",
                found=against.period_ns,
                expected=bars.period_ns,
                remedy="Resample the file with agent-gym data import --resample",
            )
        self._period_ns = bars.period_ns

    def report(self, market: str) -> RealismReport:
        """Return the report of everything that was added."""
        if self._period_ns is None:
            raise ConfigError("nothing was generated, so there is nothing to measure")
        bands = self._bands(self._period_ns)
        rows = tuple(self._row(bands, self._period_ns))
        judged = [row for row in rows if row.in_band is not None]
        searched = self._searched()
        edge = strongest_edge(searched) if searched else None
        notes = {} if edge is not None else {"exploitable_bp": TOO_FEW_SEEDS}
        control = self._control(self._period_ns)
        notes |= dict.fromkeys(("control_auc", "control_auc_full"), control.source)
        if self._real is None:
            notes |= dict.fromkeys(("classifier_auc", "classifier_auc_full"), NO_REAL_DATA)
        if len(judged) < len(rows):
            notes["facts"] = f"{len(rows) - len(judged)} facts are unscored: no value or no band"
        return RealismReport(
            market=market,
            seeds=tuple(self._seeds),
            bars_per_seed=self._length,
            bands_source=bands.source,
            share_in_band=float(np.mean([row.in_band for row in judged])) if judged else 0.0,
            facts_scored=len(judged),
            facts=rows,
            classifier_auc=_mean(self._aucs["close"]),
            classifier_auc_full=_mean(self._aucs["full"]),
            control_auc=control.close,
            control_auc_full=control.full,
            classifier_auc_by_seed=tuple(self._aucs["close"]),
            classifier_auc_full_by_seed=tuple(self._aucs["full"]),
            exploitable_bp=None if edge is None else edge.row.net_bp,
            exploitable_error_bp=None if edge is None else edge.row.error_bp,
            exploitable_lower_bp=None if edge is None else edge.lower_bp,
            probe=tuple(_probe_row(row) for row in searched),
            notes=notes,
            data={} if self._against is None else self._against.describe(),
        )

    def _control(self, period_ns: int) -> Control:
        if self._real is None:
            return published_control(period_ns)
        self._progress("control: first half against second half")
        close, full = halves_auc(self._real, "close"), halves_auc(self._real, "full")
        return Control(close, full, "first half of the real bars against the second half")

    def _bands(self, period_ns: int) -> Bands:
        if self._published or self._against is None:
            return published_bands(period_ns)
        self._progress("real bars: bands")
        return bootstrap_bands(self._against)

    def _row(self, bands: Bands, period_ns: int) -> Iterable[FactRow]:
        for fact in facts_of(period_ns):
            values = self._values.get(fact.name, [])
            band: Band | None = bands.by_fact.get(fact.name)
            mean = _mean(values)
            yield FactRow(
                name=fact.name,
                unit=fact.unit,
                value=mean,
                sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
                low=None if band is None else band.low,
                high=None if band is None else band.high,
                in_band=None if band is None or mean is None else band.holds(mean),
            )

    def _searched(self) -> tuple[ProbeRow, ...]:
        if self._search is None and len(self._kept) > 1:
            self._progress("search for exploitable returns")
            cut = max(1, 2 * len(self._kept) // 3)
            self._search = Search(self._kept[:cut])
            for bars in self._kept[cut:]:
                self._search.trade(bars)
        return () if self._search is None else self._search.rows()


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _probe_row(row: ProbeRow) -> dict[str, float]:
    return {
        "horizon_bars": float(row.horizon_bars),
        "share_traded": row.share_traded,
        "trades": float(row.trades),
        "blocks": row.blocks,
        "gross_bp": row.gross_bp,
        "error_bp": row.error_bp,
        "net_bp": row.net_bp,
    }
