"""CoreAgentLogger: everything the desk does, as a hash chain for machines and as lines for people.

``core_agent.jsonl`` is the record, ``core_agent.log`` says the same in words, ``core_agent.head``
marks the end. Nothing is ever deleted: a full file is put aside under a number and the chain goes
on in the next.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct

from agent_gym.agents.desk.flow_states import Transition
from agent_gym.agents.desk.log_chain import (
    FIRST,
    Entry,
    LogReport,
    head_bytes,
    head_path,
    opened,
    payload_hash,
    read_head,
    sealed,
    segments,
)
from agent_gym.agents.desk.log_check import CONTEXT, entries, replay, verify
from agent_gym.agents.desk.redaction import Redactor
from agent_gym.core.clock import SECOND_NS, Clock
from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path

__all__ = ["CoreAgentLogger", "LogReport", "entries", "replay", "verify"]

MAX_BYTES = 64 * 1024 * 1024
_ENCODER = msgspec.json.Encoder(order="deterministic")


class CoreAgentLogger:
    """Writes the log of one desk into a folder.

    Args:
        folder: Where; one desk at a time writes there.
        clock: Stamps what has no time of its own.
        max_bytes: A file that has grown beyond is put aside.
        key: Makes the chain one that only its holder can forge.
        sync: Wait for the disk after every line, so that even a power cut loses none.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        max_bytes: int = MAX_BYTES,
        key: bytes = b"",
        sync: bool = False,
    ) -> None:
        self.redactor = Redactor()
        self.path = folder / "core_agent.jsonl"
        self._words_path = folder / "core_agent.log"
        self._clock = clock
        self._max_bytes = max_bytes
        self._key = key
        self._sync = sync
        folder.mkdir(parents=True, exist_ok=True)
        self._head = _locked(head_path(self.path))
        try:
            self._seq, self._last, torn = self._resume()
            if self._seq == 0:
                os.pwrite(self._head, head_bytes(-1, FIRST), 0)
        except StoreError:
            os.close(self._head)
            raise
        self._open()
        if torn:
            self._write("log.recovered", {"torn_bytes": len(torn)}, "", self._clock.now_ns())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def stored(self, kind: str, record: Struct, known_at: float, *, clean: bool = False) -> None:
        """Write down a record that the context keeps; ``clean``: secrets are out of it already."""
        raw = _ENCODER.encode(record)
        if not clean and self.redactor.suspects(raw):
            raw = _ENCODER.encode(self.redactor.value(msgspec.to_builtins(record)))
        trace_id = getattr(record, "trace_id", "")
        signal_id = getattr(record, "signal_id", "")
        code = getattr(record, "code", None)
        entry_payload = {"known_at": known_at, "record": msgspec.Raw(raw)}
        self._write(
            CONTEXT + kind,
            entry_payload,
            signal_id,
            round(known_at * SECOND_NS),
            trace_id=trace_id,
            code=None if code is None else str(code.value),
            model_version=getattr(record, "model_version", None),
            actor=getattr(record, "agent", "desk"),
        )

    def transition(self, step: Transition) -> None:
        """Write down a step of a signal; the event is named after where it leads."""
        self._write(
            f"flow.{step.after.value}",
            {"before": step.before.value, "after": step.after.value},
            step.signal_id,
            step.at_ns,
            trace_id=step.trace_id,
            code=None if step.code is None else step.code.value,
        )

    def trouble(self, signal_id: str, why: str, now_ns: int) -> None:
        """Write down that something is wrong with the desk itself."""
        self._write("desk.trouble", {"why": self.redactor.text(why)[:300]}, signal_id, now_ns)

    def close(self) -> None:
        """Bring all to the disk and let go of the files."""
        for file in (self._lines, self._words):
            file.flush()
            os.fsync(file.fileno())
            file.close()
        os.fsync(self._head)
        os.close(self._head)

    def _write(
        self, event: str, payload: Mapping[str, Any], signal_id: str, ts_ns: int, **more: Any
    ) -> None:
        text = self.redactor.text
        body = _ENCODER.encode(payload)
        entry = Entry(
            ts_ns=ts_ns,
            seq=self._seq,
            trace_id=text(more.get("trace_id", "")),
            actor=more.get("actor", "desk"),
            event=event,
            signal_id=text(signal_id),
            code=more.get("code"),
            model_version=more.get("model_version"),
            payload_hash=payload_hash(body),
            payload=msgspec.Raw(body),
            prev_hash=self._last,
        )
        line, digest = sealed(entry, self._key)
        self._append(line)
        self._last = digest
        self._seq += 1
        try:
            os.pwrite(self._head, head_bytes(entry.seq, digest), 0)
            self._words.write(_words(entry))
            if self._sync:
                os.fsync(self._lines.fileno())
                os.fsync(self._head)
        except OSError as error:
            raise _unwritten(self.path, error) from error
        if self._lines.tell() >= self._max_bytes:
            self._rotate()

    def _append(self, line: bytes) -> None:
        """Write a line whole or not at all: half a line would break the chain for ever."""
        before = self._lines.tell()
        try:
            if self._lines.write(line) == len(line):
                return
            error: OSError = OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as failed:
            error = failed
        with suppress(OSError):
            self._lines.truncate(before)
        raise _unwritten(self.path, error) from error

    def _open(self) -> None:
        self._lines = self.path.open("ab", buffering=0)
        self._words = self._words_path.open("ab", buffering=0)

    def _rotate(self) -> None:
        for file in (self._lines, self._words):
            os.fsync(file.fileno())
            file.close()
        number = len(segments(self.path))
        self.path.rename(self.path.with_suffix(f".{number:06d}.jsonl"))
        self._words_path.rename(self._words_path.with_suffix(f".{number:06d}.log"))
        self._open()

    def _resume(self) -> tuple[int, str, bytes]:
        """Return where the chain goes on; a line that broke off is put aside, a cut is an error."""
        torn = b""
        files = [file for file in segments(self.path) if file.stat().st_size]
        head = read_head(head_path(self.path))
        if not files:
            if head is not None and head.seq >= 0:
                raise _cut(self.path, head.seq, "no line")
            return 0, FIRST, torn
        text = files[-1].read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            torn = text[whole:]
            _put_aside(files[-1], text[:whole], torn)
        lines = text[:whole].splitlines() or files[-2].read_bytes().splitlines()
        found = opened(lines[-1], self._key)
        if found is None or not found[2]:
            raise StoreError(
                "the last line of the log is not as it was written",
                where=str(files[-1]),
                remedy="Look into it with verify(), and move the folder aside to begin anew",
            )
        if head is None or head.seq > found[0].seq:
            raise _cut(files[-1], -1 if head is None else head.seq, f"seq {found[0].seq}")
        return found[0].seq + 1, found[1], torn


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise StoreError(
            "another desk writes this log", where=str(path), remedy="Give each desk its own folder"
        ) from error
    return handle


