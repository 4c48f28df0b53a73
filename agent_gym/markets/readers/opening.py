"""Open what a path names: a real file, unpacked if it is packed, and what sort of file it is."""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.parquet import UNREADABLE

_HEAD_BYTES = 65_536
_MOST_BYTES = 4 << 30  # a packed file can hold a thousand times its size
_STREAMS = {b"\x1f\x8b": ("a gzip file", "gzip"), b"\x28\xb5\x2f\xfd": ("a zstd file", "zstd")}
_FOREIGN = {b"BZh": "a bzip2 file", b"\xfd7zXZ": "an xz file", b"7z\xbc\xaf": "a 7z archive"}
_FOREIGN |= {b"Rar!": "a rar archive", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}
_WORKBOOK = "xl/workbook.xml"
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32"}
_MARKS |= {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ARROW_SUFFIXES = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather"}
_ARROW_SUFFIXES |= {".arrow": "Feather"}
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A file to be read: its format, its first bytes, and all of them if they had to be unpacked.

    Attributes:
        path: What the user has named; errors speak of it.
        form: ``parquet``, ``feather`` or ``csv``.
        head: The first bytes.
        content: The whole content where it is not what lies on the disk.
    """

    path: Path
    form: str
    head: bytes
    content: bytes | None = None

    def stream(self) -> Any:
        """Return what a library can read from: the path, or the unpacked content."""
        return self.path if self.content is None else io.BytesIO(self.content)


def require_file(path: Path) -> None:
    """Raise ConfigError unless the path leads to a regular file; pipes would wait for ever."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            "the name of the file is not UTF-8",
            where=os.fsencode(path).decode("utf-8", "backslashreplace"),
            remedy="Rename the file",
        ) from error
    try:
        mode = path.stat().st_mode
    except OSError as error:
        lost = path.is_symlink()
        raise ConfigError(
            "there is no market file here",
            where=str(path),
            found="a link that leads nowhere" if lost else (error.strerror or "").lower(),
            expected="a file",
            remedy=_nearby(path),
        ) from error
    if stat.S_ISDIR(mode):
        files = _names(path)[:3]
        raise ConfigError(
            "there is no market file here",
            where=str(path),
            found="a directory",
            expected="a file",
            remedy=f"Name one file, such as {', '.join(files)}" if files else "Name one file",
        )
    if not stat.S_ISREG(mode):
        raise ConfigError(
            "there is no market file here",
            where=str(path),
            found=_KINDS.get(stat.S_IFMT(mode), "something else"),
            expected="a file",
            remedy="Write its content to a file first",
        )


def open_file(path: Path) -> Opened:
    """Find out what a file is by its content and unpack it if need be."""
    require_file(path)
    head = _read(path, _HEAD_BYTES)
    content = _unpacked(path, head)
    if content is not None:
        head = content[:_HEAD_BYTES]
    if not head.strip():
        raise DataError(
            "the file is empty",
            where=str(path),
            found="0 bytes" if not head else "only blanks",
            expected="a header line and rows, or a Parquet or Feather file",
            remedy="Copy or download it again",
        )
    if head.startswith(b"PAR1"):
        return Opened(path, "parquet", head, content)
    if head.startswith((b"ARROW1", b"FEA1")):
        return Opened(path, "feather", head, content)
    promised = _ARROW_SUFFIXES.get(path.suffix.lower())
    if promised is not None:
        raise DataError(
            f"the file is called {path.suffix} but is not {promised}",
            where=str(path),
            found=f"a start of {head[:12]!r}",
            expected="the name that goes with the content",
            remedy="Copy it again, or call it .csv if that is what it is",
        )
    return _text(Opened(path, "csv", head, content))


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise ConfigError(
            "cannot read the file",
            where=str(path),
            found=error.strerror,
            remedy="Allow this user to read it, or copy it",
        ) from error


def _nearby(path: Path) -> str:
    """Return the files that stand where a missing one was looked for."""
    alike = get_close_matches(path.name, _names(path.absolute().parent), n=2)
    return f"Did you mean {' or '.join(alike)}?" if alike else "Check the name and the folder"


def _names(folder: Path) -> list[str]:
    """Return the files of a folder, none if it cannot be looked into: this only feeds a hint."""
    try:
        return sorted(each.name for each in folder.iterdir() if each.is_file())
    except OSError:
        return []


def _unpacked(path: Path, head: bytes) -> bytes | None:
    """Return the content of a packed file, None if it is not packed."""
    if head.startswith(b"PK\x03\x04"):
        return _from_zip(path)
    for magic, (noun, codec) in _STREAMS.items():
        if head.startswith(magic):
            try:
                with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, codec) as stream:
                    return _limited(path, noun, stream.read(_MOST_BYTES + 1))
            except UNREADABLE as error:
                raise _broken(path, noun, error) from error
    for magic, noun in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(
                "the file is packed",
                where=str(path),
                found=noun,
                expected="CSV, Parquet or Feather, plain or as zip, gzip or zstd",
                remedy="Unpack it first",
            )
    return None


def _from_zip(path: Path) -> bytes:
    noun = "a zip archive"
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            files = [each for each in members if not each.filename.startswith("__MACOSX/")]
            if any(each.filename == _WORKBOOK for each in files):
                raise DataError(
                    "the file is an Excel workbook",
                    where=str(path),
                    expected="CSV, Parquet or Feather",
                    remedy="Save the sheet as CSV UTF-8",
                )
            if len(files) != 1:
                raise DataError(
                    "the file is packed with others",
                    where=str(path),
                    found=f"{noun} of {len(files)} files: "
                    + ", ".join(each.filename for each in files[:5]),
                    expected="an archive of one file",
                    remedy="Unpack it and name one of the files",
                )
            with archive.open(files[0]) as stream:
                return _limited(path, noun, stream.read(_MOST_BYTES + 1))
    except (*_BROKEN_ZIP, OSError) as error:
        raise _broken(path, noun, error) from error


def _limited(path: Path, noun: str, content: bytes) -> bytes:
    if len(content) <= _MOST_BYTES:
        return content
    raise DataError(
        "the packed file is too large to unpack in memory",
        where=str(path),
        found=f"{noun} of more than {_MOST_BYTES >> 30} GiB",
        remedy="Unpack it first",
    )


def _broken(path: Path, noun: str, error: BaseException) -> DataError:
    return DataError(
        "this packed file cannot be read",
        where=str(path),
        found=f"{noun}: {error}"[:300],
        remedy="Copy it again. Unpack it first if it needs a password or another program",
    )


def _text(opened: Opened) -> Opened:
    """Return a text file in UTF-8; UTF-16 and UTF-32 are turned into it if they say what they are.

    Without a mark at its start such a file cannot be told from garbage with certainty.
    """
    path, head = opened.path, opened.head
    reason: object = "zero bytes"
    try:
        for mark, encoding in _MARKS.items():
            if head.startswith(mark):
                whole = path.read_bytes() if opened.content is None else opened.content
                text = whole.decode(encoding).encode()
                return Opened(path, "csv", text[:_HEAD_BYTES], text)
        if b"\0" not in head:
            (head.splitlines() or [b""])[0].decode("utf-8-sig")
            return opened
    except ValueError as error:
        reason = error
    raise DataError(
        "the file is neither CSV, Parquet nor Feather",
        where=str(path),
        found=reason,
        expected="text in UTF-8, or UTF-16 with a byte-order mark",
        remedy="Save it as CSV UTF-8",
    )
