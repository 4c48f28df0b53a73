"""How the service is: health, status, figures."""

from __future__ import annotations

from fastapi import APIRouter, Response

from agent_gym.apps.api.metrics import MEDIA
from agent_gym.apps.api.routes.common import Loop, Plain
from agent_gym.apps.api.service import HEALTHY
from agent_gym.core.clock import SECOND_NS

router = APIRouter(tags=["state"])


@router.get("/api/health")
def health(loop: Loop, response: Response) -> Plain:
    """Say whether database and folder can be used; if not, with status 503."""
    found = loop.health()
    response.status_code = 200 if found["status"] == HEALTHY else 503
    return found


@router.get("/api/status")
def status(loop: Loop) -> Plain:
    """Say what was collected, what is trained, which models there are, and how all that is."""
    batches = loop.stages.store.batches.newest(status="completed", limit=1)
    latest = loop.pipeline.get_latest_rl_model()
    figures, settings = loop.figures(), loop.settings
    return {
        "data_collection": loop.collected() | figures.trajectories,
        "training": {
            "readiness": loop.readiness(),
            "current_job": loop.pipeline.training_under_way(),
            "last_completed": None
            if not batches
            else {
                "batch_id": batches[0].batch_id,
                "model": batches[0].model_version,
                "completed_s": (batches[0].completed_ns or 0) // SECOND_NS,
            },
        },
        "models": {
            "latest": None if latest is None else latest.as_dict(),
            "deployed": figures.champion,
        },
        "agents": figures.agents | {"points": figures.points},
        "schedules": {
            "tick_every_s": settings.tick_every_s,
            "check_every_s": settings.check_every_s,
            "train_every_s": settings.train_every_s,
        },
        "health": loop.health(),
    }


@router.get("/metrics", response_class=Response)
def metrics(loop: Loop) -> Response:
    """Return all figures for Prometheus."""
    return Response(loop.metrics.page(), media_type=MEDIA)
