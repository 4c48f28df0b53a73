"""BlobStore: put, get, list and delete bytes by their SHA-256, and believe none of them unchecked.

On a remote shelf the local folder is a cache: what is put is written there first and then sent,
what is read is fetched into it once. Whatever is handed on has been hashed here.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path
from agent_gym.rollouts.blobs.shelf import Entry, LocalShelf, Shelf

BlobState: TypeAlias = Literal["whole", "damaged", "missing"]
Seen: TypeAlias = tuple[str, int, int, int]
DAMAGED, TRASH = "damaged", "trash"
REMEDY = "`agent-gym blobs verify` names all that are damaged; restore this one from a copy"
PART_BYTES = 1 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_PLACE = re.compile(r"([0-9a-f]{2})/([0-9a-f]{64})(\.[a-z]+)?")

log = logging.getLogger(__name__)


class BlobStore:
    """Blobs on a shelf, each called ``<xx>/<sha256><suffix>``.

    Args:
        shelf: Where they stand.
        folder: The shelf's own folder, or the cache of a remote one.
        suffix: How their names end.
    """

    def __init__(self, shelf: Shelf, folder: Path, suffix: str = "") -> None:
        self.shelf, self.folder, self.suffix = shelf, folder, suffix
        self.near = LocalShelf(folder)
        self._checked: set[Seen] = set()
        self._unsent: set[str] = set()

    @property
    def is_remote(self) -> bool:
        """Whether blobs stand elsewhere and the folder is only a cache."""
        return not isinstance(self.shelf, LocalShelf)

    # Writing.

    def put(self, content: Any, *, patient: bool = False) -> str:
        """Keep some bytes and return their hash; they are there when this returns.

        Args:
            content: Any buffer.
            patient: If the remote shelf is away, let them wait in the folder: they are sent with
                the next that can be sent, or by ``push``.
        """
        digest = sha256(content).hexdigest()
        self._put(digest, lambda path: _write(path, content), patient=patient)
        return digest

    def put_file(self, source: Path) -> str:
        """Keep a copy of a file and return its hash; it may be larger than memory."""
        digest = digest_of(source)
        self._put(digest, lambda path: self._copy(source, path, digest))
        return digest

    def _copy(self, source: Path, path: Path, digest: str) -> None:
        shutil.copyfile(source, path)
        if digest_of(path) != digest:
            raise self._unreadable(digest, "a source that changed while it was copied")

    def _put(self, digest: str, write: Callable[[Path], object], *, patient: bool = False) -> None:
        path, name = self.path(digest), self.name(digest)
        if self._near_state(digest) == "damaged":
            self.near.move(name, f"{DAMAGED}/{Path(name).name}")
        if self.near.entry(name) is None:  # a link in its place is no blob, and is replaced
            with atomic_path(path) as temporary:
                write(temporary)
        else:
            os.utime(path)  # whoever sweeps leaves alone what was met lately
        if self.is_remote:
            self._send_all({digest}, patient=patient)

    def _send_all(self, digests: set[str], *, patient: bool) -> None:
        self._unsent |= digests
        try:
            for digest in sorted(self._unsent):
                self._send(digest)
                self._unsent.discard(digest)
        except StoreError as error:
            if not patient:
                raise
            log.warning("%d blobs wait in %s: %s", len(self._unsent), self.folder, error)

    def _send(self, digest: str) -> None:
        path, name = self.path(digest), self.name(digest)
        n_bytes = path.stat().st_size
        there = self.shelf.entry(name)
        if there is None or there.n_bytes != n_bytes:
            self.shelf.upload(path, name)

    def push(self) -> tuple[str, ...]:
        """Send what lies in the folder alone to the remote shelf; return the hashes that went."""
        if not self.is_remote:
            return ()
        sent = self.unsent()
        for digest in sent:
            self._believe(digest)
            self._send(digest)
        return sent

    def unsent(self) -> tuple[str, ...]:
        """Return the hashes of what lies in the folder alone."""
        there = set(self.digests()) if self.is_remote else set()
        near = _digests(self.near, self.suffix) if self.is_remote else []
        return tuple(digest for digest in near if digest not in there)

    # Reading.

    def fetch(self, digest: str) -> Path:
        """Return a local file with exactly these bytes.

        It is hashed when a process first asks for it and whenever it was touched since.

        Raises:
            StoreError: It is missing, or other bytes than were put; those are set aside.
        """
        if self._seen(digest) in self._checked:
            return self.path(digest)
        if not self.is_remote:
            if not self.exists(digest):
                self._restore(digest)
            return self._believe(digest)
        state = self._near_state(digest)
        if state == "damaged":
            self.near.move(self.name(digest), f"{DAMAGED}/{digest}{self.suffix}")
        if state != "whole":
            with atomic_path(self.path(digest)) as temporary:
                self._download(digest, temporary)
        return self._believe(digest)

    def get(self, digest: str) -> bytes:
        """Return the bytes, checked once more after they were read."""
        content = self.fetch(digest).read_bytes()
        if sha256(content).hexdigest() != digest:
            raise self._unreadable(digest, "damaged")
        return content

    def exists(self, digest: str) -> bool:
        """Say whether it is on the shelf; its bytes are not looked at."""
        return self.shelf.entry(self.name(digest)) is not None

    def entries(self) -> Iterator[Entry]:
        """Yield what is on the shelf: the hash of each, its size and age."""
        for found in self.shelf.entries():
            match = _PLACE.fullmatch(found.name)
            if match and match[2].startswith(match[1]) and (match[3] or "") == self.suffix:
                yield Entry(match[2], found.n_bytes, found.changed_ns)

    def digests(self) -> Iterator[str]:
        """Yield the hashes of all blobs on the shelf."""
        return (entry.name for entry in self.entries())

    def delete(self, digest: str) -> None:
        """Remove a blob and its cached copy at once; ``sweep`` is the careful way."""
        self._unsent.discard(digest)
        self.shelf.remove(self.name(digest))
        self.near.remove(self.name(digest))

    def forget(self, digest: str) -> None:
        """Drop the cached copy of a remote blob; what waits to be sent stays."""
        if self.is_remote and digest not in self._unsent:
            self.near.remove(self.name(digest))

    # Checking.

    def state(self, digest: str) -> BlobState:
        """Say whether what is on the shelf, or waits to be sent there, is what was put."""
        if not self.exists(digest):
            if self.is_remote and self._near_state(digest) == "whole":
                return "whole"  # it waits here to be sent
            aside = self.shelf.entry(f"{DAMAGED}/{digest}{self.suffix}")
            return "missing" if aside is None else "damaged"
        if not self.is_remote:
            return self._near_state(digest)
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, digest)
            try:
                self.shelf.download(self.name(digest), target)
            except FileNotFoundError:
                return "missing"
            return "whole" if digest_of(target) == digest else "damaged"

    def set_aside(self, digest: str) -> str:
        """Move a damaged blob to where nobody takes it for a good one; return where that is."""
        aside = f"{DAMAGED}/{digest}{self.suffix}"
        if self.exists(digest):
            self.shelf.move(self.name(digest), aside)
        return f"{self.shelf.where}/{aside}"

    def name(self, digest: str) -> str:
        """Return the name of a blob on its shelf; what is no hash never becomes a name."""
        if not _HASH.fullmatch(digest):
            raise StoreError("a blob has a name that is no hash", found=repr(digest))
        return f"{digest[:2]}/{digest}{self.suffix}"

    def path(self, digest: str) -> Path:
        """Return where a blob lies in the folder, or would lie."""
        return self.near.path(self.name(digest))

    def _near_state(self, digest: str) -> BlobState:
        if self.near.entry(self.name(digest)) is None:
            return "missing"
        return "whole" if digest_of(self.path(digest)) == digest else "damaged"

    def _believe(self, digest: str) -> Path:
        seen, state = self._seen(digest), self._near_state(digest)
        if state == "damaged":
            self._put_aside(digest)
        if seen is None or state != "whole":
            raise self._unreadable(digest, state)
        self._checked.add(seen)
        return self.path(digest)

    def _seen(self, digest: str) -> Seen | None:
        """Return what changes when a file is touched; None if it is not here."""
        try:
            now = self.path(digest).lstat()
        except OSError:
            return None
        return (digest, now.st_ino, now.st_size, now.st_mtime_ns)

    def _download(self, digest: str, target: Path) -> None:
        """Fetch a blob; wrong bytes are asked for twice, since the way here may be to blame."""
        seen = []
        for _ in range(2):
            try:
                self.shelf.download(self.name(digest), target)
            except FileNotFoundError as error:
                if not self._restore(digest):
                    raise self._unreadable(digest, "missing") from error
                self.shelf.download(self.name(digest), target)
            seen.append(digest_of(target))
            if seen[-1] == digest:
                return
            log.error("%s gave other bytes than were put for %s", self.shelf.where, digest)
        if seen[0] != seen[1]:
            raise self._unreadable(digest, "other bytes each time it is asked for")
        self._put_aside(digest)
        raise self._unreadable(digest, "damaged")

    def _put_aside(self, digest: str) -> None:
        """Set a damaged blob aside if this place lets us; it is refused in any case."""
        try:
            log.error(
                "a blob has changed since it was written; it is now %s", self.set_aside(digest)
            )
        except (OSError, StoreError) as error:
            log.error("a blob has changed since it was written and cannot be moved: %s", error)

    def _restore(self, digest: str) -> bool:
        """Take a blob back out of the trash, if it is there."""
        waiting = f"{TRASH}/{digest}{self.suffix}"
        if self.shelf.entry(waiting) is None:
            return False
        self.shelf.move(waiting, self.name(digest))
        log.warning("a blob was needed again and came back from the trash: %s", digest)
        return True

    def _unreadable(self, digest: str, found: str) -> StoreError:
        where = f"{self.shelf.where}/{self.name(digest)}"
        return StoreError("a blob is not what was written", where=where, found=found, remedy=REMEDY)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, read a part at a time."""
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _digests(shelf: LocalShelf, suffix: str) -> list[str]:
    found = (_PLACE.fullmatch(entry.name) for entry in shelf.entries())
    return [match[2] for match in found if match and (match[3] or "") == suffix]


def _write(path: Path, content: Any) -> None:
    with path.open("wb") as file:
        file.write(content)
