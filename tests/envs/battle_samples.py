"""Battles set up by hand, and whole runs of a script."""

from dataclasses import dataclass, replace

import numpy as np

from agent_gym.core import Seeds
from agent_gym.envs.battle import MAPS, BattleBatch, TimeBase, script
from agent_gym.evaluation.statistics import Interval, wilson


def calm(battle, *, ticks=1, **changes):
    """Return a map without any chance, whose steps are short."""
    time = TimeBase(battle.time.ticks_per_second, ticks)
    return replace(battle, start_jitter=0.0, cooldown_jitter_ticks=0.0, time=time, **changes)


def staged(battle, **columns):
    """Return a batch of one in which some columns of the units were set by hand."""
    batch = BattleBatch(battle, 1, auto_reset=False)
    batch.reset(Seeds(0))
    change(batch, **columns)
    return batch


def change(batch, **columns):
    """Set columns of the units of environment 0; what is seen follows."""
    now = batch.capture(0)
    for name, values in columns.items():
        now.units[name] = values
    batch.restore(0, now)


def go(batch, *actions, n=1):
    """Let the agents of environment 0 do the same for n steps; return the rewards."""
    return [float(batch.step(np.array([actions])).rewards[0]) for _ in range(n)]


@dataclass(frozen=True)
class Run:
    """How often a script won, with Wilson's interval; the returns and lengths of its episodes."""

    wins: Interval
    returns: np.ndarray
    steps: np.ndarray
    won: np.ndarray

    def lies_within(self, low, high):
        return low <= self.wins.low and self.wins.high <= high


def run_script(battle, name, *, n=3_000, seed=0):
    """Play one episode in each of n environments."""
    battle = MAPS[battle] if isinstance(battle, str) else battle
    batch = BattleBatch(battle, n, auto_reset=False)
    batch.reset(Seeds(seed))
    decide, returns = script(name, Seeds(seed)), np.zeros(n)
    while not batch.results.ended.all():
        returns += batch.step(decide(batch)).rewards
    won = batch.results.won.copy()
    return Run(wilson(int(won.sum()), n), returns, batch.clocks["steps"].copy(), won)
