"""What judges said: one row for each judge, group and trajectory, never one score for an agent."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select, update

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.outbox import insert_new, table_of
from agent_gym.rollouts.database.records import JudgmentRecord
from agent_gym.rollouts.database.tables import RewardJudgment, Trajectory


class Judgments:
    """The judgments of a store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, judgments: Iterable[JudgmentRecord]) -> None:
        """Keep judgments; the newest one becomes the score of its trajectory.

        The same judgment again (same judge, version, group and trajectory) changes nothing.
        """
        said = {judgment_id(one): one for one in judgments}
        now = self._clock.now_ns()
        with self._database.writing() as connection:
            known = set(
                connection.scalars(
                    select(RewardJudgment.judgment_id).where(
                        RewardJudgment.judgment_id.in_(list(said))
                    )
                )
            )
            new = {name: one for name, one in said.items() if name not in known}
            _refuse_strangers(connection, {one.trajectory_id for one in new.values()})
            rows = [
                one.model_dump() | {"judgment_id": name, "created_ns": now}
                for name, one in new.items()
            ]
            insert_new(connection, RewardJudgment, rows, "judgment_id")
            if rows:
                connection.execute(
                    update(table_of(Trajectory))
                    .where(Trajectory.trajectory_id == bindparam("named"))
                    .values(
                        judge_score=bindparam("score"),
                        judge_reasoning=bindparam("reason"),
                        judged_ns=now,
                    ),
                    [
                        {
                            "named": one.trajectory_id,
                            "score": one.overall_score,
                            "reason": one.reasoning,
                        }
                        for one in new.values()
                    ],
                )

    def of(self, trajectory_id: str) -> tuple[RewardJudgment, ...]:
        """Return what was said of a trajectory, oldest first."""
        chosen = select(RewardJudgment).where(RewardJudgment.trajectory_id == trajectory_id)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen.order_by(RewardJudgment.id)))


def judgment_id(one: JudgmentRecord) -> str:
    """Return the id of a judgment: who judged what, in which group."""
    return fingerprint([one.judge_model, one.judge_version, one.group_id, one.trajectory_id])


def _refuse_strangers(connection: Connection, ids: set[str]) -> None:
    found = connection.scalars(
        select(Trajectory.trajectory_id).where(Trajectory.trajectory_id.in_(ids))
    )
    strangers = ids.difference(found)
    if strangers:
        raise ConfigError("there is no such trajectory", found=min(strangers))
