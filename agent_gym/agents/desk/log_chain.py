"""The chain: each line of the log carries the hash of the one before it and its own.

A line is JSON whose last field is its hash, taken over the exact bytes before it. A small head file
beside the log says which line is the last, because a chain alone cannot show that its end is gone.
Whoever can write both files can forge both: against that, give a key that they do not have.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

FIRST = "0" * 64
TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}$')
TAIL_BYTES = len(',"hash":""}') + 64
SEGMENT = re.compile(r"\.(\d{6})\.jsonl$")

Wrong: TypeAlias = Literal["changed", "removed", "swapped", "truncated", "garbage", "head"]


class Entry(Struct, frozen=True):
    """One line of the log; ``payload`` is kept as it was written."""

    ts_ns: int
    seq: int
    trace_id: str
    actor: str
    event: str
    signal_id: str
    code: str | None
    model_version: str | None
    payload_hash: str
    payload: msgspec.Raw
    prev_hash: str


class Head(Struct, frozen=True):
    """The last line that was written."""

    seq: int
    hash: str


class Finding(Struct, frozen=True):
    """Something wrong with a log: where, and what."""

    file: str
    line: int
    what: Wrong
    detail: str


class LogReport(Struct, frozen=True):
    """Whether a log is as it was written; ``unsealed`` lines came after the last head (a crash)."""

    ok: bool
    lines: int
    findings: tuple[Finding, ...]
    last_hash: str
    unsealed: int = 0


def sealed(entry: Entry, key: bytes) -> tuple[bytes, str]:
    """Return a line, with its final newline, and its hash."""
    body = msgspec.json.encode(entry)
    digest = blake2b(body, digest_size=32, key=key).hexdigest()
    return body[:-1] + b',"hash":"' + digest.encode() + b'"}\n', digest


def opened(line: bytes, key: bytes) -> tuple[Entry, str, bool] | None:
    """Return a line's entry, its hash and whether the hash is true; None if it is no line."""
    found = TAIL.search(line)
    if found is None:
        return None
    body = line[:-TAIL_BYTES] + b"}"
    try:
        entry = msgspec.json.decode(body, type=Entry)
    except msgspec.MsgspecError:
        return None
    digest = found.group(1).decode()
    true = blake2b(body, digest_size=32, key=key).hexdigest() == digest
    return entry, digest, true and entry.payload_hash == payload_hash(bytes(entry.payload))


def payload_hash(payload: bytes) -> str:
    """Return the fingerprint of a payload."""
    return blake2b(payload, digest_size=16).hexdigest()


def head_bytes(seq: int, digest: str) -> bytes:
    """Return a head of fixed width, so that a new one covers the old one whole."""
    return b'{"seq":%20d,"hash":"%s"}\n' % (seq, digest.encode())


def read_head(path: Path) -> Head | None:
    """Return the head, None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Head)
    except (OSError, msgspec.MsgspecError):
        return None


def head_path(current: Path) -> Path:
    """Return where the head of a log lies."""
    return current.with_suffix(".head")


def segments(current: Path) -> list[Path]:
    """Return the files of a log in order: those that were rotated, then the current one."""
    stem = current.name.removesuffix(".jsonl")
    rotated = [p for p in current.parent.glob(f"{stem}.*.jsonl") if SEGMENT.search(p.name)]
    return [*sorted(rotated), *([current] if current.exists() else [])]


def log_file(path: Path) -> Path:
    """Return the current file of a log, which may be named by its folder."""
    return path / "core_agent.jsonl" if path.is_dir() else path
