"""Is a file of tensors, or an archive of arrays, what it says? Asked before it is opened.

Neither format runs code, but a header of safetensors may be as large as 100 MB and name as many
tensors as fit into it, and a small zip may unpack to something huge. Ours are small; what is not is
refused from the header alone, before any array is made.
"""

from __future__ import annotations

import json
import re
import zipfile
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8
LARGEST_HEADER_BYTES = 1 << 20
MOST_TENSORS = 4_096
MOST_DIMENSIONS = 16
MOST_RATIO = 200
LARGEST_ARRAYS_BYTES = 16 << 30
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.npy")
METADATA = "__metadata__"
BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
}


class BadTensors(ValueError):
    """A file of tensors or arrays whose header does not add up."""


def checked_tensors(content: bytes) -> bytes:
    """Return the bytes of a safetensors file, once its header adds up.

    Raises:
        BadTensors: The header is too large or damaged, has too many tensors, or tensors that
            overlap, leave a gap, have another size than their shape, or lie beyond the end.
    """
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    if len(content) < LENGTH_BYTES or length > len(content) - LENGTH_BYTES:
        raise BadTensors(f"a header of {length} bytes in a file of {len(content)}")
    if length > LARGEST_HEADER_BYTES:
        raise BadTensors(f"a header of {length} bytes, more than {LARGEST_HEADER_BYTES}")
    try:
        header = json.loads(
            content[LENGTH_BYTES : LENGTH_BYTES + length], object_pairs_hook=_no_name_twice
        )
        tensors = {name: one for name, one in header.items() if name != METADATA}
        if len(tensors) > MOST_TENSORS:
            raise BadTensors(f"{len(tensors)} tensors, more than {MOST_TENSORS}")
        spans = sorted(_span(name, one) for name, one in tensors.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadTensors(f"a header that cannot be read: {str(error)[:200]}") from error
    end = 0
    for begin, after, name in spans:
        if begin != end:
            raise BadTensors(f"{name[:80]!r} begins at {begin}, not where the last one ended")
        end = after
    if end != len(content) - LENGTH_BYTES - length:
        raise BadTensors(f"tensors of {end} bytes, not those of the file")
    return content


def check_archive(source: Path | BytesIO) -> None:
    """Refuse an archive of arrays (npz) that would unpack to more than it should.

    Raises:
        BadTensors: It is no archive, has too many members, one with a path, one that is packed too
            well, or more bytes in all than arrays of ours have.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BadTensors(f"no archive of arrays: {error}") from error
    if len(members) > MOST_TENSORS:
        raise BadTensors(f"{len(members)} arrays, more than {MOST_TENSORS}")
    for one in members:
        if not _MEMBER.fullmatch(one.filename):
            raise BadTensors(f"a member {one.filename[:80]!r}")
        if one.file_size > max(one.compress_size, 1) * MOST_RATIO:
            raise BadTensors(f"{one.filename[:80]!r}: {one.file_size} bytes in {one.compress_size}")
    if (total := sum(one.file_size for one in members)) > LARGEST_ARRAYS_BYTES:
        raise BadTensors(f"arrays of {total} bytes, more than {LARGEST_ARRAYS_BYTES}")


def _span(name: str, one: dict[str, Any]) -> tuple[int, int, str]:
    begin, end = one["data_offsets"]
    shape = one["shape"]
    if len(shape) > MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in (*shape, begin)):
        raise ValueError(f"{name[:80]!r} has no shape")
    if set(one) != {"dtype", "shape", "data_offsets"} or type(end) is not int:
        raise ValueError(f"{name[:80]!r} has other fields")
    if (end - begin) * 8 != prod(shape) * BITS[one["dtype"]]:
        raise ValueError(f"{name[:80]!r} has {end - begin} bytes, not those of its shape")
    return begin, end, name


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that is there twice")
    return found
