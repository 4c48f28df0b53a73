"""Models: which there are, which serves, forward and back."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from agent_gym.apps.api.routes.common import WRITTEN_DOWN, Loop, ModelName, Plain, there
from agent_gym.core.registry import Config
from agent_gym.pipeline.registry.refusals import RefusedDeployment
from agent_gym.rollouts.database.records import Words

router = APIRouter(prefix="/api", tags=["models"])
Named = Annotated[str, Field(pattern=r"^[0-9a-zA-Z.]{1,80}$")]


class DeployWish(Config):
    """Which model, and how far."""

    model: Named = Field(description="version, hash, or its first 8 digits")
    stage: Literal["shadow", "canary", "full"] = Field(
        default="shadow", description="shadow begins a rollout; the others follow one by one"
    )


class RollbackWish(Config):
    """Why, and where to."""

    reason: Words = Field(min_length=1, max_length=500)
    target: Named | None = Field(default=None, description="a former champion; default: the last")


@router.get("/models")
def models(loop: Loop) -> Plain:
    """List all models, oldest first, and who serves."""
    stages = loop.stages
    latest = loop.pipeline.get_latest_rl_model()
    return {
        "models": [model.as_dict() for model in stages.registry.models()],
        "latest": None if latest is None else latest.as_dict(),
        **stages.deployments.state().as_dict(),
    }


@router.get("/models/{model}")
def model_of(loop: Loop, model: ModelName) -> Plain:
    """Show a model: its manifest, its verdict and what happened to it."""
    registry = loop.stages.registry
    found = there(lambda: registry.find(model))
    artifact, verdict = registry.load(found.model_hash), registry.sealed.verdict(found.model_hash)
    return {
        **found.as_dict(),
        "signed_by": artifact.signed_by,
        "manifest": artifact.manifest.model_dump(mode="json"),
        "verdict": None if verdict is None else verdict.as_dict(),
        "history": [
            entry.as_dict()
            for entry in registry.history()
            if entry.data.get("model") == found.model_hash
        ],
    }


@router.post("/admin/models/deploy", dependencies=WRITTEN_DOWN)
def deploy(loop: Loop, wish: DeployWish) -> Plain:
    """Take a model that the gate has let through one stage further."""
    deployments = loop.stages.deployments
    wanted = there(lambda: deployments.registry.find(wish.model)).model_hash
    if wish.stage == "shadow":
        deployments.deploy(wanted)
    else:
        rollout = deployments.state().rollout
        if rollout is None or rollout.model != wanted:
            raise RefusedDeployment(
                "this model is not on its way",
                found=wanted[:12],
                expected=None if rollout is None else rollout.model[:12],
                remedy="Begin with the stage shadow",
            )
        deployments.advance(wish.stage)
    return deployments.state().as_dict()


@router.post("/admin/models/rollback", dependencies=WRITTEN_DOWN)
def rollback(loop: Loop, wish: RollbackWish) -> Plain:
    """Take back what is under way, or the last champion."""
    deployments, target = loop.stages.deployments, wish.target
    if target is not None:
        there(lambda: deployments.registry.find(target))
    return deployments.rollback(wish.reason, target).as_dict()
