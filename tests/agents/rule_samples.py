"""Every rule with settings small enough to act on short series, and slow second opinions."""

import math

import numpy as np

from agent_gym.agents.rules.baselines import (
    BuyHoldConfig,
    FlatConfig,
    RandomConfig,
    buy_hold,
    flat,
    random,
)
from agent_gym.agents.rules.breakout import BreakoutConfig, breakout
from agent_gym.agents.rules.mean_reversion import MeanReversionConfig, mean_reversion
from agent_gym.agents.rules.momentum import MomentumConfig, momentum
from agent_gym.agents.rules.rsi import RsiConfig, rsi
from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
from agent_gym.agents.rules.vol_target import VolTargetConfig, vol_target
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Nanos, Observation, Outcome, Role

FEATURES = ("open", "high", "low", "close", "volume")
PERIOD_NS = Nanos(HOUR_NS)

RULES = {
    "rules/flat": lambda: flat(FlatConfig()),
    "rules/buy-hold": lambda: buy_hold(BuyHoldConfig(size=0.8)),
    "rules/random": lambda: random(RandomConfig(hold_bars=3, allow_short=True)),
    "rules/vol-target": lambda: vol_target(
        VolTargetConfig(target_vol=0.5, half_life_bars=5, warmup_bars=4, band=0.02)
    ),
    "rules/sma-cross": lambda: sma_cross(SmaCrossConfig(fast=3, slow=7, allow_short=True)),
    "rules/momentum": lambda: momentum(
        MomentumConfig(lookback=5, threshold=0.002, allow_short=True)
    ),
    "rules/mean-reversion": lambda: mean_reversion(
        MeanReversionConfig(window=8, entry_z=1.2, exit_z=0.3, allow_short=True)
    ),
    "rules/breakout": lambda: breakout(BreakoutConfig(entry_bars=6, exit_bars=3, allow_short=True)),
    "rules/rsi": lambda: rsi(RsiConfig(period=4, oversold=35, overbought=65, allow_short=True)),
}


def start(seed=0, actions=None, features=FEATURES, period_ns=PERIOD_NS):
    return EpisodeStart(Role("trader"), features, actions or ActionSpec(), Seeds(seed), period_ns)


def walk(n, seed=0, first=100.0, vol=0.01):
    rng = Seeds(seed).child("walk").rng()
    close = first * np.exp(np.cumsum(rng.normal(0.0, vol, n)))
    high, low = close * (1 + rng.uniform(0, vol, n)), close * (1 - rng.uniform(0, vol, n))
    return {
        "open": np.concatenate([[first], close[:-1]]),
        "high": high,
        "low": low,
        "close": close,
        "volume": rng.uniform(1, 2, n),
    }


def step_by_step(rule, columns, began):
    """Return what act() gives at every moment, as raw actions."""
    rule.reset(began)
    table = np.column_stack([columns[name] for name in FEATURES])
    return [rule.act(Observation(Nanos(i), row)).action for i, row in enumerate(table)]


class BarWorld:
    """Shows a walk bar by bar and pays the target times the next move."""

    roles = (Role("trader"),)

    def start(self, role, seeds):
        return EpisodeStart(role, FEATURES, ActionSpec(), seeds, PERIOD_NS)

    def reset(self, seeds):
        bars = walk(60, seed=seeds.as_int() % 1000)
        self._table, self._t = np.column_stack([bars[name] for name in FEATURES]), 0
        return {"trader": Observation(Nanos(0), self._table[0])}

    def step(self, actions):
        self._t += 1
        now, before = self._table[self._t], self._table[self._t - 1]
        reward = float(actions["trader"] * (now[3] / before[3] - 1))
        seen = Observation(Nanos(self._t), now)
        return {"trader": Outcome(seen, reward, truncated=self._t == 59)}


def slow_sma_cross(config, bars):
    held, targets = 0.0, []
    close = bars["close"].tolist()
    for i in range(len(close)):
        if i + 1 >= config.slow:
            fast = math.fsum(close[i + 1 - config.fast : i + 1]) / config.fast
            slow = math.fsum(close[i + 1 - config.slow : i + 1]) / config.slow
            room = max(config.band, 1e-12) * slow
            held = config.size if fast - slow > room else held
            held = config.short if fast - slow < -room else held
        targets.append(held)
    return np.array(targets)


def slow_momentum(config, bars):
    targets, close = [], bars["close"]
    for i in range(close.size):
        move = close[i] / close[i - config.lookback] - 1 if i >= config.lookback else 0.0
        up, down = move > config.threshold, move < -config.threshold
        targets.append(config.size if up else config.short if down else 0.0)
    return np.array(targets)


def slow_mean_reversion(config, bars):
    held, targets, close = 0.0, [], bars["close"]
    for i in range(close.size):
        part = close[max(i + 1 - config.window, 0) : i + 1]
        if part.size == config.window:
            z = (close[i] - part.mean()) / part.std() if part.std() > 0 else 0.0
            if z < -config.entry_z:
                held = config.size
            elif z > config.entry_z:
                held = config.short
            elif (held > 0 and z >= -config.exit_z) or (held < 0 and z <= config.exit_z):
                held = 0.0
        targets.append(held)
    return np.array(targets)


def slow_breakout(config, bars):
    held, targets = 0.0, []
    high, low, close = bars["high"], bars["low"], bars["close"]
    for i in range(close.size):
        if i >= config.entry_bars:
            entry, leave = slice(i - config.entry_bars, i), slice(i - config.exit_bars, i)
            if close[i] > high[entry].max():
                held = config.size
            elif close[i] < low[entry].min():
                held = config.short
            elif (held > 0 and close[i] < low[leave].min()) or (
                held < 0 and close[i] > high[leave].max()
            ):
                held = 0.0
        targets.append(held)
    return np.array(targets)


def slow_vol_target(config, bars):
    held, targets, close = 0.0, [], bars["close"]
    decay = 0.5 ** (1 / config.half_life_bars)
    for i in range(close.size):
        if i >= config.warmup_bars:
            moves = close[1 : i + 1] / close[:i] - 1
            weights = decay ** np.arange(i)[::-1]
            yearly = math.sqrt(np.average(moves**2, weights=weights) * 8760.0)
            wanted = min(config.max_size, config.target_vol / yearly)
            if i == config.warmup_bars or abs(wanted - held) > config.band:
                held = wanted
        targets.append(held)
    return np.array(targets)
