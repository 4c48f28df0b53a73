"""When a cluster pays off: a model of wall time from measured overheads.

A run takes its start, and then each worker its share of the jobs, each with what the executor adds
to it. The model knows no queue and no transfer of large files; see ``docs/cluster.md``.
"""

from __future__ import annotations

from math import ceil

from pydantic import Field

from agent_gym.core.registry import Config


class Overhead(Config):
    """What an executor costs beside the work itself."""

    start_s: float = Field(ge=0.0, description="until the first job is under way")
    job_s: float = Field(ge=0.0, description="of each job, on the worker that does it")


def wall_time_s(jobs: int, job_s: float, workers: int, overhead: Overhead) -> float:
    """Return how long a run takes: the start, then the longest share.

    Args:
        jobs: How many.
        job_s: Work of one job.
        workers: Processes at a time.
        overhead: Of the executor.

    Example:
        >>> wall_time_s(100, 1.0, 10, Overhead(start_s=5.0, job_s=0.0))
        15.0
    """
    return overhead.start_s + ceil(jobs / workers) * (job_s + overhead.job_s)


def break_even_jobs(
    job_s: float, here: tuple[int, Overhead], there: tuple[int, Overhead], most: int = 10**7
) -> int | None:
    """Return the smallest number of jobs for which a cluster is faster, None if there is none.

    Args:
        job_s: Work of one job.
        here: Workers and overhead of this machine.
        there: Workers and overhead of the cluster.
        most: Larger runs are not looked at.

    Example:
        >>> near, far = Overhead(start_s=1.0, job_s=0.0), Overhead(start_s=11.0, job_s=0.0)
        >>> break_even_jobs(1.0, (2, near), (10, far))
        27
        >>> break_even_jobs(1.0, (2, near), (2, far)) is None
        True
    """

    def pays(jobs: int) -> bool:
        return wall_time_s(jobs, job_s, *there) < wall_time_s(jobs, job_s, *here)

    reach = 1
    while not pays(reach):
        reach *= 2
        if reach > most:
            return None
    low, high = reach // 2, reach  # shares are rounded up, so it is a rule, not a theorem
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high
