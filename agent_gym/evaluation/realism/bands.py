"""Where a fact of a real market lies: published bands, or bands resampled from a file of bars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.realism.facts import facts_of
from agent_gym.evaluation.realism.series import Series
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

RESAMPLES = 300
COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class Band:
    """The interval in which a fact of a real market is expected."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Say whether a value lies inside, ends included."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Bands:
    """Bands by fact, and where they come from in words."""

    by_fact: Mapping[str, Band]
    source: str


@cache
def _published() -> dict[str, Any]:
    text = files("agent_gym.evaluation.realism").joinpath("published_bands.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def published_bands(period_ns: int) -> Bands:
    """Return the shipped bands: the union over real samples of where each fact was found."""
    period = format_period(period_ns)
    if period not in _published():
        raise ConfigError("no bands are published for this period", found=period)
    entry = _published()[period]
    bands = {}
    for name, samples in entry["facts"].items():
        bounds = np.array(list(samples.values()), dtype=np.float64)
        bands[name] = Band(float(bounds.min()), float(bounds.max()))
    return Bands(bands, entry["source"])


def published_days(period_ns: int) -> int:
    """Return how many days the bands of a period were measured over; facts depend on it.

    A slow wave of volatility looks like a trend in a short series, so that a generated market is
    compared with bands of a series of its own length.
    """
    days: int = _published()[format_period(period_ns)]["days"]
    return days


@dataclass(frozen=True, slots=True)
class Control:
    """How well a classifier told one real market from itself at another time."""

    close: float | None
    full: float | None
    source: str


def published_control(period_ns: int) -> Control:
    """Return the published control; None where nothing was published."""
    found = _published().get(format_period(period_ns), {}).get("control")
    if found is None:
        return Control(None, None, "no control is published for this period")
    return Control(found["close"], found["full"], found["source"])


def strict_bands(period_ns: int) -> Bands:
    """Return the shipped bands of the one sample that the preset was fitted to."""
    entry = _published()[format_period(period_ns)]
    bands = {name: Band(*samples["fitted"]) for name, samples in entry["facts"].items()}
    return Bands(bands, entry["fitted"])


def bootstrap_bands(bars: Bars, *, resamples: int = RESAMPLES) -> Bands:
    """Return 95 % bands of each fact from a file of bars, by resampling whole days.

    A pair of bars at a lag keeps its true partner, so a resample has no false joints. The same
    bars give the same bands.
    """
    series = Series(bars)
    n_days = series.day_starts.size
    rng = Seeds(0).child("realism", "bootstrap").rng()
    drawn = rng.integers(0, n_days, size=(resamples, n_days))
    counts = np.stack([np.bincount(row, minlength=n_days) for row in drawn]).astype(np.float64)
    tails = (50.0 * (1.0 - COVERAGE), 50.0 * (1.0 + COVERAGE))
    bands = {}
    for fact in facts_of(bars.period_ns):
        sums = fact.day_sums(series)
        if sums is not None:
            values = [sums.value(row) for row in counts @ sums.rows]
            low, high = np.percentile(values, tails)
            bands[fact.name] = Band(float(low), float(high))
    origin = bars.provenance.origin or bars.instrument.symbol
    return Bands(bands, f"{COVERAGE:.0%} day-block bootstrap of {origin}, {resamples} resamples")
