"""The questions that the pages and the loop ask of a store, each with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from agent_gym.apps.dashboard.figures.trajectories import COUNTED
from agent_gym.core.clock import DAY_NS, SystemClock
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.pipeline.automation.stock import UNUSED, data_quality
from agent_gym.rollouts.database import TrajectoryFilter, TrajectoryStore

Question: TypeAlias = Callable[[], object]
SIZE = 50
AROUND = 11
DASHBOARD_SORTS = ("id", "created_ns", "n_steps", "total_reward", "judge_score")
POLICY = ReadinessPolicy()


def list_questions(store: TrajectoryStore, version: str) -> Iterator[tuple[str, Question]]:
    """Yield what the page ``/dashboard/trajectories`` and ``/api/trajectories`` ask."""
    chosen = {
        "all": TrajectoryFilter(),
        "agent": TrajectoryFilter(agent="grpo/policy"),
        "rare agent": TrajectoryFilter(agent="rare/agent"),
        "no such agent": TrajectoryFilter(agent="nobody"),
        "version": TrajectoryFilter(agent_version=version),
        "scenario": TrajectoryFilter(scenario_id=f"benchmark-{7:032x}"),
        "status error": TrajectoryFilter(status="error"),
        "status timeout": TrajectoryFilter(status="timeout"),
        "purpose": TrajectoryFilter(purpose="evaluation"),
        "agent and status": TrajectoryFilter(agent="umc", status="error"),
        "agent and purpose": TrajectoryFilter(agent="rare/agent", purpose="evaluation"),
    }
    for name, asked in chosen.items():
        for sort in DASHBOARD_SORTS:
            yield f"list, {name}, by {sort}", _page(store, asked, sort)
            if name in ("all", "agent"):
                after = _deep(store, asked, sort)
                yield f"list, {name}, by {sort}, page 20", _page(store, asked, sort, after)
        yield f"count, {name}", lambda asked=asked: store.count(asked, at_most=COUNTED + 1)


def page_questions(
    store: TrajectoryStore, trajectory_id: str, version: str
) -> Iterator[tuple[str, Question]]:
    """Yield what the other pages and the service ask."""
    now = int(SystemClock().now_ns())
    snapshot = TrajectoryFilter(snapshot_id=f"{7:032x}")
    served = UNUSED.model_copy(update={"agent_version": version})
    size = POLICY.min_group_size
    yield "home: counts", store.counts
    yield "home: recorded per day", lambda: store.recorded_per_day(now, 30)
    yield "home: readiness, all", lambda: store.counts(UNUSED, min_group_size=size)
    yield "home: readiness, champion", lambda: store.counts(served, min_group_size=size)
    yield "home: data quality", lambda: data_quality(store, POLICY.quality_sample, served)
    yield "status: last day", lambda: store.count(TrajectoryFilter(created_from_ns=now - DAY_NS))
    yield (
        "status: last week",
        lambda: store.count(TrajectoryFilter(created_from_ns=now - 7 * DAY_NS)),
    )
    yield "training: batches", store.batches.newest
    yield "data: played on a snapshot", lambda: store.count(snapshot)
    yield "data: best on a snapshot", _page(store, snapshot, "total_reward", size=10)
    yield "replay: row", lambda: store.get(trajectory_id)
    yield "replay: steps", lambda: store.steps_part(trajectory_id, 40, AROUND)
    yield "replay: curve", lambda: store.reward_curve(trajectory_id)
    yield "replay: judgments", lambda: store.judgments.of(trajectory_id)
    yield "replay: calls", lambda: store.calls(trajectory_id)


def _page(
    store: TrajectoryStore,
    asked: TrajectoryFilter,
    sort: str,
    after: str | None = None,
    *,
    size: int = SIZE,
) -> Question:
    return lambda: store.page(asked, sort=sort, limit=size, after=after)


def _deep(store: TrajectoryStore, asked: TrajectoryFilter, sort: str) -> str | None:
    """Return where the 20th page begins."""
    after = None
    for _ in range(19):
        found = store.page(asked, sort=sort, limit=SIZE, after=after).next
        if found is None:
            break
        after = found
    return after