def _put_aside(file: Path, whole: bytes, torn: bytes) -> None:
    """Keep what a crash left of a line, beside the log."""
    aside = file.with_suffix(f".torn{len(whole)}")
    with atomic_path(aside) as path:
        path.write_bytes(torn)
    os.truncate(file, len(whole))


def _unwritten(file: Path, error: OSError) -> StoreError:
    return StoreError(
        "the log cannot be written",
        where=str(file),
        found=error.strerror,
        remedy="Make room; a desk that cannot keep its log does not go on",
    )


def _cut(file: Path, head_seq: int, found: str) -> StoreError:
    return StoreError(
        "the log's end is not the one that was written",
        where=str(file),
        found=found,
        expected=f"seq {head_seq}" if head_seq >= 0 else "a head that can be read",
        remedy="Look into it with verify(), and move the folder aside to begin anew",
    )


def _words(entry: Entry) -> bytes:
    """Return an entry as one line for people; what could forge a line is spelled out."""
    at = datetime.fromtimestamp(entry.ts_ns / SECOND_NS, UTC).isoformat(timespec="milliseconds")
    code = "" if entry.code is None else f" {entry.code}"
    text = f"{at} #{entry.seq} {entry.event}{code} {entry.signal_id} {entry.actor}"
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text.encode(errors="backslashreplace") + b"\n"
