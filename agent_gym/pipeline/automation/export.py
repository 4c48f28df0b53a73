"""A batch as files for a trainer elsewhere: groups as JSON lines, steps as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from agent_gym.core.files import atomic_path
from agent_gym.rollouts.database import (
    LlmCall,
    StoredTrajectory,
    TrajectoryGroup,
    TrajectoryStore,
)

GROUPS, STEPS = "groups.jsonl", "steps.arrow"
NUMBERS = pa.list_(pa.float64())
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("trajectory_id", pa.string()),
        ("t", pa.int64()),
        ("ts", pa.int64()),
        ("observation", NUMBERS),
        ("action", NUMBERS),
        ("reward", pa.float64()),
        ("log_prob", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Export:
    """Where a batch was written to, and how much of it there is."""

    folder: Path
    groups: int
    trajectories: int
    steps: int


def export_grouped_for_grpo(store: TrajectoryStore, batch_id: str, folder: Path) -> Export:
    """Write the groups of a batch: exactly its members, in its order.

    A line of ``groups.jsonl`` is one group with its trajectories, their rewards, decisions and, if
    a language model played, its messages. ``steps.arrow`` has every step with what was seen. Some
    groups at a time are in memory, however large the batch is.
    """
    groups = trajectories = steps = 0
    with (
        atomic_path(folder / GROUPS) as told,
        atomic_path(folder / STEPS) as path,
        told.open("w", encoding="utf-8") as lines,
        ipc.new_file(path, SCHEMA) as writer,
    ):
        for group in store.stream_batch(batch_id):
            lines.write(json.dumps(_group(store, group), allow_nan=False) + "\n")
            for one in group.trajectories:
                writer.write_table(_steps(group.group_key, one))
                steps += len(one.steps)
            groups, trajectories = groups + 1, trajectories + len(group.trajectories)
    return Export(folder, groups, trajectories, steps)


def _group(store: TrajectoryStore, group: TrajectoryGroup) -> dict[str, Any]:
    first = group.trajectories[0].row
    calls = store.calls_of([one.row.trajectory_id for one in group.trajectories])
    return {
        "group_id": group.group_key,
        "scenario_id": first.scenario_id,
        "snapshot_id": first.snapshot_id,
        "policy_version": first.agent_version,
        "trajectories": [
            _trajectory(one, calls[one.row.trajectory_id]) for one in group.trajectories
        ],
    }


def _trajectory(one: StoredTrajectory, calls: Iterable[LlmCall]) -> dict[str, Any]:
    row, steps = one.row, one.steps
    return {
        "trajectory_id": row.trajectory_id,
        "agent": row.agent,
        "reward": row.total_reward,
        "judge_score": row.judge_score,
        "actions": steps.action.tolist(),
        "rewards": steps.reward.tolist(),
        "log_probs": [None if value != value else value for value in steps.log_prob.tolist()],
        "messages": list(_messages(calls)),
        "metrics": row.metrics,
    }


def _messages(calls: Iterable[LlmCall]) -> Iterator[dict[str, str]]:
    for call in calls:
        said = (
            ("system", call.system_prompt),
            ("user", call.user_prompt),
            ("assistant", call.response),
        )
        yield from ({"role": role, "content": text} for role, text in said if text)


def _steps(group_key: str, one: StoredTrajectory) -> Any:
    steps = one.steps
    seen = pa.nulls(len(steps)) if steps.observation is None else steps.observation.tolist()
    return pa.table(
        {
            "group_id": [group_key] * len(steps),
            "trajectory_id": [one.row.trajectory_id] * len(steps),
            "t": steps.t,
            "ts": steps.ts,
            "observation": pa.array(seen, NUMBERS),
            "action": pa.array(steps.action.tolist(), NUMBERS),
            "reward": steps.reward,
            "log_prob": pa.array(steps.log_prob, from_pandas=True),
        },
        schema=SCHEMA,
    )
