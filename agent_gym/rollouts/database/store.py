"""TrajectoryStore: the one door to everything that was recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import ColumnElement, func, select

from agent_gym.core.clock import DAY_NS, Clock, SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.files import home
from agent_gym.rollouts.blobs import open_blobs
from agent_gym.rollouts.database.agents import ServiceAgents
from agent_gym.rollouts.database.batches import TrainingBatches
from agent_gym.rollouts.database.connection import Database, DatabaseDown
from agent_gym.rollouts.database.curves import POINTS, RewardCurve, reward_curve
from agent_gym.rollouts.database.delivery import Delivery
from agent_gym.rollouts.database.events import EventLog
from agent_gym.rollouts.database.integrity import IntegrityReport, check_files, named_files
from agent_gym.rollouts.database.judgments import Judgments
from agent_gym.rollouts.database.models import Models, Outcomes
from agent_gym.rollouts.database.outbox import DeliveryReport, Document, Outbox
from agent_gym.rollouts.database.query import Order, Page, TrajectoryFilter, find_page
from agent_gym.rollouts.database.reading import (
    IDS_AT_ONCE,
    StoredTrajectory,
    TrajectoryBatch,
    TrajectoryGroup,
    batch_of,
    batched,
    read,
    read_part,
    stream_groups,
)
from agent_gym.rollouts.database.records import storable
from agent_gym.rollouts.database.schema import prepare
from agent_gym.rollouts.database.step_columns import StepColumns
from agent_gym.rollouts.database.step_files import SUFFIX, StepFiles
from agent_gym.rollouts.database.tables import LlmCall, Trajectory

DATABASE = "trajectories.db"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How much there is to learn from; judging a trajectory changes nothing but ``judged``.

    Attributes:
        total: All rows, failed and empty ones too.
        with_steps: Rows that have steps.
        trainable: Rows from which something can be learned.
        unused: Trainable rows that no batch has taken.
        judged: Rows that a judge has scored.
        groups: Groups of unused rows.
        full_groups: Those of them that are large enough.
        steps: Steps of all rows.
    """

    total: int
    with_steps: int
    trainable: int
    unused: int
    judged: int
    groups: int
    full_groups: int
    steps: int


