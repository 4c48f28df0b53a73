"""One transaction for every change of the registry, and the hash chain of what has happened.

Whoever changes something holds the registry alone until the change is kept or dropped as a whole: a
process that is killed leaves the old state, two at once follow one another. Every change is written
into the history in the same transaction, each entry with the hash of the one before; the pointer
has the hash of the last, so an entry that was changed, added or cut off is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, select

from agent_gym.core.clock import Clock
from agent_gym.pipeline.registry.tables import HISTORY, POINTER, create, exist
from agent_gym.rollouts.database.connection import Database

LOCK = 7_205_061


@dataclass(slots=True)
class Pointer:
    """Who serves: the champion, the one before it, and the rollout that is watched."""

    champion: str | None
    previous: str | None
    rollout_id: int | None
    cooldown_until_ns: int
    history_length: int
    history_hash: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Something that happened, with the hash of everything up to it."""

    position: int
    at_ns: int
    event: str
    data: dict[str, Any]
    hash: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(slots=True)
class Change:
    """A change that is being made; what it says goes into the history with it."""

    connection: Connection
    pointer: Pointer
    at_ns: int
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def say(self, event: str, **data: Any) -> None:
        """Write an entry of the history when the change is kept."""
        self.said.append((event, data))


class Ledger:
    """The registry's tables in a database.

    Attributes:
        told: Called with the length and the last hash of the history, each time it has grown.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self.told: Callable[[int, str], None] = lambda _length, _hash: None
        with database.reading() as session:
            there = exist(session.connection())
        if not there:
            with database.writing() as connection:
                database.hold(connection, LOCK)
                create(connection)

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Yield the state to be changed; it is kept only if the block ends well."""
        with self._database.writing() as connection:
            self._database.hold(connection, LOCK)
            made = Change(connection, _pointer(connection), self._clock.now_ns())
            before = asdict(made.pointer)
            yield made
            for event, data in made.said:
                _append(made, event, data)
            if asdict(made.pointer) != before:
                connection.execute(POINTER.update().values(asdict(made.pointer)))
        if made.said:
            self.told(made.pointer.history_length, made.pointer.history_hash)

    @contextmanager
    def trial(self) -> Iterator[Change]:
        """Yield the state as a change would find it now; nothing that is done to it is kept."""
        with self.look() as (connection, pointer):
            yield Change(connection, pointer, self._clock.now_ns())

    @contextmanager
    def look(self) -> Iterator[tuple[Connection, Pointer]]:
        """Yield one state of everything, to be read."""
        with self._database.reading() as session:
            connection = session.connection()
            yield connection, _pointer(connection)

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return everything that has happened, oldest first."""
        with self.look() as (connection, _):
            return tuple(_entry(row) for row in _rows(connection))

    def check_history(self) -> tuple[str, ...]:
        """Return what is wrong with the history, in words; nothing if it is whole."""
        with self.look() as (connection, pointer):
            last, found = "", []
            rows = _rows(connection)
            for place, row in enumerate(rows, start=1):
                if row.position != place:
                    found.append(f"entry {place} is missing")
                    break
                if row.previous_hash != last or row.hash != _hash(place, last, row):
                    found.append(f"entry {place} ({row.event}) was changed")
                    break
                last = row.hash
            if not found and (pointer.history_length, pointer.history_hash) != (len(rows), last):
                found.append(f"{pointer.history_length} entries were written, {len(rows)} are left")
            return tuple(found)


def _pointer(connection: Connection) -> Pointer:
    row = connection.execute(select(POINTER)).one()
    return Pointer(
        champion=row.champion,
        previous=row.previous,
        rollout_id=row.rollout_id,
        cooldown_until_ns=row.cooldown_until_ns,
        history_length=row.history_length,
        history_hash=row.history_hash,
    )


@dataclass(frozen=True, slots=True)
class _New:
    at_ns: int
    event: str
    data: str


def _append(change: Change, event: str, data: dict[str, Any]) -> None:
    pointer = change.pointer
    text = json.dumps(data, sort_keys=True, allow_nan=False)
    position, new = pointer.history_length + 1, _New(change.at_ns, event, text)
    digest = _hash(position, pointer.history_hash, new)
    row = asdict(new) | {
        "position": position,
        "previous_hash": pointer.history_hash,
        "hash": digest,
    }
    change.connection.execute(HISTORY.insert().values(row))
    pointer.history_length, pointer.history_hash = position, digest


def _hash(position: int, previous: str, row: _New | Row[Any]) -> str:
    lines = (str(position), previous, str(row.at_ns), row.event, row.data)
    return sha256(json.dumps(lines).encode()).hexdigest()


def _rows(connection: Connection) -> list[Row[Any]]:
    return list(connection.execute(select(HISTORY).order_by(HISTORY.c.position)))


def _entry(row: Row[Any]) -> HistoryEntry:
    return HistoryEntry(row.position, row.at_ns, row.event, json.loads(row.data), row.hash)
