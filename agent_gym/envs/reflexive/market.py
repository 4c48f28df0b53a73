"""The market itself: it asks the crowd, forms a bar, and lets the crowd see it."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive.config import ReflexiveConfig, SquareRootImpact
from agent_gym.envs.reflexive.crowd import open_crowd
from agent_gym.envs.reflexive.kernel import SUB_STEPS, Formed, Physics, form_bar, remember

LINEAR_PAID, ROOT_PAID = 1.0 / 2.0, 2.0 / 3.0  # the mean along a line and along a square root


def physics_of(config: ReflexiveConfig) -> Physics:
    """Return the law of a market as numbers."""
    impact, root = config.impact, isinstance(config.impact, SquareRootImpact)
    transient = fading = 0.0
    if isinstance(impact, SquareRootImpact):
        transient, fading = impact.transient, 1.0 - 0.5 ** (1.0 / impact.half_life_bars)
    return Physics(
        square_root=float(root),
        strength=impact.strength,
        sigma=config.sigma,
        bars_per_day=DAY_NS / config.period_ns,
        transient=transient,
        fading=fading,
        paid=ROOT_PAID if root else LINEAR_PAID,
        pull=config.pull,
    )


class ReflexiveMarket:
    """Makes bars one by one: ``ask`` the crowd, ``form`` as often as wanted, then ``commit``.

    News, volume and signal of a whole episode are drawn before it begins, each from seeds of its
    own name: who trades changes none of them.
    """

    def __init__(self, config: ReflexiveConfig) -> None:
        self.config, self.crowd = config, open_crowd(config.crowd)
        self._physics: FloatArray = np.array(physics_of(config), dtype=np.float64)
        self._state: FloatArray = np.zeros(3)
        self._out: FloatArray = np.zeros(len(Formed._fields))
        self.t, self.net, self.gross = -1, 0.0, 0.0
        self.signal: FloatArray | None = None

    def begin(self, seeds: Seeds) -> None:
        """Draw a new course of the world; nothing has traded yet."""
        config, n = self.config, self.config.length
        draws = seeds.child("news").rng().standard_normal((n, SUB_STEPS))
        self._news: FloatArray = draws * (config.sigma / math.sqrt(SUB_STEPS))
        if config.clustering is not None:
            calm = seeds.child("clustering").rng().standard_normal(n)
            spread = config.clustering.spread
            size = np.exp(spread * remember(calm, config.clustering.memory) - spread**2)
            self._news *= size[:, None]
        if config.signal is not None:
            shocks = seeds.child("signal").rng().standard_normal(n)
            self.signal = remember(shocks, config.signal.memory)
            drift = config.signal.strength * config.sigma * self.signal[:-1]
            self._news[1:] += (drift / SUB_STEPS)[:, None]
        width = config.volume_spread
        busy = seeds.child("volume").rng().standard_normal(n)
        self._noise: FloatArray = config.usual_volume * np.exp(width * busy - 0.5 * width**2)
        self._state[:] = math.log(config.first_price), math.log(config.first_price), 0.0
        self.crowd.begin(float(self._state[0]), config.sigma, seeds.child("crowd"))
        self.t, self.net, self.gross = -1, 0.0, 0.0

    @property
    def worth(self) -> float:
        """Return the log price that the market is worth after the last bar."""
        return float(self._state[1])

    def ask(self) -> None:
        """Let the crowd say what it wants in the next bar."""
        self.net, self.gross = self.crowd.decide()

    def form(self, own: float) -> Formed:
        """Return what the next bar would be with an own flow, in units; nothing has happened."""
        flow = self.net + own / self.config.daily_units
        form_bar(self._physics, self._state, self._news[self.t + 1], flow, self._out)
        bar = Formed(*self._out.tolist())
        if not (bar.low > 0.0 and math.isfinite(bar.high)):  # false for NaN as well
            raise VenueError(
                "the price ran away",
                where=f"bar {self.t + 1}",
                found=(bar.low, bar.high),
                remedy="Lower the impact, or the capital of the crowd",
            )
        return bar

    def traded(self, own: float) -> tuple[float, float]:
        """Return the volume of the next bar and what of it takers bought, in units."""
        units = self.config.daily_units
        volume = units * self.gross + abs(own) + float(self._noise[self.t + 1])
        return volume, 0.5 * (volume + units * self.net + own)

    def commit(self, bar: Formed) -> None:
        """Let the bar have happened."""
        self._state[:] = bar.log_close, bar.worth, bar.transient
        self.t += 1
        self.crowd.settle(bar.log_close, bar.log_high, bar.log_low, bar.worth, bar.log_open)
