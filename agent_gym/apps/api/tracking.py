"""Weights & Biases is told of trainings when its key is set; otherwise nothing leaves here."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_gym.pipeline.automation.pipeline import TrainingStatus

KEY = "WANDB_API_KEY"
LIBRARY = "wandb"
PROJECT = "agent-gym"
State: TypeAlias = Literal["online", "offline", "not installed"]
log = logging.getLogger(__name__)


def tracker_state(environment: Mapping[str, str] | None = None) -> State:
    """Return whether trainings are told.

    Example:
        >>> tracker_state({})
        'offline'
    """
    said = os.environ if environment is None else environment
    if not said.get(KEY):
        return "offline"
    return "online" if find_spec(LIBRARY) is not None else "not installed"


class WandbJournal:
    """Tells of each training once; its id there is that of the job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tell(self, told: TrainingStatus) -> None:
        """Send the figures of a training that has ended."""
        if told.outcome is None:
            return
        training = told.outcome.stages.get("training") or {}
        wandb: Any = import_module(LIBRARY)
        run = wandb.init(
            project=PROJECT,
            id=told.job_id,
            name=told.job_id,
            resume="allow",
            dir=str(self._folder),
            config={"champion": told.outcome.champion, "challenger": told.outcome.challenger},
        )
        for number, figures in enumerate(training.get("rounds", [])):
            run.log(_numbers(figures), step=number)
        run.summary.update({"ending": told.outcome.ending, "reason": told.outcome.reason})
        run.finish()


def journal(folder: Path, environment: Mapping[str, str] | None = None) -> WandbJournal | None:
    """Return whom to tell; None while nobody is to be told."""
    state = tracker_state(environment)
    if state == "not installed":
        log.warning("%s is set, but %s is not installed: trainings stay here", KEY, LIBRARY)
    return WandbJournal(folder) if state == "online" else None


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"train/{name}": float(value)
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
