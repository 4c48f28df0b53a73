"""Living agents: who there is, what they have left, and whether the right model answers them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from agent_gym.apps.api.routes.common import WRITTEN_DOWN, AgentName, Loop, Plain, there
from agent_gym.core.registry import Config
from agent_gym.pipeline.runtime import verify_served
from agent_gym.rollouts.database import ServiceAgent
from agent_gym.rollouts.database.records import LARGEST_INTEGER, Words

router = APIRouter(prefix="/api", tags=["agents"])
MOST_POINTS = 10**12
Points = Annotated[int, Field(ge=0, le=MOST_POINTS)]


class AgentWish(Config):
    """A new agent."""

    agent_id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    name: Words | None = Field(default=None, max_length=80)
    points: Points = Field(default=100, description="what it may spend on ticks")


class PointsWish(Config):
    """Points that an agent is given."""

    points: Points


class StatusWish(Config):
    """Whether an agent goes on."""

    status: Literal["active", "paused"]


@router.get("/agents")
def agents(loop: Loop) -> Plain:
    """List the agents, and the model that answers each of them now."""
    rows = loop.stages.store.agents.all()
    served = loop.stages.deployments.served
    known = loop.stages.deployments.state().champion is not None
    return {
        "agents": [_told(row) | {"served": served(row.agent_id) if known else None} for row in rows]
    }


@router.get("/agents/{agent_id}")
def agent(loop: Loop, agent_id: AgentName) -> Plain:
    """Show an agent."""
    return _told(there(lambda: loop.stages.store.agents.get(agent_id)))


@router.get("/verify")
def verify(loop: Loop, since_ns: Annotated[int, Query(ge=0, le=LARGEST_INTEGER)] = 0) -> Plain:
    """Check from the stored calls that the model that served was the one that answered."""
    return verify_served(loop.stages.store, loop.stages.deployments, since_ns).as_dict()


@router.post("/admin/agents", status_code=201, dependencies=WRITTEN_DOWN)
def add(loop: Loop, wish: AgentWish) -> Plain:
    """Let an agent live; one that is there already stays as it is."""
    return _told(loop.agents.add(wish.agent_id, name=wish.name, points=wish.points))


@router.post("/admin/agents/{agent_id}/points", dependencies=WRITTEN_DOWN)
def give(loop: Loop, agent_id: AgentName, wish: PointsWish) -> Plain:
    """Give an agent points; a paused one stays paused."""
    return _told(there(lambda: loop.stages.store.agents.add_points(agent_id, wish.points)))


@router.post("/admin/agents/{agent_id}/status", dependencies=WRITTEN_DOWN)
def set_status(loop: Loop, agent_id: AgentName, wish: StatusWish) -> Plain:
    """Pause an agent, or let it go on."""
    store = loop.stages.store.agents
    there(lambda: store.get(agent_id))
    return _told(store.set_status(agent_id, wish.status))


def _told(row: ServiceAgent) -> Plain:
    return row.as_dict()
