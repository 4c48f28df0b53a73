"""Markets whose law is known, and how far a tier falls short of knowing it.

Each law draws a series of returns whose deviation is 1 and known, and scores it with the exact
filter that has the true parameters: no forecast can be better in the long run. So the gap of a
tier's log score to it is what the tier has yet to learn, whatever the tier is made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agent_gym.agents.umc.tiers.contract import WARM_BARS, Series, Tier
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

LOG_TAU = math.log(2.0 * math.pi)


class Law(Protocol):
    """A market that can be drawn, and its own exact forecast scored."""

    def draw(self, bars: int, seeds: Seeds) -> Series: ...
    def scores(self, seen: Series) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class HiddenLevel:
    """Linear-Gaussian: a hidden AR(1) level and noise, together of variance 1.

    Attributes:
        persistence: Share of the level that is left after a bar.
        share: Share of the variance of returns that the level has.
    """

    persistence: float = 0.93
    share: float = 0.4

    def draw(self, bars: int, seeds: Seeds) -> Series:
        """Return a series of the law."""
        rng = seeds.child("level").rng()
        pushes = rng.standard_normal(bars) * math.sqrt(self.share * (1.0 - self.persistence**2))
        noise = rng.standard_normal(bars) * math.sqrt(1.0 - self.share)
        level, levels = rng.standard_normal() * math.sqrt(self.share), np.empty(bars)
        for t in range(bars):
            level = self.persistence * level + pushes[t]
            levels[t] = level
        return unit_series(levels + noise)

    def scores(self, seen: Series) -> FloatArray:
        """Return the log density of each bar by the Kalman filter with the true parameters."""
        left = self.persistence**2
        push, noise = self.share * (1.0 - left), 1.0 - self.share
        mean, variance, told = 0.0, self.share, np.empty(len(seen))
        for t, value in enumerate(seen.returns.tolist()):
            spread = variance + noise
            told[t] = -0.5 * (LOG_TAU + math.log(spread) + (value - mean) ** 2 / spread)
            mean += variance / spread * (value - mean)
            variance *= noise / spread
            mean, variance = self.persistence * mean, left * variance + push
        return told


@dataclass(frozen=True, slots=True)
class TurningDrift:
    """A drift of fixed size that turns its sign, and Gaussian noise of deviation 1.

    Attributes:
        drift: Size in deviations; 6 basis points of 60 are 0.1.
        stay: Chance that the sign stays for a bar.
    """

    drift: float = 0.1
    stay: float = 0.995

    def draw(self, bars: int, seeds: Seeds) -> Series:
        """Return a series of the law."""
        rng = seeds.child("drift").rng()
        turns = np.where(rng.random(bars) < self.stay, 1.0, -1.0)
        return unit_series(self.drift * np.cumprod(turns) + rng.standard_normal(bars))

    def scores(self, seen: Series) -> FloatArray:
        """Return the log density of each bar by the exact filter with the true parameters."""
        ahead, told = 0.5, np.empty(len(seen))
        for t, value in enumerate(seen.returns.tolist()):
            up = ahead * math.exp(-0.5 * (value - self.drift) ** 2)
            down = (1.0 - ahead) * math.exp(-0.5 * (value + self.drift) ** 2)
            told[t] = math.log(up + down) - 0.5 * LOG_TAU
            after = up / (up + down)
            ahead = self.stay * after + (1.0 - self.stay) * (1.0 - after)
        return told


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a tier is from the filter that knows the law, in nats a bar.

    Attributes:
        shortfalls: Mean gap on bars after the past, one a seed.
        lead: Mean lead of the true filter over a plain Gaussian, which is what there is to learn.
    """

    shortfalls: tuple[float, ...]
    lead: float

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.shortfalls))

    @property
    def error(self) -> float:
        """Return the standard error of the mean, NaN for one seed."""
        count = len(self.shortfalls)
        return float(np.std(self.shortfalls, ddof=1) / math.sqrt(count)) if count > 1 else math.nan


def unit_series(returns: FloatArray) -> Series:
    """Return a series without inputs whose deviation is 1 at every bar."""
    ones = np.ones(returns.size)
    return Series(returns, ones, ones, np.empty((returns.size, 0)), ())


def shortfall(
    tier: Ref, law: Law, seeds: Iterable[int], past_bars: int = 8_760, later_bars: int = 8_760
) -> Gap:
    """Fit a tier on a past of the law for each seed, and score it on the bars that follow.

    Example:
        >>> plain = Ref(use="umc/exact", params={"drifts": [], "memories": [], "slopes": []})
        >>> found = shortfall(plain, HiddenLevel(), [0], past_bars=500, later_bars=2_000)
        >>> 0.05 < found.lead < 0.25 and 0.05 < found.mean < 0.25
        True
    """
    found, leads = [], []
    for seed in seeds:
        series = law.draw(past_bars + later_bars, Seeds(seed))
        fitted = make("tier", tier)
        if not isinstance(fitted, Tier):
            raise ConfigError("this is not a tier", where=tier.use)
        past, later = series.rows(0, past_bars), series.rows(past_bars, len(series))
        fitted.fit(past, Seeds(seed).child("fit"))
        memory = fitted.begin()
        fitted.filter(past.rows(max(0, past_bars - WARM_BARS), past_bars), memory)
        truth = law.scores(series)[past_bars:]
        plain = -0.5 * (
            LOG_TAU + math.log(past.returns.var()) + later.returns**2 / past.returns.var()
        )
        found.append(float((truth - fitted.filter(later, memory).score).mean()))
        leads.append(float((truth - plain).mean()))
    return Gap(tuple(found), float(np.mean(leads)))
