"""Agents whose signals sit on a bound, settle there, or move freely."""

from agent_gym.core.types import Decision
from tests.evaluation.audit_samples import BARS, Follower


class Clamped(Follower):
    """Reports a lambda whose range is the clamp's merit."""

    targets = None

    def reset(self, start):
        super().reset(start)
        self._lambda = 0.28

    def act(self, obs):
        made = super().act(obs)
        self._lambda = self.limit(self._lambda * (1.1 if made.action else 1.05))
        return Decision(made.action, {"lambda": self._lambda})

    def limit(self, value):
        return min(value, 0.46)


class LateClamped(Clamped):
    """Reports a lambda that wanders for most of the episode and then stays at its clamp."""

    def reset(self, start):
        super().reset(start)
        self._moments = 0

    def limit(self, value):
        self._moments += 1
        free = value if value < 0.46 else 0.1
        return free if self._moments < 0.86 * len(BARS) else 0.46


class Settled(Clamped):
    """Reports a lambda that takes two steps and then rests at its largest value."""

    def limit(self, value):
        return 0.3 if value < 0.31 else 0.4


class Unclamped(Clamped):
    """Healthy: the same signal, driven back."""

    def limit(self, value):
        return value if value < 0.46 else 0.1


class NeverFilled(Clamped):
    """Reports a signal that nobody fills."""

    def limit(self, value):
        return 0.0
