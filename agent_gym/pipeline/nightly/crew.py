"""Who plays episodes: processes of this machine or of a cluster, with today's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig
from agent_gym.pipeline.nightly.jobs import EpisodesJob, episode_jobs
from agent_gym.rollouts.choice import make_executor

SEEDS_AT_ONCE = 4
TIMEOUT_S = 300.0
FROZEN_WORDS = "agent_gym.frozen/1"  # how old code is asked, see frozen_side.py

Row: TypeAlias = dict[str, Any]
Heard: TypeAlias = Callable[[str, list[Row]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """Seeds of one scenario that are to be played."""

    scenario: ScenarioConfig
    seeds: tuple[int, ...]


class Crew(Protocol):
    """Plays tasks for one subject with one version of the code."""

    def play(self, tasks: Sequence[Task], heard: Heard) -> dict[str, list[Row]]:
        """Play everything, tell ``heard`` what is done, and return all rows by scenario.

        Rows of seeds that were not finished because of Ctrl-C say ``interrupted`` or ``cancelled``.
        """


@dataclass(frozen=True, slots=True)
class LocalCrew:
    """Today's code in processes of this machine, or of the cluster that was chosen.

    Attributes:
        subject: Who is under test.
        workers: Processes; no figure depends on it.
        timeout_s: Wall time of a job of a few seeds.
        imports: Modules that register scenarios, agents or desks without an entry point.
    """

    subject: Subject
    workers: int
    timeout_s: float = TIMEOUT_S
    imports: tuple[str, ...] = ()

    def play(self, tasks: Sequence[Task], heard: Heard) -> dict[str, list[Row]]:
        """Play in new processes, so that nothing of an earlier batch can be left in them."""
        jobs = [
            job
            for task in tasks
            for job in episode_jobs(task.scenario, self.subject, task.seeds, SEEDS_AT_ONCE)
        ]
        executor = make_executor(
            self.workers,
            timeout_s=self.timeout_s,
            imports=(EpisodesJob.__module__, *self.imports),  # not at the cost of the first job
        )
        batch = executor.run(
            jobs, lambda _done, _total, row: heard(row["scenario"], row["episodes"])
        )
        found: dict[str, list[Row]] = {task.scenario.name: [] for task in tasks}
        for row in batch.rows:
            found[row["scenario"]].extend(row["episodes"])
        return found
