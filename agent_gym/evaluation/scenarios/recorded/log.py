"""Read the last hours of a recorded log; every row that cannot be read is accounted for."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import configure
from agent_gym.evaluation.plain_file import read_yaml
from agent_gym.evaluation.scenarios.recorded.cells import UnreadableError, read_time
from agent_gym.evaluation.scenarios.recorded.places import Place, find_places
from agent_gym.evaluation.scenarios.recorded.records import (
    Record,
    RecordedFill,
    RecordedLog,
    RecordedOrder,
    RecordedProtection,
    RecordedSignal,
    UnreadRow,
)
from agent_gym.evaluation.scenarios.recorded.rows import READERS, Cells, check_names
from agent_gym.evaluation.scenarios.recorded.source import (
    STREAMS,
    LogNames,
    RecordedSource,
    Stream,
)
from agent_gym.evaluation.scenarios.recorded.tables import Row, read_rows, streams_of

KEPT_LOGS = 4
R = TypeVar("R", RecordedSignal, RecordedOrder, RecordedFill, RecordedProtection)


def read_log(source: RecordedSource, hours: float | None = None) -> RecordedLog:
    """Read a log; it is kept in memory while its files stay as they are.

    Args:
        source: Where the log is and how it names things.
        hours: The window, for a source that names none itself.
    """
    window = source.hours if source.hours is not None else hours
    if window is not None and not window > 0.0:
        raise ConfigError("a window must be longer than nothing", where="hours", found=window)
    names = _load_names(source.mapping)
    places = find_places(Path(source.path), source.format, names, source.max_bytes)
    return _read(source, names.model_dump_json(), places, window)


def _load_names(mapping: str | None) -> LogNames:
    if mapping is None:
        return LogNames()
    told = read_yaml(Path(mapping), "the mapping file cannot be read")
    if not isinstance(told, dict):
        raise ConfigError("a mapping file holds names", where=mapping, found=type(told).__name__)
    names = configure(LogNames, told, where=mapping)
    check_names(names)
    return names


@lru_cache(maxsize=KEPT_LOGS)
def _read(
    source: RecordedSource, told: str, places: tuple[Place, ...], hours: float | None
) -> RecordedLog:
    names = LogNames.model_validate_json(told)
    reading = _Reading(source, names)
    for place in places:
        reading.present.update(streams_of(place, names))
        for stream, number, row in read_rows(place, names, source):
            reading.take(stream, number, row)
    reading.check()
    return reading.finish(hours)


class _Reading:
    """What has been read so far."""

    def __init__(self, source: RecordedSource, names: LogNames) -> None:
        self.present: set[Stream] = set()
        self._source, self._names = source, names
        self._rows: dict[Stream, list[Any]] = {stream: [] for stream in STREAMS}
        self._cells = {stream: Cells(stream, names) for stream in STREAMS}
        self._unread: Counter[str] = Counter()
        self._named: list[UnreadRow] = []
        self._total = 0

    def take(self, stream: Stream | None, number: int, row: Row) -> None:
        """Read one row, or note why it cannot be read."""
        self._total += 1
        if self._total > self._source.max_rows:
            raise DataError(
                "the log has more rows than allowed",
                where=self._source.path,
                expected=f"at most {self._source.max_rows:,}",
                remedy="Cut the log, or raise max_rows",
            )
        if stream is not None:
            self.present.add(stream)
        try:
            self._rows_of(stream).append(self._record(stream, row))
        except UnreadableError as error:
            self._unread[stream or "unknown"] += 1
            if len(self._named) < self._source.max_named:
                self._named.append(UnreadRow(stream or "unknown", number, error.column, error.why))

    def _rows_of(self, stream: Stream | None) -> list[Any]:
        return [] if stream is None else self._rows[stream]

    def _record(self, stream: Stream | None, row: Row) -> Record:
        if stream is None or isinstance(row, str):
            raise UnreadableError("row", row if isinstance(row, str) else "of no stream")
        cells = self._cells[stream]
        cells.row = row
        return READERS[stream](cells)

    def check(self) -> None:
        """Refuse a log of which too little could be read to speak of it."""
        unread = self._unread.total()
        if not self.present:
            raise DataError(
                "the log holds none of the streams",
                where=self._source.path,
                expected=", ".join(self._names.table(stream) for stream in STREAMS),
                remedy="Name its tables in a mapping file",
            )
        if self._total == unread:
            raise DataError(
                "the log holds no row that can be read",
                where=self._source.path,
                found=self._first() or "no rows",
            )
        if unread > self._source.max_unread_share * self._total:
            raise DataError(
                "too many rows of the log cannot be read",
                where=self._source.path,
                found=f"{unread:,} of {self._total:,}; {self._first()}",
                expected=f"at most {self._source.max_unread_share:.0%}",
                remedy="Name foreign columns and values in a mapping file",
            )

    def _first(self) -> str:
        return "; ".join(
            f"{row.stream} row {row.row}, {row.column}: {row.why}" for row in self._named[:3]
        )

    def finish(self, hours: float | None) -> RecordedLog:
        """Return the window of what was read, with its fingerprint."""
        times = [row.time_ns for rows in self._rows.values() for row in rows]
        until = self._source.until
        end = max(times) if until is None else _moment(until)
        start = min(times) if hours is None else end - round(hours * HOUR_NS)
        inside: dict[Stream, list[Any]] = {
            stream: sorted(
                (row for row in rows if start <= row.time_ns <= end),
                key=lambda row: (row.time_ns, msgspec.json.encode(row)),
            )
            for stream, rows in self._rows.items()
        }
        log = RecordedLog(
            tuple(inside["signals"]),
            _joined(inside["orders"]),
            tuple(inside["fills"]),
            tuple(inside["protections"]),
            tuple(stream for stream in STREAMS if stream in self.present),
            start,
            end,
            dict(sorted(self._unread.items())),
            tuple(self._named),
            "",
        )
        digest = blake2b(msgspec.json.encode(replace(log, named=())), digest_size=16)
        return replace(log, data_hash=digest.hexdigest())


def _moment(until: str) -> int:
    try:
        return read_time("until", until, "auto")
    except UnreadableError as error:
        raise ConfigError(
            "the end of the window is not a time", where="until", found=until, expected=error.why
        ) from error


def _joined(rows: list[RecordedOrder]) -> tuple[RecordedOrder, ...]:
    """Return one order an id: as it was placed, with the last status that was written of it."""
    orders: dict[str, RecordedOrder] = {}
    for row in rows:
        first = orders.get(row.order_id)
        if first is None:
            orders[row.order_id] = row
        elif row.status is not None:
            orders[row.order_id] = replace(first, status=row.status)
    return tuple(orders.values())
