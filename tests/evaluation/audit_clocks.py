"""Agents that look at the clock of the machine, or at nothing, and their healthy twins."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from time import time as now_s  # noqa: TID251 (a planted defect)

from agent_gym.core.types import Decision
from tests.evaluation.audit_samples import Follower

IMPORTED_DAY = int(now_s() // 86_400)  # a planted defect


class ClockWatcher(Follower):
    """Trades by the hour of the machine."""

    targets = None

    def act(self, obs):
        return Decision(1.0 if time.localtime().tm_hour % 2 == 0 else 0.0)


class CalendarReader(ClockWatcher):
    """Trades on some days of the week, of the machine's calendar."""

    def act(self, obs):
        return Decision(float(datetime.now(UTC).weekday() < 3))  # noqa: TID251 (the defect)


class NightWorker(ClockWatcher):
    """Looks at the clock once, and trades in one hour of the day."""

    def act(self, obs):
        return Decision(float(now_s() // 3600 % 24 == 3))


class BornLate(ClockWatcher):
    """Goes by the day on which its module was imported."""

    def act(self, obs):
        return Decision(float(IMPORTED_DAY % 2))


class TimesItself(Follower):
    """Healthy: reads the clock, to know how long it took, and decides by the bars."""

    targets = None
    spent_s = 0.0

    def act(self, obs):
        began = now_s()
        made = super().act(obs)
        self.spent_s += now_s() - began
        return made


class Deaf(Follower):
    """Asks for closes and holds half of all, whatever they are."""

    def target(self, closes):
        return 0.5


class SessionTrader(Follower):
    """Healthy: trades by the hour of the observation."""

    targets = None

    def act(self, obs):
        return Decision(float(obs.ts // (3_600 * 10**9) % 2))
