"""What a clock calls: ticks, the training check, training; and who asks for a training by hand."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from agent_gym.apps.api.routes.common import WRITTEN_DOWN, JobName, Loop, Plain, there
from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.job import JOB_ID

router = APIRouter(prefix="/api", tags=["automation"])
CallName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:._-]{0,99}$")]


class TickWish(Config):
    """A call with a name moves each agent once, however often it is repeated."""

    call_id: CallName | None = Field(default=None, description="name of the call")


class TrainingWish(Config):
    """What is to be trained, and whether at all costs."""

    force: bool = Field(default=False, description="train although it is not ready")
    job_id: str | None = Field(
        default=None, pattern=JOB_ID, description="the same one again is the same job"
    )


@router.post("/cron/agent-tick")
def agent_tick(loop: Loop, wish: TickWish | None = None) -> Plain:
    """Advance every active agent by one tick of its market."""
    return loop.tick(None if wish is None else wish.call_id).as_dict()


@router.get("/cron/training-check")
def training_check(loop: Loop) -> Plain:
    """Say whether training could begin, and what runs; begin nothing."""
    return loop.readiness() | {"under_way": loop.pipeline.training_under_way()}


@router.post("/cron/training")
def training(loop: Loop) -> Plain:
    """Begin a training if it is ready; otherwise say why not."""
    return loop.train().as_dict()


@router.post("/admin/training/trigger", dependencies=WRITTEN_DOWN)
def trigger(loop: Loop, wish: TrainingWish | None = None) -> Plain:
    """Begin a training, if need be although it is not ready."""
    asked = wish or TrainingWish()
    return loop.train(asked.force, asked.job_id).as_dict()


@router.get("/training/{job_id}")
def job(loop: Loop, job_id: JobName) -> Plain:
    """Say how far a training is, or what it came to."""
    return there(lambda: loop.pipeline.monitor_training(job_id)).as_dict()
