"""Diagnoses as jobs: one process a seed, done ones found done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from agent_gym.core.errors import AgentError
from agent_gym.rollouts.choice import make_executor
from agent_gym.training.marl.amal.diagnosis import REPORT, diagnose
from agent_gym.training.marl.jobs import PROGRESS, TeamJob, told_in
from agent_gym.training.marl.runs import differing, read_json, refuse_other
from agent_gym.training.rl.result import error_text


class DiagnosisJob(TeamJob):
    """One seed of AMAL, trained with every probe on."""

    @property
    @override
    def done(self) -> bool:
        """Return whether there is a report of it."""
        return (self.folder / REPORT).is_file()

    @override
    def run(self) -> dict[str, Any]:
        """Train and examine; the report is in the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        diagnose(self.config, self.folder, told_in(self.folder))
        (self.folder / PROGRESS).unlink(missing_ok=True)
        return {"status": "ok"}

    def known(self) -> dict[str, Any] | None:
        """Return the report of a seed that is done; another training's is refused."""
        if not self.done:
            return None
        report: dict[str, Any] = read_json(self.folder / REPORT)
        refuse_other(self.folder, differing(report["config"], self.config, self.folder))
        return report


def run_diagnoses(jobs: Sequence[DiagnosisJob], workers: int) -> list[dict[str, Any]]:
    """Examine what is not examined yet, and return all reports.

    Args:
        jobs: One a seed.
        workers: Processes at a time; no figure depends on it.

    Raises:
        AgentError: A seed has failed.
        KeyboardInterrupt: It was stopped; what is done is kept.
    """
    todo = [job for job in jobs if job.known() is None]
    batch = make_executor(workers).run(todo)
    if batch.status == "partial":
        raise KeyboardInterrupt
    for job, row in zip(todo, batch.rows, strict=True):
        if row["status"] != "ok":
            raise AgentError(
                "a diagnosis has failed",
                where=job.label,
                found=error_text(row.get("error"), str(row["status"])),
            )
    return [read_json(job.folder / REPORT) for job in jobs]
