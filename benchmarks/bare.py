"""The limits: the least code that does each work, compiled, with no ledger and no options.

bare series: a moving-average cross, long or flat, fixed size, fee only, one equity array.
bare batch: 1,024 lanes, action 0 or 1, fee only, an observation of 32 returns and 2 own values,
random starts, automatic reset.
"""

from __future__ import annotations

import numpy as np
from numba import njit

WINDOW = 32
OBSERVATION = WINDOW + 2


@njit(error_model="numpy", cache=True)
def series(open_, close, windows, terms, equity):
    """Fill at the next open, mark at the close; return the final equity."""
    fast, slow = windows
    units, fee, cash = terms
    position, want, fast_sum, slow_sum = 0.0, 0.0, 0.0, 0.0
    for i in range(close.size):
        if want != position:
            quantity = want - position
            cash -= quantity * open_[i] + abs(quantity) * open_[i] * fee
            position = want
        equity[i] = cash + position * close[i]
        fast_sum += close[i]
        slow_sum += close[i]
        if i >= fast:
            fast_sum -= close[i - fast]
        if i >= slow:
            slow_sum -= close[i - slow]
        if i >= slow - 1:
            want = units if fast_sum / fast > slow_sum / slow else 0.0
    return equity[-1]


@njit(error_model="numpy", cache=True)
def sweep(open_, close, pairs, terms, out):
    """Run every pair of windows, keeping only final equity, worst drawdown and fills."""
    units, fee, cash = terms
    for j in range(pairs.shape[0]):
        fast, slow = pairs[j, 0], pairs[j, 1]
        money, position, want, fast_sum, slow_sum = cash, 0.0, 0.0, 0.0, 0.0
        worth, peak, drawdown, fills = cash, cash, 0.0, 0
        for i in range(close.size):
            if want != position:
                quantity = want - position
                money -= quantity * open_[i] + abs(quantity) * open_[i] * fee
                position = want
                fills += 1
            worth = money + position * close[i]
            peak = max(peak, worth)
            drawdown = max(drawdown, 1.0 - worth / peak)
            fast_sum += close[i]
            slow_sum += close[i]
            if i >= fast:
                fast_sum -= close[i - fast]
            if i >= slow:
                slow_sum -= close[i - slow]
            if i >= slow - 1:
                want = units if fast_sum / fast > slow_sum / slow else 0.0
        out[j, 0], out[j, 1], out[j, 2] = worth, drawdown, fills


@njit(error_model="numpy", cache=True)
def _start(seed, lane, episode, first, last):
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(lane + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z += np.uint64(0xD1B54A32D192ED03) * np.uint64(episode + 1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return first + np.int64(z >> np.uint64(1)) % (last - first + 1)


@njit(error_model="numpy", cache=True)
def _step(market, actions, lanes, out, rules):
    prices, returns = market
    money, clock = lanes
    fee, length, seed, opening_cash = rules
    obs, rewards, done = out
    for e in range(actions.size):
        reward, end = 0.0, False
        if clock[e, 2] == 1:
            last = prices.shape[0] - 1 - length
            t = _start(seed, e, clock[e, 3], WINDOW, last)
            clock[e, 1], clock[e, 2] = t + length, 0
            clock[e, 3] += 1
            cash, position, worth = opening_cash, 0.0, opening_cash
        else:
            t = clock[e, 0] + 1
            cash, position, before = money[e, 0], money[e, 1], money[e, 2]
            want = float(actions[e])
            if want != position:
                quantity = want - position
                cash -= quantity * prices[t, 0] + abs(quantity) * prices[t, 0] * fee
                position = want
            worth = cash + position * prices[t, 1]
            reward = (worth - before) / before
            end = t >= clock[e, 1]
            clock[e, 2] = end
        money[e, 0], money[e, 1], money[e, 2], clock[e, 0] = cash, position, worth, t
        rewards[e], done[e] = reward, end
        for j in range(WINDOW):
            obs[e, j] = returns[t - WINDOW + 1 + j]
        obs[e, WINDOW], obs[e, WINDOW + 1] = position, worth / opening_cash - 1.0


class Batch:
    """Holds the arrays of the bare batch kernel."""

    def __init__(self, open_, close, n_lanes: int, episode_bars: int, seed: int) -> None:
        prices = np.ascontiguousarray(np.stack((open_, close), axis=1))
        growth = np.diff(np.log(close), prepend=np.log(close[0]))
        self.market = (prices, growth.astype(np.float32))
        money, clock = np.zeros((n_lanes, 3)), np.zeros((n_lanes, 4), np.int64)
        clock[:, 2] = 1
        self.lanes = (money, clock)
        observations = np.zeros((n_lanes, OBSERVATION), np.float32)
        self.out = (observations, np.zeros(n_lanes), np.zeros(n_lanes, np.bool_))
        self.rules = (0.001, episode_bars, seed, 10_000.0)

    def step(self, actions) -> None:
        """Step every lane once."""
        _step(self.market, actions, self.lanes, self.out, self.rules)
