"""Is every step file what was written? A damaged one is named and set aside, never believed."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sqlalchemy import select, update

from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.outbox import Outbox
from agent_gym.rollouts.database.step_files import StepFiles
from agent_gym.rollouts.database.tables import StepFile, Trajectory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """What a check has found.

    Attributes:
        checked: Files that were looked at.
        damaged: Files whose bytes have changed; they are in the folder ``damaged`` now.
        missing: Files that are gone.
        unknown: Files that no row names: left by a kill, or named by a recording that waits.
        trajectories: Ids of the trajectories whose steps can no longer be read.
    """

    checked: int
    damaged: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    trajectories: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every step of every trajectory can be read."""
        return not (self.damaged or self.missing or self.trajectories)


def named_files(database: Database, outbox: Outbox) -> set[str]:
    """Return the hashes of all step files that a row, or a recording that waits, names."""
    with database.reading() as session:
        return outbox.step_files() | set(session.scalars(select(StepFile.file_hash)))


def check_files(database: Database, files: StepFiles) -> IntegrityReport:
    """Check all files; the trajectories of a bad one are no longer trainable."""
    with database.reading() as session:
        rows = session.execute(select(StepFile.file_hash, StepFile.state))
        known = {row.file_hash: row.state for row in rows}
    found = {file_hash: files.state(file_hash) for file_hash in known}
    for file_hash, state in found.items():
        if state == "missing" and known[file_hash] == "damaged":
            found[file_hash] = "damaged"  # set aside by an earlier check
        elif state == "damaged":
            aside = files.set_aside(file_hash)
            log.error("a step file has changed since it was written; it is now %s", aside)
    bad = [file_hash for file_hash, state in found.items() if state != "whole"]
    with database.writing() as connection:
        for file_hash in bad:
            if known[file_hash] == "whole":
                connection.execute(
                    update(StepFile)
                    .where(StepFile.file_hash == file_hash)
                    .values(state=found[file_hash])
                )
            connection.execute(
                update(Trajectory).where(Trajectory.step_file == file_hash).values(trainable=False)
            )
        lost = connection.scalars(
            select(Trajectory.trajectory_id)
            .where(Trajectory.step_file.in_(bad))
            .order_by(Trajectory.id)
        ).all()
    return IntegrityReport(
        checked=len(known),
        damaged=tuple(sorted(name for name, state in found.items() if state == "damaged")),
        missing=tuple(sorted(name for name, state in found.items() if state == "missing")),
        unknown=tuple(sorted(files.names() - set(known))),
        trajectories=tuple(lost),
    )
