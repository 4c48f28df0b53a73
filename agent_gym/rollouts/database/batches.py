"""Claiming trajectories to train on: exactly the members of a batch are marked as used.

A claim is one transaction, and one claim happens at a time, so two never take the same trajectory.
A batch has a name that the caller chooses; asking for it again gives the same batch, whatever was
cut short in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from pydantic import Field
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.orm import Session

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.model_tables import (
    BatchStatus,
    TrainingBatch,
    TrainingBatchMember,
)
from agent_gym.rollouts.database.query import TrajectoryFilter
from agent_gym.rollouts.database.records import Plain, Words
from agent_gym.rollouts.database.tables import Trajectory

CLAIM_LOCK = 7_205_002
FINAL = ("completed", "failed")
IDS_AT_ONCE = 10_000


class BatchRequest(Config):
    """What a batch is to be made of.

    Only trainable trajectories that no batch holds are taken, whole groups at a time, the groups
    that were recorded last first.
    """

    batch_id: Words = Field(min_length=1)
    chosen: TrajectoryFilter = TrajectoryFilter()
    min_group_size: int = Field(default=2, ge=2, description="a lone trajectory teaches nothing")
    max_group_size: int | None = Field(default=None, ge=2, description="the newest of a group")
    min_groups: int = Field(default=1, ge=1)
    max_groups: int | None = Field(default=None, ge=1)
    log_probs: bool = Field(default=True, description="only those with every log-probability")
    dropped_before: bool = Field(
        default=False, description="also those that an earlier training left out"
    )
    scenario_id: Words | None = None
    base_model: Words | None = None
    details: Plain = Field(default_factory=dict)


class TrainingBatches:
    """The batches of a store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def claim(self, request: BatchRequest) -> TrainingBatch | None:
        """Take a batch; None if there is not enough to make one.

        If there is a batch of this name already, that one is returned as it is.
        """
        with self._database.writing() as connection:
            self._database.hold(connection, CLAIM_LOCK)
            if not _exists(connection, request.batch_id):
                members = _choose(connection, request)
                if members is None:
                    return None
                self._add(connection, request, members)
        return self.get(request.batch_id)

    def get(self, batch_id: str) -> TrainingBatch:
        """Return a batch."""
        with self._database.reading() as session:
            found = session.scalar(select(TrainingBatch).where(TrainingBatch.batch_id == batch_id))
        if found is None:
            raise ConfigError("there is no such batch", found=batch_id)
        return found

    def newest(
        self, status: BatchStatus | None = None, *, limit: int = 50
    ) -> tuple[TrainingBatch, ...]:
        """Return the batches that were claimed last, newest first."""
        chosen = select(TrainingBatch).order_by(TrainingBatch.id.desc()).limit(limit)
        if status is not None:
            chosen = chosen.where(TrainingBatch.status == status)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen))

    def members(self, batch_id: str) -> tuple[TrainingBatchMember, ...]:
        """Return who is in a batch and what became of each, in order."""
        with self._database.reading() as session:
            return _members(session, batch_id)

    def ids(self, batch_id: str) -> tuple[str, ...]:
        """Return the ids of the members that the batch holds: exactly those marked as used."""
        held = ("claimed", "trained")
        return tuple(m.trajectory_id for m in self.members(batch_id) if m.outcome in held)

    def set_status(self, batch_id: str, status: BatchStatus) -> None:
        """Say how far a batch has come; the two ends have calls of their own."""
        if status in FINAL:
            raise ConfigError("a batch ends by complete() or release()", found=status)
        now = self._clock.now_ns()
        values = {"status": status, "started_ns": func.coalesce(TrainingBatch.started_ns, now)}
        with self._database.writing() as connection:
            _refuse_ended(connection, batch_id)
            _change(connection, batch_id, values)

    def complete(
        self,
        batch_id: str,
        trained: Sequence[str],
        *,
        model_version: str | None = None,
        training_loss: float | None = None,
        policy_improvement: float | None = None,
    ) -> None:
        """End a batch: what was trained on stays used, the rest of the members goes back.

        Doing it again with the same ids changes nothing.
        """
        values = {
            "status": "completed",
            "model_version": model_version,
            "training_loss": training_loss,
            "policy_improvement": policy_improvement,
            "completed_ns": self._clock.now_ns(),
        }
        with self._database.writing() as connection:
            status, held = _state(connection, batch_id)
            strangers = set(trained) - held
            if strangers:
                raise StoreError(
                    "a training used trajectories that its batch does not hold",
                    where=batch_id,
                    found=sorted(strangers)[0],
                    expected="members of the batch",
                )
            if status == "completed" and set(trained) == held:
                return
            if status in FINAL:
                raise _ended(batch_id, status)
            _mark(connection, batch_id, trained, "trained")
            _give_back(connection, batch_id, held - set(trained), "dropped")
            _change(connection, batch_id, values)

    def release(self, batch_id: str, error: str) -> None:
        """End a batch that came to nothing: all members go back. Doing it again changes nothing."""
        values = {"status": "failed", "error": error, "completed_ns": self._clock.now_ns()}
        with self._database.writing() as connection:
            status, held = _state(connection, batch_id)
            if status == "failed":
                return
            if status == "completed":
                raise _ended(batch_id, status)
            _give_back(connection, batch_id, held, "released")
            _change(connection, batch_id, values)

    def _add(
        self, connection: Connection, request: BatchRequest, members: list[Trajectory]
    ) -> None:
        ids = [row.trajectory_id for row in members]
        told = {"scenario_id", "base_model", "batch_id", "details"}
        batch = request.model_dump(include=told) | {
            "status": "pending",
            "n_trajectories": len(members),
            "n_groups": len({row.group_key for row in members}),
            "data_hash": fingerprint([[row.trajectory_id, row.steps_hash] for row in members]),
            "created_ns": self._clock.now_ns(),
        }
        connection.execute(insert(TrainingBatch), [batch])
        rows = [
            {
                "batch_id": request.batch_id,
                "trajectory_id": row.trajectory_id,
                "position": position,
                "group_key": row.group_key,
                "outcome": "claimed",
            }
            for position, row in enumerate(members)
        ]
        connection.execute(insert(TrainingBatchMember), rows)
        taken = 0
        for some in _parts(ids):
            free = (Trajectory.trajectory_id.in_(some), ~Trajectory.used_in_training)
            used = {"used_in_training": True, "trained_in_batch": request.batch_id}
            taken += connection.execute(update(Trajectory).where(*free).values(used)).rowcount
        if taken != len(ids):
            raise StoreError(
                "a trajectory was taken by another batch", found=taken, expected=len(ids)
            )


