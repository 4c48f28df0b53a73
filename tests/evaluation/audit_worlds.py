"""Worlds with one planted defect each, and their healthy twin: a paper account in plain Python."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.types import ActionSpec, Decision, EpisodeStart, Observation, Outcome, Role
from tests.evaluation.audit_samples import Follower

FEE = 1e-3
CASH = 10_000.0
TRADER = Role("trader")


class Paper:
    """Healthy: decides at the close, fills at the next open, pays the change of log equity."""

    roles = (TRADER,)
    names = ("open", "close", "volume", "move")

    def __init__(self, bars):
        self._bars = bars

    def start(self, role, seeds):
        return EpisodeStart(role, self.names, ActionSpec(), seeds, self._bars.period_ns)

    def reset(self, seeds):
        self._t = 0
        self._books = {"cash": CASH, "pos": 0.0, "eq": CASH, "fees": 0.0, "slip": 0.0, "fund": 0.0}
        return {TRADER: self._see()}

    def step(self, actions):
        before = self._books["eq"]
        self._t += 1
        self._trade(float(actions[TRADER]), self.fill_price())
        self._books["eq"] = self._books["cash"] + self._books["pos"] * self._bars.close[self._t]
        over = self._t == len(self._bars) - 1
        return {TRADER: Outcome(self._see(), self.reward(before), truncated=over)}

    def ledger(self, role):
        return dict(self._books)

    def fill_price(self):
        return self._bars.open[self._t]

    def reward(self, before):
        return math.log(self._books["eq"] / before)

    def _trade(self, target, price):
        books = self._books
        worth = books["cash"] + books["pos"] * price
        bought = target * worth / price - books["pos"]
        fee = self.fee(abs(bought) * price)
        books["pos"] += bought
        books["cash"] -= bought * price + fee
        books["fees"] += self.booked(fee)

    def fee(self, notional):
        return FEE * notional

    def booked(self, fee):
        return fee

    def _see(self):
        bars, t = self._bars, self._t
        return Observation(int(bars.ts[t]) + bars.period_ns, np.array(self.row(bars, t)))

    def row(self, bars, t):
        before = bars.close[max(0, t - 1)]
        return [bars.open[t], bars.close[t], bars.volume[t], bars.close[t] / before - 1.0]


class AgainstCash(Paper):
    """Pays equity over what is left of the cash."""

    def reward(self, before):
        return (self._books["eq"] - self._books["cash"]) / max(abs(self._books["cash"]), 1.0)


class SameBar(Paper):
    """Fills at the close that decided."""

    def fill_price(self):
        return self._bars.close[self._t - 1]


class LostFee(Paper):
    """Takes the fee and books half of it."""

    def booked(self, fee):
        return fee / 2.0


class OldMark(Paper):
    """Shows the cash of before the fee."""

    def ledger(self, role):
        return self._books | {"cash": self._books["cash"] + 1.0}


class Centred(Paper):
    """Shows a move that is centred: half of it has not happened yet."""

    def row(self, bars, t):
        nearby = bars.close[max(0, t - 2) : t + 3]
        return [*super().row(bars, t)[:3], bars.close[t] / nearby.mean() - 1.0]


class Padded(Paper):
    """Pads its rows to a round number of columns."""

    names = (*Paper.names, *(f"pad_{i}" for i in range(4)))

    def row(self, bars, t):
        return [*super().row(bars, t), 0.0, 0.0, 0.0, 0.0]


class Masked(Padded):
    """Healthy: says that it does not know what it pads."""

    names = (*Paper.names, "pad_0", "pad_1", "pad_0_known", "pad_1_known")


class ConstantColumn(Paper):
    """Shows a volume that is a default value."""

    def row(self, bars, t):
        return [bars.open[t], bars.close[t], 1000.0, super().row(bars, t)[3]]


class Closed(Paper):
    """Does not open its books."""

    ledger = None


class Whole(Follower):
    """Healthy: reads the whole row."""

    targets = None
    needs = None

    def reset(self, start):
        self._weights = np.linspace(0.5, 1.5, len(start.feature_names))

    def act(self, obs):
        row = np.sign(obs.features) * np.log1p(np.abs(obs.features))
        return Decision(float(np.tanh(np.sin(row @ self._weights))))


class MoveFollower(Whole):
    """Healthy: reads the move."""

    def reset(self, start):
        self._column = start.column("move")

    def act(self, obs):
        return Decision(1.0 if obs.features[self._column] > 0.0 else 0.0)


class VolumeFollower(Whole):
    """Healthy: reads move and volume."""

    def reset(self, start):
        self._columns = [start.column("move"), start.column("volume")]

    def act(self, obs):
        move, volume = obs.features[self._columns]
        return Decision(float(np.tanh(100.0 * move * math.log(volume))))
