"""Finding trajectories: filters by name, a short list of orders, pages that begin where one ended.

Every value goes to the database as a parameter, and every column is chosen here, so nothing that a
caller writes becomes SQL. A page is found by the key of the last row seen, which costs the same for
the first page and for the thousandth.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config, unknown
from agent_gym.rollouts.database.records import LARGEST_INTEGER, Whole, Words
from agent_gym.rollouts.database.tables import Purpose, Trajectory, TrajectoryStatus

LARGEST_PAGE = 1_000
LARGEST_FLOAT = sys.float_info.max
SORTS: dict[str, InstrumentedAttribute[Any]] = {
    "id": Trajectory.id,
    "created_ns": Trajectory.created_ns,
    "start_ns": Trajectory.start_ns,
    "n_steps": Trajectory.n_steps,
    "total_reward": Trajectory.total_reward,
    "judge_score": Trajectory.judge_score,
}
BOUNDS: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "min_steps": lambda least: Trajectory.n_steps >= least,
    "min_reward": lambda least: Trajectory.total_reward >= least,
    "max_reward": lambda most: Trajectory.total_reward <= most,
    "created_from_ns": lambda first: Trajectory.created_ns >= first,
    "created_to_ns": lambda end: Trajectory.created_ns < end,
}
R = TypeVar("R")


class TrajectoryFilter(Config):
    """Which trajectories; what is not given does not matter."""

    run_id: Words | None = None
    episode_id: Words | None = None
    agent: Words | None = None
    agent_version: Words | None = None
    snapshot_id: Words | None = None
    scenario_id: Words | None = None
    group_key: Words | None = None
    window_id: Words | None = None
    purpose: Purpose | None = None
    status: TrajectoryStatus | None = None
    trained_in_batch: Words | None = None
    seed: Whole | None = None
    trainable: bool | None = None
    has_log_probs: bool | None = None
    used_in_training: bool | None = None
    judged: bool | None = None
    min_steps: Whole | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    created_from_ns: Whole | None = None
    created_to_ns: Whole | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return what a row must fulfil; ``to`` is the first moment that does not count."""
        given = self.model_dump(exclude_none=True)
        judged = given.pop("judged", None)
        wanted = [
            BOUNDS[name](value) if name in BOUNDS else getattr(Trajectory, name) == value
            for name, value in given.items()
        ]
        if judged is not None:
            column = Trajectory.judged_ns
            wanted.append(column.is_not(None) if judged else column.is_(None))
        return wanted


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """Some rows, and where the next page begins; None after the last row."""

    rows: tuple[R, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """An order of trajectories; equal values go by id, so that it is total."""

    sort: str = "id"
    descending: bool = True

    @property
    def column(self) -> InstrumentedAttribute[Any]:
        """The column that is allowed under this name."""
        if self.sort not in SORTS:
            raise unknown("sort order", self.sort, tuple(SORTS))
        return SORTS[self.sort]

    def apply(self, statement: Select[Any], after: tuple[Any, int] | None) -> Select[Any]:
        """Put a statement in order, from behind the given row on."""
        column, row_id = self.column, Trajectory.id
        if after is not None:
            value, last = after
            further = column < value if self.descending else column > value
            later = row_id < last if self.descending else row_id > last
            statement = statement.where(or_(further, and_(column == value, later)))
            edge = column <= value if self.descending else column >= value
            statement = statement.where(edge)  # what an index can start from
        elif column is not row_id:
            statement = statement.where(column.is_not(None))
        columns = (column, row_id) if column is not row_id else (row_id,)
        return statement.order_by(*(c.desc() if self.descending else c.asc() for c in columns))


def find_page(
    session: Session, chosen: TrajectoryFilter, order: Order, limit: int, after: str | None
) -> Page[Trajectory]:
    """Return one page of trajectories; rows without a value to sort by are left out."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise ConfigError(
            "a page is too large or too small", found=limit, expected=f"1 to {LARGEST_PAGE}"
        )
    mark = fingerprint([chosen.model_dump(), order.sort, order.descending])
    key = None if after is None else _read_cursor(after, mark)
    statement = select(Trajectory).where(*chosen.conditions())
    rows = tuple(session.scalars(order.apply(statement, key).limit(limit + 1)))
    if len(rows) <= limit:
        return Page(rows)
    last = rows[limit - 1]
    value = getattr(last, order.column.key)
    return Page(rows[:limit], _write_cursor(mark, value, last.id))


def _write_cursor(mark: str, value: Any, row_id: int) -> str:
    said = json.dumps([mark, value, row_id])  # floats are written so that they read back equal
    return base64.urlsafe_b64encode(said.encode()).decode()


def _read_cursor(cursor: str, mark: str) -> tuple[Any, int]:
    """Return (value, id) of the last row seen, if the cursor belongs to this question."""
    try:
        said = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        found, value, row_id = said
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _bad_cursor("not readable") from error
    if found != mark:
        raise _bad_cursor("of another filter or order")
    if type(row_id) is not int or type(value) not in (int, float):
        raise _bad_cursor("not readable")
    if not abs(row_id) <= LARGEST_INTEGER or not abs(value) <= LARGEST_FLOAT:
        raise _bad_cursor("not readable")
    if type(value) is int and abs(value) > LARGEST_INTEGER:
        raise _bad_cursor("not readable")
    return value, row_id


def _bad_cursor(found: str) -> ConfigError:
    return ConfigError(
        "this is no place to go on from",
        where="after",
        found=found,
        remedy="Take `next` of a page with the same filter and order, or begin anew",
    )
