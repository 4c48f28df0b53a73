"""Retention: old trajectories go with all that belongs to them, and then the files nobody names.

What a batch holds stays: it says what a model was made from. Rows go some at a time, in short
transactions, so recorders are not held up. Steps lie in files, so most of what goes is unlinked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, delete, exists, func, select

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.registry import Config
from agent_gym.rollouts.database.batches import CLAIM_LOCK
from agent_gym.rollouts.database.keeping.place import Steps, Watch, files_held, unwatched
from agent_gym.rollouts.database.model_tables import TrainingBatchMember
from agent_gym.rollouts.database.store import TrajectoryStore
from agent_gym.rollouts.database.tables import LlmCall, RewardJudgment, StepFile, Trajectory

ROWS_AT_ONCE = 500
HELD = ("claimed", "trained")
NEW_FILE_NS = 24 * HOUR_NS


class RetentionRules(Config):
    """What is old enough to go."""

    older_than: float = Field(
        default=90.0, ge=0.0, le=36_500.0, description="days since a trajectory was recorded"
    )
    keep_judged: bool = Field(default=False, description="trajectories that were judged stay")
    keep_evaluation: bool = Field(default=True, description="those of evaluations stay")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What has gone, or would go.

    Attributes:
        trajectories: Trajectories.
        calls: Calls of models in them.
        judgments: What judges said of them.
        step_files: Files that no row names any more.
        bytes: Of these files.
        held: Trajectories that are as old, and stay because a batch holds them.
    """

    trajectories: int = 0
    calls: int = 0
    judgments: int = 0
    step_files: int = 0
    bytes: int = 0
    held: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def plan_prune(store: TrajectoryStore, rules: RetentionRules) -> Pruned:
    """Count what would go; nothing is touched."""
    goes = _goes(rules, store.clock.now_ns())
    old = _old(rules, store.clock.now_ns())
    chosen = select(Trajectory.trajectory_id).where(*goes)
    stays = select(Trajectory.step_file).where(~_all(goes), Trajectory.step_file.is_not(None))
    with store.database.reading() as session:

        def number(table: Any, *where: ColumnElement[bool]) -> int:
            return session.scalar(select(func.count()).select_from(table).where(*where)) or 0

        free = StepFile.file_hash.not_in(stays)
        n_bytes = session.scalar(select(func.coalesce(func.sum(StepFile.n_bytes), 0)).where(free))
        gone = number(Trajectory, *goes)
        return Pruned(
            trajectories=gone,
            calls=number(LlmCall, LlmCall.trajectory_id.in_(chosen)),
            judgments=number(RewardJudgment, RewardJudgment.trajectory_id.in_(chosen)),
            step_files=number(StepFile, free),
            bytes=int(n_bytes or 0),
            held=number(Trajectory, *old) - gone,
        )


def prune(store: TrajectoryStore, rules: RetentionRules, watch: Watch = unwatched) -> Pruned:
    """Remove old trajectories, some at a time, and then the files that nobody names.

    A kill leaves whole trajectories, and at worst files without rows; the next time takes those.
    """
    planned = plan_prune(store, rules)
    told = Steps(watch, "trajectories", planned.trajectories)
    gone = [0, 0, 0]
    with files_held(store.folder, alone=True):
        goes = _goes(rules, store.clock.now_ns())
        while True:
            with store.database.writing() as connection:
                store.database.hold(connection, CLAIM_LOCK)  # nobody claims what is about to go
                found = _remove_some(connection, goes)
            if not found[0]:
                break
            gone = [total + n for total, n in zip(gone, found, strict=True)]
            told(found[0])
        files, n_bytes = _remove_files(store, watch)
    trajectories, calls, judgments = gone
    return Pruned(trajectories, calls, judgments, files, n_bytes, planned.held)


def _old(rules: RetentionRules, now_ns: int) -> list[ColumnElement[bool]]:
    row, border = Trajectory, now_ns - round(rules.older_than * DAY_NS)
    wanted: list[ColumnElement[bool]] = [row.created_ns < border]
    if rules.keep_judged:
        wanted.append(row.judged_ns.is_(None))
    if rules.keep_evaluation:
        wanted.append(row.purpose != "evaluation")
    return wanted


def _goes(rules: RetentionRules, now_ns: int) -> list[ColumnElement[bool]]:
    held = select(TrainingBatchMember.batch_id).where(
        TrainingBatchMember.trajectory_id == Trajectory.trajectory_id,
        TrainingBatchMember.outcome.in_(HELD),
    )
    return [*_old(rules, now_ns), ~Trajectory.used_in_training, ~exists(held)]


def _all(conditions: Sequence[ColumnElement[bool]]) -> ColumnElement[bool]:
    whole = conditions[0]
    for each in conditions[1:]:
        whole = whole & each
    return whole


def _remove_some(connection: Connection, goes: list[ColumnElement[bool]]) -> list[int]:
    """Remove some trajectories; return how many, and how many calls and judgments."""
    chosen = select(Trajectory.trajectory_id).where(*goes).order_by(Trajectory.created_ns)
    ids = connection.scalars(chosen.limit(ROWS_AT_ONCE)).all()
    if not ids:
        return [0, 0, 0]
    counts = []
    for model in (LlmCall, RewardJudgment, TrainingBatchMember):
        mine = delete(model).where(model.trajectory_id.in_(ids))
        counts.append(connection.execute(mine).rowcount)
    connection.execute(delete(Trajectory).where(Trajectory.trajectory_id.in_(ids)))
    return [len(ids), counts[0], counts[1]]


def _remove_files(store: TrajectoryStore, watch: Watch) -> tuple[int, int]:
    """Remove step files that no trajectory names, and those that no row ever named.

    Files on a remote shelf lose their rows alone: `blobs gc` sweeps them, after a time of grace.
    """
    here = not store.files.blobs.is_remote
    named = select(Trajectory.id).where(Trajectory.step_file == StepFile.file_hash)
    waited_for = store.outbox.step_files()
    with store.database.reading() as session:
        known = set(session.scalars(select(StepFile.file_hash)))
        free = set(session.scalars(select(StepFile.file_hash).where(~exists(named))))
    strays = store.files.names() - known if here else set()
    goes = sorted(name for name in (free | strays) - waited_for if not _is_new(store, name))
    told, removed, n_bytes = Steps(watch, "step files", len(goes)), 0, 0
    for name in goes:
        with store.database.writing() as connection:
            mine = delete(StepFile).where(StepFile.file_hash == name, ~exists(named))
            gone = connection.execute(mine).rowcount
        if here and (gone or name in strays):
            path = store.files.path(name)
            n_bytes += path.stat().st_size if path.is_file() else 0
            path.unlink(missing_ok=True)
            removed += 1
        told()
    return removed, n_bytes


def _is_new(store: TrajectoryStore, name: str) -> bool:
    """Say whether a file was written, or met again, so lately that its rows may be under way."""
    try:
        changed = store.files.path(name).stat().st_mtime_ns
    except FileNotFoundError:
        return False
    return store.clock.now_ns() - changed < NEW_FILE_NS
