"""Bytes of a snapshot's two files: canonical JSON, packed, with the hash of what is inside.

The hash is taken over the JSON text, not over the packed bytes, so it does not depend on the
version of the packing library.
"""

from __future__ import annotations

import json
import lzma
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.core.files import atomic_path

HASH_LENGTH = 32
LARGEST_BYTES = 256 * 2**20
REMEDY = "Generate the snapshot again, or fetch an unchanged copy of the file"


def content_hash(body: Any) -> str:
    """Return the hash of a body that JSON can say; equal bodies have equal hashes."""
    return sha256(_canonical(body)).hexdigest()[:HASH_LENGTH]


def write_packed(path: Path, kind: str, body: dict[str, Any], **also: str) -> None:
    """Write a body with its kind and hash."""
    whole = {"format": kind, "hash": content_hash(body), "body": body, **also}
    with atomic_path(path) as temporary:
        temporary.write_bytes(lzma.compress(_canonical(whole), preset=6))


def read_packed(path: Path, kind: str) -> dict[str, Any]:
    """Read what write_packed() wrote; anything that was changed since is refused."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise DataError(
            "a snapshot file cannot be read",
            where=str(path),
            found=error.strerror,
            remedy="Give the path of a file that `agent-gym snapshot generate` wrote",
        ) from error
    whole = _unpacked(packed, path)
    if not isinstance(whole, dict) or whole.get("format") != kind:
        found = whole.get("format") if isinstance(whole, dict) else type(whole).__name__
        raise DataError("this file is of another kind", where=str(path), found=found, expected=kind)
    body = whole.get("body")
    if not isinstance(body, dict) or content_hash(body) != whole.get("hash"):
        raise DataError(
            "the content does not have the hash that the file states",
            where=str(path),
            found=content_hash(body),
            expected=whole.get("hash"),
            remedy=REMEDY,
        )
    return whole


def _unpacked(packed: bytes, path: Path) -> Any:
    try:
        text = lzma.LZMADecompressor().decompress(packed, max_length=LARGEST_BYTES)
        return json.loads(text)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise DataError(
            "a snapshot file is damaged", where=str(path), found=str(error), remedy=REMEDY
        ) from error


def _canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")
