"""An append-only file of records, each sealed with the hash of the one before.

A line that was changed, moved or taken out breaks the chain and every later use of the file says
so. The number of lines is kept beside it, so that a shortened file is noticed too. (Who rewrites
the whole file and that number can still lie; keep a copy elsewhere if that matters.)

One writer at a time: the lock is the system's, so it ends with the process that holds it. A line
that was cut off by a crash was never acknowledged; readers pass over it and the next writer removes
it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.files import write_json

SCHEMA_VERSION = 1
FIRST = "0" * 32  # what the first record has before it
BEGIN = b'{"at_ns":'  # of every line; keys are sorted
LONGEST_LINE = 1 << 26  # bytes that are read to see whether a file is ours
LOCK_WAIT_S, LOCK_LOOK_S = 30.0, 0.05
_NOT_OURS = "Restore the file from a copy; its numbers cannot be trusted as it is"


@dataclass(frozen=True, slots=True)
class Record:
    """One line: what it is about, when it was written, and the seal."""

    index: int
    kind: str
    at_ns: int
    body: dict[str, Any]
    previous: str
    hash: str

    def line(self) -> str:
        """Return the record as it stands in the file."""
        return _canonical({name: getattr(self, name) for name in self.__slots__} | _VERSION) + "\n"


_VERSION = {"schema_version": SCHEMA_VERSION}


class Journal:
    """A chained file of records.

    Args:
        path: The JSONL file; it comes into being with the first record.
        clock: Tells when a record was written.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._head = path.with_name(path.name + ".head")

    def records(self) -> list[Record]:
        """Return all records, oldest first; a broken chain is a StoreError that names the line.

        A file that never was a journal is a ConfigError.
        """
        self._check_ours()
        # The count is read first: a writer who comes in between only makes the file longer.
        head = self._read_head()
        records = []
        previous = FIRST
        for number, text in enumerate(self._lines(), start=1):
            record = self._parse(text, number)
            expected = seal(previous, record.index, record.kind, record.at_ns, record.body)
            if (record.index, record.previous, record.hash) != (number - 1, previous, expected):
                raise self._broken(number, "a record that does not follow from the one before it")
            records.append(record)
            previous = record.hash
        if head is not None and (
            len(records) < head["records"] or records[head["records"] - 1].hash != head["hash"]
        ):
            raise self._broken(len(records), f"fewer than the {head['records']} records written")
        return records

    @contextmanager
    def writing(self) -> Iterator[Pen]:
        """Hold the lock and yield the records with a way to add to them."""
        self._check_ours()  # before the lock, which would be left beside a stranger's file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_name(self.path.name + ".lock")
            lock = os.open(beside, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise StoreError(
                "cannot write here", where=str(self.path), found=error.strerror
            ) from error
        try:
            self._wait_for(lock)
            yield Pen(self, self.records())
        finally:
            os.close(lock)

    def append(self, record: Record) -> None:
        """Write a line and make it last; only a Pen, which holds the lock, calls this."""
        try:
            with self.path.open("ab") as file:
                whole = self._whole_bytes()
                if file.tell() != whole:
                    file.truncate(whole)
                file.write(record.line().encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                "cannot write here", where=str(self.path), found=error.strerror
            ) from error
        write_json(self._head, {"records": record.index + 1, "hash": record.hash})

    def warnings(self) -> list[str]:
        """Return what is odd but not wrong: without the count a shortened file goes unnoticed."""
        if self._head.exists() or not self._lines():
            return []
        return [
            f"{self._head} is missing, so nobody can tell whether records were cut off the end "
            f"of {self.path.name}"
        ]

    def now_ns(self) -> int:
        """Return the time for a new record."""
        return self._clock.now_ns()

    def _wait_for(self, lock: int) -> None:
        deadline = self._clock.monotonic_s() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if self._clock.monotonic_s() >= deadline:
                    raise StoreError(
                        "another process is writing to this file",
                        where=str(self.path),
                        found=f"locked for {LOCK_WAIT_S:.0f} s",
                        remedy="Wait until it has ended, or use another --registry",
                    ) from error
                self._clock.sleep_s(LOCK_LOOK_S)
            else:
                return

    def _check_ours(self) -> None:
        """Raise ConfigError if the file begins with something else than a record.

        Where a count lies beside it, it was a journal once: then it is a broken one.
        """
        if self._head.exists() or not self.path.exists():
            return
        try:
            with self.path.open("rb") as file:
                first = file.readline(LONGEST_LINE)
        except OSError as error:
            raise self._unreadable(error) from error
        # A first line without an end may be ours, cut off by a crash. The next writer removes it,
        # so it must be ours beyond doubt.
        cut_off = first.startswith(BEGIN) or BEGIN.startswith(first)
        if not (_is_record(first) if first.endswith(b"\n") else cut_off):
            raise ConfigError(
                "this is not a registry",
                where=str(self.path),
                found="a first line that is no record",
                expected="a file that agent-gym wrote, or one that is not there yet",
                remedy="Choose another --registry",
            )

    def _unreadable(self, error: OSError) -> StoreError:
        return StoreError("cannot read here", where=str(self.path), found=error.strerror)

    def _whole_bytes(self) -> int:
        """Return the length of all lines that were written to their end."""
        return self.path.read_bytes().rfind(b"\n") + 1

    def _lines(self) -> list[bytes]:
        if not self.path.exists():
            return []
        try:
            return self.path.read_bytes().split(b"\n")[:-1]
        except OSError as error:
            raise self._unreadable(error) from error

    def _parse(self, text: bytes, number: int) -> Record:
        try:
            fields = json.loads(text)
            version = fields.pop("schema_version")
            if version > SCHEMA_VERSION:
                raise StoreError(
                    "this file was written by a newer agent-gym",
                    where=f"{self.path} line {number}",
                    found=f"schema version {version}",
                    expected=f"at most {SCHEMA_VERSION}",
                    remedy="Upgrade agent-gym, or use another --registry",
                )
            return Record(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._broken(number, "a line that is not a record") from error

    def _read_head(self) -> dict[str, Any] | None:
        try:
            head = json.loads(self._head.read_text(encoding="utf-8"))
            return {"records": int(head["records"]), "hash": str(head["hash"])}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(
                "the count beside a chained file cannot be read", where=str(self._head), found=error
            ) from error

    def _broken(self, number: int, found: str) -> StoreError:
        return StoreError(
            "the chain of this file is broken",
            where=f"{self.path} line {number}",
            found=found,
            remedy=_NOT_OURS,
        )


class Pen:
    """The records of a journal and the right to add to them, while the lock is held."""

    def __init__(self, journal: Journal, records: list[Record]) -> None:
        self._journal = journal
        self.records = records

    def add(self, kind: str, body: dict[str, Any]) -> Record:
        """Seal a record onto the end."""
        index, at_ns = len(self.records), self._journal.now_ns()
        previous = self.records[-1].hash if self.records else FIRST
        record = Record(
            index, kind, at_ns, body, previous, seal(previous, index, kind, at_ns, body)
        )
        self._journal.append(record)
        self.records.append(record)
        return record


def _is_record(line: bytes) -> bool:
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and fields.keys() >= {"schema_version", *Record.__slots__}


def seal(previous: str, index: int, kind: str, at_ns: int, body: dict[str, Any]) -> str:
    """Return the hash of a record and of all before it."""
    said = {"index": index, "kind": kind, "at_ns": at_ns, "body": body}
    return blake2b(f"{previous}\n{_canonical(said)}".encode(), digest_size=16).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
