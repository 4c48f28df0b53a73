"""The log of what happened: rows are added, and the database refuses to change them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select

from agent_gym.core.clock import Clock
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.model_tables import Event
from agent_gym.rollouts.database.records import plain_values, storable


def event_row(kind: str, subject: str, data: dict[str, Any], at_ns: int) -> dict[str, Any]:
    """Return the columns of an event."""
    return {
        "kind": storable(kind),
        "subject": storable(subject),
        "data": plain_values(data),
        "at_ns": at_ns,
    }


class EventLog:
    """The events of a store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def append(self, kind: str, subject: str, data: dict[str, Any] | None = None) -> int:
        """Add an event and return its id; ids grow."""
        row = event_row(kind, subject, data or {}, self._clock.now_ns())
        with self._database.writing() as connection:
            return connection.scalars(insert(Event).returning(Event.id), [row]).one()

    def after(
        self,
        last_id: int = 0,
        *,
        kind: str | None = None,
        subject: str | None = None,
        limit: int = 100,
    ) -> tuple[Event, ...]:
        """Return the events that came after one, oldest first."""
        chosen = select(Event).where(Event.id > last_id).order_by(Event.id).limit(limit)
        if kind is not None:
            chosen = chosen.where(Event.kind == kind)
        if subject is not None:
            chosen = chosen.where(Event.subject == subject)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen))
