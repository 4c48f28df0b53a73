"""What a study of teams would train: said by ``--dry-run``, refused as the study refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_gym.training.marl.jobs import TeamJob
from agent_gym.training.marl.runs import finished


def planned(jobs: Sequence[TeamJob]) -> dict[str, Any]:
    """Return how much there is to do.

    Raises:
        ConfigError: A folder holds a training of other settings.
    """
    left = [job for job in jobs if finished(job.config, job.folder) is None]
    steps = sum(job.config.env_steps for job in left)
    return {
        "trainings": f"{len(jobs)}, of which {len(jobs) - len(left)} are done",
        "environment steps": f"{steps:,}",
        "folders": ", ".join(dict.fromkeys(str(job.folder.parent) for job in jobs)),
    }
