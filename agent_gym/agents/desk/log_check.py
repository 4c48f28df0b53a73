"""Reading a log back: is it as it was written, and what context does it tell of?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.context_reader import KINDS
from agent_gym.agents.desk.log_chain import (
    FIRST,
    Entry,
    Finding,
    LogReport,
    Wrong,
    head_path,
    log_file,
    opened,
    read_head,
    segments,
)
from agent_gym.core.errors import StoreError

CONTEXT = "context."


class _Stored(Struct, frozen=True):
    known_at: float
    record: msgspec.Raw


def verify(path: Path, key: bytes = b"") -> LogReport:
    """Check every line, the chain over all files of a log, and its head.

    Finds lines that were changed, removed, swapped or put in, and an end that was cut off. It
    reports all it finds and raises nothing.
    """
    current = log_file(path)
    check = _Check()
    for file in segments(current):
        for number, line in _lines(file):
            check.line(file.name, number, line, key)
    check.head(current)
    return LogReport(
        not check.findings, check.count, tuple(check.findings), check.last_hash, check.unsealed
    )


def entries(path: Path, key: bytes = b"") -> Iterator[Entry]:
    """Yield the entries of a log in order, whatever state it is in; unreadable lines are left out.

    Use ``verify`` first if it matters.
    """
    for file in segments(log_file(path)):
        for _, line in _lines(file):
            found = opened(line.rstrip(b"\n"), key)
            if found is not None:
                yield found[0]


def replay(path: Path, *, maxlen: int = 10_000, key: bytes = b"") -> RecentContext:
    """Return the context that a log tells of: the same records, known at the same times.

    Raises:
        StoreError: The log is not as it was written.
    """
    report = verify(path, key)
    if not report.ok:
        first = report.findings[0]
        raise StoreError(
            "the log is not as it was written",
            where=f"{first.file} line {first.line}",
            found=f"{first.what}: {first.detail}",
            remedy="Use the last good copy; verify() lists all that is wrong",
        )
    context = RecentContext(maxlen)
    store: dict[str, Any] = {
        "signal": context.store_signal,
        "features": context.store_features,
        "result": context.store_filter_result,
        "rejection": context.store_rejection,
        "decision": context.store_decision,
        "response": context.store_response,
        "pnl": context.store_pnl,
        "outcome": context.store_outcome,
    }
    for entry in entries(path, key):
        kind = entry.event.removeprefix(CONTEXT)
        if entry.event.startswith(CONTEXT):
            told = msgspec.json.decode(entry.payload, type=_Stored)
            store[kind](msgspec.json.decode(told.record, type=KINDS[kind]), told.known_at)
    return context


class _Check:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.count = 0
        self.last_hash = FIRST
        self.last_seq = -1
        self.unsealed = 0
        self._hashes: dict[int, str] = {}

    def line(self, file: str, number: int, line: bytes, key: bytes) -> None:
        self.count += 1
        if not line.endswith(b"\n"):
            self._found(file, number, "truncated", "the line breaks off")
            return
        found = opened(line[:-1], key)
        if found is None:
            self._found(file, number, "garbage", "not a line of the log")
            return
        entry, digest, true = found
        if not true:
            self._found(file, number, "changed", f"its hash does not fit, seq {entry.seq}")
        elif entry.seq > self.last_seq + 1:
            gone = entry.seq - self.last_seq - 1
            self._found(file, number, "removed", f"{gone} before seq {entry.seq}")
        elif entry.seq <= self.last_seq:
            self._found(file, number, "swapped", f"seq {entry.seq} after {self.last_seq}")
        elif entry.prev_hash != self.last_hash:
            self._found(file, number, "changed", f"it does not follow the line before, {entry.seq}")
        self.last_seq, self.last_hash = entry.seq, digest
        self._hashes[entry.seq] = digest

    def head(self, current: Path) -> None:
        path = head_path(current)
        head = read_head(path)
        if head is None:
            what = "there is none, or it cannot be read"
            self._found(path.name, 1, "head", what)
        elif head.seq > self.last_seq:
            gone = f"the log went on to seq {head.seq}, {self.last_seq} is the last one here"
            self._found(current.name, self.count, "truncated", gone)
        elif head.seq >= 0 and self._hashes.get(head.seq) != head.hash:
            self._found(current.name, self.count, "changed", f"seq {head.seq} is not the head's")
        else:
            self.unsealed = self.last_seq - head.seq

    def _found(self, file: str, number: int, what: Wrong, detail: str) -> None:
        self.findings.append(Finding(file, number, what, detail))


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        yield from enumerate(lines, start=1)