def _choose(connection: Connection, request: BatchRequest) -> list[Trajectory] | None:
    """Return the members of a new batch, group by group; None if there are too few groups."""
    row = Trajectory
    conditions = [*request.chosen.conditions(), row.trainable, ~row.used_in_training]
    if request.log_probs:
        conditions.append(row.has_log_probs)
    if not request.dropped_before:
        dropped = select(TrainingBatchMember.trajectory_id).where(
            TrainingBatchMember.trajectory_id == row.trajectory_id,
            TrainingBatchMember.outcome == "dropped",
        )
        conditions.append(~dropped.exists())
    groups = connection.scalars(
        select(row.group_key)
        .where(*conditions)
        .group_by(row.group_key)
        .having(func.count(row.id) >= request.min_group_size)
        .order_by(func.max(row.id).desc())
        .limit(request.max_groups)
    ).all()
    if len(groups) < request.min_groups:
        return None
    place = {key: i for i, key in enumerate(groups)}
    found: list[Trajectory] = []
    with Session(connection, expire_on_commit=False) as session:
        for some in _parts(groups):
            found += session.scalars(select(row).where(row.group_key.in_(some), *conditions))
        session.expunge_all()
    found.sort(key=lambda one: (place[one.group_key or ""], -one.id))
    return [
        one
        for _, alike in groupby(found, key=lambda one: one.group_key)
        for one in list(alike)[: request.max_group_size]
    ]


def _exists(connection: Connection, batch_id: str) -> bool:
    found = connection.scalar(select(TrainingBatch.id).where(TrainingBatch.batch_id == batch_id))
    return found is not None


def _members(session: Session, batch_id: str) -> tuple[TrainingBatchMember, ...]:
    chosen = select(TrainingBatchMember).where(TrainingBatchMember.batch_id == batch_id)
    return tuple(session.scalars(chosen.order_by(TrainingBatchMember.position)))


def _state(connection: Connection, batch_id: str) -> tuple[str, set[str]]:
    """Return the status of a batch and the ids that it holds."""
    status = connection.scalar(
        select(TrainingBatch.status).where(TrainingBatch.batch_id == batch_id).with_for_update()
    )
    if status is None:
        raise ConfigError("there is no such batch", found=batch_id)
    held = connection.scalars(
        select(TrainingBatchMember.trajectory_id).where(
            TrainingBatchMember.batch_id == batch_id,
            TrainingBatchMember.outcome.in_(("claimed", "trained")),
        )
    )
    return status, set(held)


def _refuse_ended(connection: Connection, batch_id: str) -> None:
    status, _ = _state(connection, batch_id)
    if status in FINAL:
        raise _ended(batch_id, status)


def _change(connection: Connection, batch_id: str, values: dict[str, Any]) -> None:
    chosen = update(TrainingBatch).where(TrainingBatch.batch_id == batch_id)
    connection.execute(chosen.values(values))


def _mark(connection: Connection, batch_id: str, ids: Iterable[str], outcome: str) -> None:
    member = TrainingBatchMember
    for some in _parts(sorted(ids)):
        mine = (member.batch_id == batch_id, member.trajectory_id.in_(some))
        connection.execute(update(member).where(*mine).values(outcome=outcome))


def _give_back(connection: Connection, batch_id: str, ids: Iterable[str], outcome: str) -> None:
    """Let other batches have these trajectories."""
    freed = sorted(ids)
    _mark(connection, batch_id, freed, outcome)
    for some in _parts(freed):
        mine = (Trajectory.trained_in_batch == batch_id, Trajectory.trajectory_id.in_(some))
        unused = {"used_in_training": False, "trained_in_batch": None}
        connection.execute(update(Trajectory).where(*mine).values(unused))


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Cut a long list into pieces that a statement can hold."""
    return (values[i : i + IDS_AT_ONCE] for i in range(0, len(values), IDS_AT_ONCE))


def _ended(batch_id: str, status: str) -> StoreError:
    return StoreError("the batch has ended already", where=batch_id, found=status)
