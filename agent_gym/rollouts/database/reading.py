"""Trajectories with their steps, and batches of them, as training takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TypeVar

from sqlalchemy import select

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.model_tables import TrainingBatch, TrainingBatchMember
from agent_gym.rollouts.database.step_columns import StepColumns
from agent_gym.rollouts.database.step_files import StepFiles
from agent_gym.rollouts.database.tables import Trajectory

IDS_AT_ONCE = 10_000
GROUPS_AT_ONCE = 32

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory and its steps."""

    row: Trajectory
    steps: StepColumns


@dataclass(frozen=True, slots=True)
class TrajectoryGroup:
    """Trajectories that can be compared: same snapshot, rules and policy version."""

    group_key: str
    trajectories: tuple[StoredTrajectory, ...]


@dataclass(frozen=True, slots=True)
class TrajectoryBatch:
    """What one training learns from.

    Attributes:
        batch_id: The batch in the store.
        data_hash: Hash of the ids and of the steps behind them.
        groups: Its groups.
    """

    batch_id: str
    data_hash: str
    groups: tuple[TrajectoryGroup, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all members: exactly these are marked as used."""
        return tuple(one.row.trajectory_id for group in self.groups for one in group.trajectories)


def read(
    database: Database, files: StepFiles, trajectory_ids: Sequence[str]
) -> list[StoredTrajectory]:
    """Return trajectories with their steps; each file is opened once."""
    rows: dict[str, Trajectory] = {}
    with database.reading() as session:
        for start in range(0, len(trajectory_ids), IDS_AT_ONCE):
            some = trajectory_ids[start : start + IDS_AT_ONCE]
            found = session.scalars(select(Trajectory).where(Trajectory.trajectory_id.in_(some)))
            rows |= {row.trajectory_id: row for row in found}
    missing = [name for name in trajectory_ids if name not in rows]
    if missing:
        raise ConfigError("there is no such trajectory", found=missing[0])
    steps: dict[str, StepColumns] = {}
    placed = sorted(rows.values(), key=_place)
    for file_hash, group in groupby(placed, key=lambda row: row.step_file):
        alike = list(group)
        if file_hash is None:
            raise StoreError(
                "a trajectory has no steps",
                where=alike[0].trajectory_id,
                found=alike[0].status,
                remedy="Ask for trajectories with min_steps=1",
            )
        ranges = [(row.first_row or 0, row.n_steps) for row in alike]
        for row, columns in zip(alike, files.read(file_hash, ranges), strict=True):
            steps[row.trajectory_id] = columns
    return [StoredTrajectory(rows[name], steps[name]) for name in trajectory_ids]


def read_part(
    database: Database, files: StepFiles, trajectory_id: str, first: int, count: int
) -> StepColumns:
    """Return the steps ``first`` to ``first + count`` of a trajectory, as far as there are any."""
    with database.reading() as session:
        row = session.scalar(select(Trajectory).where(Trajectory.trajectory_id == trajectory_id))
    if row is None:
        raise ConfigError("there is no such trajectory", found=trajectory_id)
    wanted = max(0, min(count, row.n_steps - first))
    if row.step_file is None or wanted == 0 or first < 0:
        raise ConfigError(
            "a trajectory has no such steps",
            where=trajectory_id,
            found=f"{count} from step {first} on",
            expected=f"{row.n_steps} steps",
        )
    (part,) = files.read(row.step_file, [((row.first_row or 0) + first, wanted)])
    return part


def batch_of(database: Database, files: StepFiles, batch_id: str) -> TrajectoryBatch:
    """Return a batch with the steps of those members that have not been given back."""
    batch, members = _batch(database, batch_id)
    stored = iter(read(database, files, [member.trajectory_id for member in members]))
    groups = tuple(
        TrajectoryGroup(key, tuple(next(stored) for _ in alike))
        for key, alike in groupby(members, key=lambda member: member.group_key)
    )
    return TrajectoryBatch(batch_id, batch.data_hash, groups)


def stream_groups(database: Database, files: StepFiles, batch_id: str) -> Iterator[TrajectoryGroup]:
    """Yield the groups of a batch in its order; steps are read for some groups at a time."""
    _, members = _batch(database, batch_id)
    grouped = groupby(members, key=lambda member: member.group_key)
    for some in batched(((key, tuple(alike)) for key, alike in grouped), GROUPS_AT_ONCE):
        ids = [member.trajectory_id for _, alike in some for member in alike]
        stored = iter(read(database, files, ids))
        for key, alike in some:
            yield TrajectoryGroup(key, tuple(next(stored) for _ in alike))


def _batch(
    database: Database, batch_id: str
) -> tuple[TrainingBatch, Sequence[TrainingBatchMember]]:
    """Return a batch and those members that have not been given back."""
    with database.reading() as session:
        batch = session.scalar(select(TrainingBatch).where(TrainingBatch.batch_id == batch_id))
        members = session.scalars(
            select(TrainingBatchMember)
            .where(
                TrainingBatchMember.batch_id == batch_id,
                TrainingBatchMember.outcome.in_(("claimed", "trained")),
            )
            .order_by(TrainingBatchMember.position)
        ).all()
    if batch is None:
        raise ConfigError("there is no such batch", found=batch_id)
    return batch, members


def batched(values: Iterable[V], size: int) -> Iterator[list[V]]:
    """Yield lists of at most so many values.

    Example:
        >>> list(batched("abcde", 2))
        [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


def _place(row: Trajectory) -> tuple[str, int]:
    return row.step_file or "", row.first_row or 0