class TrajectoryStore:
    """Trajectories in a database, their steps in files beside it.

    Attributes:
        batches: What was claimed to be trained on.
        judgments: What judges said.
        models: What came out of training, and where it serves.
        outcomes: What became of markets.
        agents: The agents of the service.
        events: What happened, never changed.
    """

    def __init__(self, database: Database, folder: Path, clock: Clock) -> None:
        self.database, self.folder, self.clock = database, folder, clock
        self.files = StepFiles(open_blobs("steps", folder / "steps", SUFFIX))
        self.outbox = Outbox(folder / "outbox")
        self._delivery = Delivery(database, self.outbox, clock)
        self.batches = TrainingBatches(database, clock)
        self.judgments = Judgments(database, clock)
        self.models = Models(database, clock)
        self.outcomes = Outcomes(database)
        self.agents = ServiceAgents(database, clock)
        self.events = EventLog(database, clock)

    @classmethod
    def open(
        cls, url: str | None = None, *, folder: Path | None = None, clock: Clock | None = None
    ) -> Self:
        """Open or make a store, and bring an older one up to date.

        If the database cannot be reached that is logged, and recordings wait in the outbox.

        Args:
            url: ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``; without it SQLite in the
                folder.
            folder: Where steps and waiting recordings lie; ``trajectories`` in the results if it is
                not given.
            clock: Tells the time.
        """
        place = (folder or home() / "trajectories").absolute()
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError("cannot write here", where=str(place), found=error.strerror) from error
        database = Database(url or f"sqlite:///{place / DATABASE}", prepare)
        store = cls(database, place, clock or SystemClock())
        try:
            database.prepare()
        except DatabaseDown as error:
            log.warning("%s", error)
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self.database.close()

    # Recording.

    def record(self, document: Document) -> bool:
        """Put rows into the database, or into the outbox while it is away; True if delivered."""
        return self._delivery.record(document)

    def deliver(self) -> DeliveryReport:
        """Bring what waits in the outbox into the database, each row once."""
        return self._delivery.deliver()

    # Finding.

    def page(
        self,
        chosen: TrajectoryFilter | None = None,
        *,
        sort: str = "id",
        descending: bool = True,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[Trajectory]:
        """Return some trajectories, and where to go on."""
        with self.database.reading() as session:
            order = Order(sort, descending)
            return find_page(session, chosen or TrajectoryFilter(), order, limit, after)

    def get(self, trajectory_id: str) -> Trajectory:
        """Return one trajectory."""
        with self.database.reading() as session:
            found = session.scalar(
                select(Trajectory).where(Trajectory.trajectory_id == storable(trajectory_id))
            )
        if found is None:
            raise ConfigError("there is no such trajectory", found=trajectory_id)
        return found

    def calls(self, trajectory_id: str) -> tuple[LlmCall, ...]:
        """Return what models were asked in a trajectory, in order."""
        with self.database.reading() as session:
            chosen = select(LlmCall).where(LlmCall.trajectory_id == storable(trajectory_id))
            return tuple(session.scalars(chosen.order_by(LlmCall.id)))

    def calls_of(self, trajectory_ids: Sequence[str]) -> dict[str, tuple[LlmCall, ...]]:
        """Return what models were asked in some trajectories, by trajectory, in order."""
        found: dict[str, list[LlmCall]] = {name: [] for name in trajectory_ids}
        with self.database.reading() as session:
            for some in batched(trajectory_ids, IDS_AT_ONCE):
                chosen = select(LlmCall).where(LlmCall.trajectory_id.in_(some))
                for call in session.scalars(chosen.order_by(LlmCall.id)):
                    found[call.trajectory_id].append(call)
        return {name: tuple(calls) for name, calls in found.items()}

    def count(self, chosen: TrajectoryFilter | None = None, *, at_most: int | None = None) -> int:
        """Return how many trajectories there are.

        Args:
            chosen: Which; all if not given.
            at_most: Stop counting there, for who only wants to know how many pages there could be.
        """
        conditions = (chosen or TrajectoryFilter()).conditions()
        counted = select(func.count(Trajectory.id)).where(*conditions)
        if at_most is not None:
            some = select(Trajectory.id).where(*conditions).limit(at_most).subquery()
            counted = select(func.count()).select_from(some)
        with self.database.reading() as session:
            return session.scalar(counted) or 0

    def counts(
        self, chosen: TrajectoryFilter | None = None, *, min_group_size: int = 2
    ) -> StoreCounts:
        """Return how much there is to learn from."""
        row = Trajectory
        conditions = (chosen or TrajectoryFilter()).conditions()
        unused = row.trainable & ~row.used_in_training
        with self.database.reading() as session:
            found = session.execute(
                select(
                    func.count(row.id),
                    _number_of(row.n_steps > 0),
                    _number_of(row.trainable.is_(True)),
                    _number_of(unused),
                    _number_of(row.judged_ns.is_not(None)),
                    func.coalesce(func.sum(row.n_steps), 0),
                ).where(*conditions)
            ).one()
            sizes = (
                select(func.count(row.id).label("size"))
                .where(unused, *conditions)
                .group_by(row.group_key)
                .subquery()
            )
            groups, full = session.execute(
                select(func.count(), _number_of(sizes.c.size >= min_group_size)).select_from(sizes)
            ).one()
        total, with_steps, trainable, free, judged, steps = found
        return StoreCounts(total, with_steps, trainable, free, judged, groups, full, int(steps))

    def recorded_per_day(self, now_ns: int, days: int) -> tuple[int, ...]:
        """Return how many trajectories came in on each of the last days, the oldest first."""
        begin = now_ns - days * DAY_NS
        day = (Trajectory.created_ns - begin) // DAY_NS
        with self.database.reading() as session:
            rows = session.execute(
                select(day, func.count(Trajectory.id))
                .where(Trajectory.created_ns >= begin, Trajectory.created_ns < now_ns)
                .group_by(day)
            ).all()
        found = {int(number): int(count) for number, count in rows}
        return tuple(found.get(number, 0) for number in range(days))

    # Reading.

    def steps_part(self, trajectory_id: str, first: int, count: int) -> StepColumns:
        """Return some steps of one trajectory; the others are not read."""
        return read_part(self.database, self.files, trajectory_id, first, count)

    def reward_curve(self, trajectory_id: str, points: int = POINTS) -> RewardCurve:
        """Return the reward so far over a trajectory of any length, in about so many points."""
        return reward_curve(self.files, self.get(trajectory_id), points)

    def steps(self, trajectory_id: str) -> StepColumns:
        """Return the steps of one trajectory."""
        return self.read([trajectory_id])[0].steps

    def read(self, trajectory_ids: Sequence[str]) -> list[StoredTrajectory]:
        """Return trajectories with their steps, in the order of their ids."""
        return read(self.database, self.files, trajectory_ids)

    def read_batch(self, batch_id: str) -> TrajectoryBatch:
        """Return a batch with the steps of all its members, group by group."""
        return batch_of(self.database, self.files, batch_id)

    def stream_batch(self, batch_id: str) -> Iterator[TrajectoryGroup]:
        """Yield the groups of a batch one by one; no more than some of them are in memory."""
        return stream_groups(self.database, self.files, batch_id)

    def check(self) -> IntegrityReport:
        """Check every step file against its name; a damaged one is set aside."""
        return check_files(self.database, self.files)

    def named_files(self) -> set[str]:
        """Return the hashes of all step files that a row, or a recording that waits, names."""
        return named_files(self.database, self.outbox)


def _number_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count().filter(condition)
