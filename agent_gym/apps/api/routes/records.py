"""What was recorded: trajectories page by page, and the snapshots they were played on."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from agent_gym.apps.api.problems import NotThere
from agent_gym.apps.api.routes.common import HashName, Loop, Plain, there
from agent_gym.core.registry import Config
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.pipeline.runtime.market import Snapshots
from agent_gym.rollouts.database import TrajectoryFilter

router = APIRouter(prefix="/api", tags=["records"])
MOST_STEPS = 1_000
COLUMNS = ("t", "ts", "action", "reward", "log_prob", "policy_version", "observation")
Sort = Literal["id", "created_ns", "start_ns", "n_steps", "total_reward", "judge_score"]


class TrajectoryQuery(TrajectoryFilter):
    """Which trajectories, in which order, from where on."""

    sort: Sort = "id"
    descending: bool = True
    limit: int = Field(default=50, ge=1, le=1_000)
    after: str | None = Field(default=None, max_length=1_000, description="`next` of a page")


class StepQuery(Config):
    """Which steps."""

    first: int = Field(default=0, ge=0, le=2**31 - 1)
    count: int = Field(default=100, ge=1, le=MOST_STEPS)


class SnapshotQuery(Config):
    """Which snapshots."""

    after: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    limit: int = Field(default=50, ge=1, le=200)


@router.get("/trajectories")
def trajectories(loop: Loop, query: Annotated[TrajectoryQuery, Query()]) -> Plain:
    """List trajectories, newest first if nothing else is asked for."""
    chosen = TrajectoryFilter(**query.model_dump(include=set(TrajectoryFilter.model_fields)))
    page = loop.stages.store.page(
        chosen,
        sort=query.sort,
        descending=query.descending,
        limit=query.limit,
        after=query.after,
    )
    return {"trajectories": [row.as_dict() for row in page.rows], "next": page.next}


@router.get("/trajectories/{trajectory_id}")
def trajectory(loop: Loop, trajectory_id: HashName) -> Plain:
    """Show a trajectory, with what language models were asked in it."""
    store = loop.stages.store
    row = there(lambda: store.get(trajectory_id))
    return row.as_dict() | {"calls": [call.as_dict() for call in store.calls(trajectory_id)]}


@router.get("/trajectories/{trajectory_id}/steps")
def steps(loop: Loop, trajectory_id: HashName, query: Annotated[StepQuery, Query()]) -> Plain:
    """List some steps of a trajectory."""
    store = loop.stages.store
    row = there(lambda: store.get(trajectory_id))
    n_steps = row.n_steps
    if query.first >= n_steps:
        return {"n_steps": n_steps, "first": query.first, **{name: [] for name in COLUMNS}}
    found = store.steps_part(trajectory_id, query.first, query.count)
    return {
        "n_steps": n_steps,
        "first": query.first,
        "t": found.t.tolist(),
        "ts": found.ts.tolist(),
        "action": _plain(found.action.tolist()),
        "reward": _plain(found.reward.tolist()),
        "log_prob": _plain(found.log_prob.tolist()),
        "policy_version": list(found.policy_version),
        "observation": None if found.observation is None else _plain(found.observation.tolist()),
    }


@router.get("/benchmarks")
def benchmarks(loop: Loop, query: Annotated[SnapshotQuery, Query()]) -> Plain:
    """List the snapshots that agents play and learn from; sealed ones are not among them."""
    known = Snapshots(loop.folder.snapshots("train")).ids()
    rest = [name for name in known if query.after is None or name > query.after]
    shown = rest[: query.limit]
    count = loop.stages.store.count
    return {
        "benchmarks": [
            {"id": name, "trajectories": count(TrajectoryFilter(snapshot_id=name))}
            for name in shown
        ],
        "next": shown[-1] if len(rest) > len(shown) else None,
    }


@router.get("/benchmarks/{snapshot_id}")
def benchmark(loop: Loop, snapshot_id: HashName) -> Plain:
    """Show a snapshot: its law, its markets, and how agents did on it."""
    path = Snapshots(loop.folder.snapshots("train")).path(snapshot_id)
    if not path.is_file():
        raise NotThere("there is no such snapshot", found=snapshot_id)
    snapshot = load_snapshot(path)
    best = loop.stages.store.page(
        TrajectoryFilter(snapshot_id=snapshot_id), sort="total_reward", limit=10
    )
    return {
        "id": snapshot.id,
        "ticks": snapshot.ticks,
        "config": snapshot.config.model_dump(mode="json"),
        "best": [
            {
                "trajectory_id": row.trajectory_id,
                "agent": row.agent,
                "agent_version": row.agent_version,
                "total_reward": row.total_reward,
            }
            for row in best.rows
        ],
    }


def _plain(value: Any) -> Any:
    """Return numbers as JSON can say them: one that is none is null."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if math.isfinite(value) else None
