"""Jobs of known length for ``scripts/ray_results.py``; workers import this module by name."""

from typing import Any

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.seeds import Seeds
from agent_gym.rollouts.jobs import Job

CHECK = 64


class BusyJob(Job):
    """Computes for a while and gives numbers that its seed alone decides."""

    seed: int
    seconds: float = 0.0

    @override
    def run(self) -> dict[str, Any]:
        """Draw numbers until the time is over; only the first ones count."""
        clock, rng = SystemClock(), Seeds(self.seed).rng()
        end_s = clock.monotonic_s() + self.seconds
        drawn = rng.normal(size=CHECK)
        while clock.monotonic_s() < end_s:
            rng.normal(size=CHECK)
        return {"status": "ok", "seed": self.seed, "sum": float(drawn.sum())}
