"""Trainings: those of the folder, and the job of the loop that is under way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_gym.apps.api.service import Service
from agent_gym.pipeline.automation.pipeline import TrainingStatus
from agent_gym.reporting.rl.overview import (
    SeedProgress,
    experiment_names,
    experiment_progress,
    videos_in,
)
from agent_gym.rollouts.database import TrainingBatch

BATCHES = 10


@dataclass(frozen=True, slots=True)
class TrainingFigures:
    """What the page shows.

    Attributes:
        names: All trainings, the newest first.
        chosen: The one that is shown.
        seeds: How far each of its seeds is.
        videos: Names of the videos that were filmed.
        job: The job of the loop that runs now.
        batches: What the loop has trained on, the newest first.
    """

    names: tuple[str, ...]
    chosen: str
    seeds: tuple[SeedProgress, ...]
    videos: tuple[str, ...]
    job: TrainingStatus | None
    batches: tuple[TrainingBatch, ...]


def training_figures(service: Service, name: str) -> TrainingFigures:
    """Return the trainings of the folder that is served."""
    root = service.folder.path
    names = experiment_names(root)
    chosen = name or (names[0] if names else "")
    running = service.pipeline.training_under_way()
    return TrainingFigures(
        names=names,
        chosen=chosen,
        seeds=experiment_progress(root, chosen) if chosen else (),
        videos=tuple(videos_in(root)),
        job=None if running is None else service.pipeline.monitor_training(running),
        batches=service.stages.store.batches.newest(limit=BATCHES),
    )


def video_path(service: Service, name: str) -> Path | None:
    """Return where a video lies; None if there is none of this name."""
    return videos_in(service.folder.path).get(name)
