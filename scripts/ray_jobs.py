"""Jobs of known length for ``scripts/ray_results.py``; workers import this module by name."""

from typing import Any

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.seeds import Seeds
from agent_gym.rollouts.jobs import Job

CHECK = 64
MEASURED = 20_000


class BusyJob(Job):
    """Computes for a while and gives numbers that its seed alone decides, and how long it took.

    The work is a number of rounds, not a time: whoever has half a core needs twice as long.
    """

    seed: int
    rounds: int = 0

    @override
    def run(self) -> dict[str, Any]:
        """Draw numbers; only the first ones count."""
        clock = SystemClock()
        begun_s = clock.monotonic_s()
        rng = Seeds(self.seed).rng()
        drawn = rng.normal(size=CHECK)
        for _ in range(self.rounds):
            rng.normal(size=CHECK)
        seconds = clock.monotonic_s() - begun_s
        return {"status": "ok", "seed": self.seed, "sum": float(drawn.sum()), "seconds": seconds}


def rounds_a_second() -> float:
    """Return how many rounds this process makes in a second, at its best of five tries."""
    clock, job, best_s = SystemClock(), BusyJob(seed=0, rounds=MEASURED), float("inf")
    for _ in range(5):
        begun_s = clock.monotonic_s()
        job.run()
        best_s = min(best_s, clock.monotonic_s() - begun_s)
    return MEASURED / best_s
