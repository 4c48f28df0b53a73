"""One training job: who asked for it, where its files lie, what it came to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json
from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.config import AutomationConfig

Ending: TypeAlias = Literal[
    "skipped",
    "not learnable",
    "unchanged",
    "not promoted",
    "control passed",
    "promoted",
    "rolled back",
]
JOB_ID = r"^[a-z0-9][a-z0-9-]{0,63}$"


class TrainingJob(Config):
    """What was asked for; the same id is the same job, however often it is asked for."""

    job_id: str = Field(pattern=JOB_ID)
    force: bool = Field(default=False, description="train although it is not ready")
    shuffle_rewards: bool = Field(
        default=False,
        description="a control: rewards of other trajectories, or moves of other snapshots; it "
        "must not pass",
    )
    config: AutomationConfig | None = Field(
        default=None, description="settings it began with, which hold to its end"
    )

    def batch(self, number: int) -> str:
        """Return the id of the batch of a round; the first has that of the job."""
        return self.job_id if number == 0 else f"{self.job_id}-round-{number}"


class JobOutcome(Config):
    """How a job ended, with the reason in words and what every stage left."""

    job_id: str
    ending: Ending
    reason: str
    champion: str
    challenger: str | None = None
    stages: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of a job; each is written once, whole, and read back ever after."""

    path: Path

    @property
    def policy(self) -> Path:
        """Return where the trained policy is put."""
        return self.path / "policy"

    @property
    def checkpoints(self) -> Path:
        """Return where training can go on from."""
        return self.path / "checkpoints"

    def once(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what a stage left, or let it do its work and keep what it leaves."""
        target = self._file(name)
        if not target.is_file():
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(target, make())
        return _read(target)

    def read(self, name: str) -> dict[str, Any]:
        """Return what a stage left; one that did not come so far is an error."""
        return _read(self._file(name))

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            "what a stage of a job left cannot be read",
            where=str(path),
            found=error,
            remedy="Remove the file; the stage is done again",
        ) from error
    if not isinstance(found, dict):
        raise DataError("what a stage left is no mapping", where=str(path), found=type(found))
    return found
