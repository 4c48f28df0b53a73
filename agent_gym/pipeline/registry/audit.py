"""Anchors of the history: signed notes of how long it was and what its last hash was.

The chain of hashes shows what was changed inside it. It cannot show that its end was cut off, or
that all of it was written anew: for that somebody must have kept an earlier hash. The registry
keeps the last one in a file of its own, signed; ``anchor`` makes another to be kept elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.ledger import HistoryEntry

FORMAT = "agent_gym.anchor/1"
PURPOSE = b"agent-gym history anchor\n"  # a signature is good for nothing else
LARGEST_ANCHOR_BYTES = 4_096
NO_ANCHOR = "there is no anchor, so nothing shows that its end was not cut off"


@dataclass(frozen=True, slots=True)
class Anchor:
    """How long a history was, and its last hash, signed."""

    length: int
    hash: str
    at_ns: int
    key: str
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {"format": FORMAT, **asdict(self)}


def make_anchor(keys: KeyRing, length: int, last: str, now_ns: int) -> Anchor:
    """Sign how long a history is."""
    signed = keys.sign(_message(length, last, now_ns))
    return Anchor(length, last, now_ns, keys.id, base64.b64encode(signed).decode("ascii"))


def write_anchor(path: Path, anchor: Anchor, *, anew: bool = False) -> None:
    """Write an anchor; one of a longer history stays, unless it is to be replaced."""
    if path.exists() and not anew and read_anchor(path).length > anchor.length:
        return
    write_json(path, anchor.as_dict())


def read_anchor(path: Path) -> Anchor:
    """Read an anchor; its signature is not looked at yet."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST_ANCHOR_BYTES:
            raise ValueError("a link, or a file that is too large")
        said = json.loads(path.read_bytes())
        if said.pop("format") != FORMAT:
            raise ValueError("another format")
        anchor = Anchor(**said)
        base64.b64decode(anchor.signature, validate=True)
        _message(anchor.length, anchor.hash, anchor.at_ns)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            "this is no anchor of a history",
            where=str(path),
            found=str(error),
            remedy="Name a file that `agent-gym registry audit anchor --out` has written",
        ) from error
    return anchor


def check_anchor(anchor: Anchor, keys: KeyRing, entries: tuple[HistoryEntry, ...]) -> str | None:
    """Return in words what is wrong with a history that was once anchored, None if nothing is."""
    if (why := keys.refusal(anchor.key, anchor.at_ns)) is not None:
        return f"the anchor is of the {why} key {anchor.key[:32]}"
    try:
        signature = base64.b64decode(anchor.signature, validate=True)
    except binascii.Error:
        signature = b""
    said = _message(anchor.length, anchor.hash, anchor.at_ns)
    if not keys.verifies(anchor.key, signature, said):
        return "the anchor is not what was signed"
    if anchor.length > len(entries):
        return f"it was cut off: {anchor.length} entries were anchored, {len(entries)} are left"
    if anchor.length and entries[anchor.length - 1].hash != anchor.hash:
        return f"entry {anchor.length} is not the one that was anchored: it was written anew"
    return None


def _message(length: int, last: str, at_ns: int) -> bytes:
    return PURPOSE + f"{int(length)} {last} {int(at_ns)}".encode()
