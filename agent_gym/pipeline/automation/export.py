"""A batch as files for a trainer elsewhere: groups as JSON lines, steps as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from agent_gym.core.files import atomic_path, write_text
from agent_gym.rollouts.database import (
    StoredTrajectory,
    TrajectoryBatch,
    TrajectoryGroup,
    TrajectoryStore,
)

GROUPS, STEPS = "groups.jsonl", "steps.arrow"


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
    a language model played, its messages. ``steps.arrow`` has every step with what was seen.
    """
    batch = store.read_batch(batch_id)
    lines = [json.dumps(_group(store, group), allow_nan=False) for group in batch.groups]
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / GROUPS, "".join(line + "\n" for line in lines))
    table = _table(batch)
    with atomic_path(folder / STEPS) as path, ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return Export(folder, len(batch.groups), len(batch.ids), table.num_rows)


def _group(store: TrajectoryStore, group: TrajectoryGroup) -> dict[str, Any]:
    first = group.trajectories[0].row
    return {
        "group_id": group.group_key,
        "scenario_id": first.scenario_id,
        "snapshot_id": first.snapshot_id,
        "policy_version": first.agent_version,
        "trajectories": [_trajectory(store, one) for one in group.trajectories],
    }


def _trajectory(store: TrajectoryStore, one: StoredTrajectory) -> dict[str, Any]:
    row, steps = one.row, one.steps
    return {
        "trajectory_id": row.trajectory_id,
        "agent": row.agent,
        "reward": row.total_reward,
        "judge_score": row.judge_score,
        "actions": steps.action.tolist(),
        "rewards": steps.reward.tolist(),
        "log_probs": [None if value != value else value for value in steps.log_prob.tolist()],
        "messages": list(_messages(store, row.trajectory_id)),
        "metrics": row.metrics,
    }


def _messages(store: TrajectoryStore, trajectory_id: str) -> Iterator[dict[str, str]]:
    for call in store.calls(trajectory_id):
        said = (
            ("system", call.system_prompt),
            ("user", call.user_prompt),
            ("assistant", call.response),
        )
        yield from ({"role": role, "content": text} for role, text in said if text)


def _table(batch: TrajectoryBatch) -> Any:
    members = [(group, one) for group in batch.groups for one in group.trajectories]
    return pa.concat_tables([_steps(group.group_key, one) for group, one in members])


def _steps(group_key: str, one: StoredTrajectory) -> Any:
    steps = one.steps
    seen = pa.nulls(len(steps)) if steps.observation is None else steps.observation.tolist()
    return pa.table(
        {
            "group_id": [group_key] * len(steps),
            "trajectory_id": [one.row.trajectory_id] * len(steps),
            "t": steps.t,
            "ts": steps.ts,
            "observation": pa.array(seen, pa.list_(pa.float64())),
            "action": pa.array(steps.action.tolist(), pa.list_(pa.float64())),
            "reward": steps.reward,
            "log_prob": pa.array(steps.log_prob, from_pandas=True),
        }
    )
