"""A bucket of an S3-compatible server as a shelf: fsspec over the S3 client that Arrow ships.

Keys come from the environment or from the client's own files, never from an address. What goes
wrong on the way is tried again, later each time; what the server refuses is not.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.spec import AbstractFileSystem
from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

from agent_gym.core.clock import SECOND_NS, Clock, SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.blobs.shelf import Entry

T = TypeVar("T")
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
CREDENTIALS_FILE = "AWS_SHARED_CREDENTIALS_FILE"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
PART_BYTES = 1 << 20
ATTEMPTS, FIRST_PAUSE_S = 4, 0.2
CLIENT_ATTEMPTS = 2
CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S = 5.0, 30.0
FINAL = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE", "INVALID_BUCKET")
LOOPBACK = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger(__name__)


class RemoteShelf:
    """Files below a root of a remote file system.

    Args:
        files: The file system.
        root: Bucket and prefix.
        clock: Waits between attempts.
    """

    def __init__(self, files: AbstractFileSystem, root: str, clock: Clock | None = None) -> None:
        self._files, self._root, self._clock = files, root, clock or SystemClock()
        self.where = f"s3://{root}"

    def upload(self, source: Path, name: str) -> None:
        """Put a copy of a local file here; it appears when all of it has arrived."""
        self._tried(name, lambda: self._upload(source, self._at(name)))

    def _upload(self, source: Path, place: str) -> None:
        n_bytes = source.stat().st_size
        try:
            with source.open("rb") as file, self._files.open(place, "wb") as target:
                while part := file.read(PART_BYTES):
                    target.write(part)
        except OSError:
            self._discard(place)
            raise
        sent = int(self._files.info(place)["size"])
        if sent != n_bytes:
            self._discard(place)
            raise OSError(f"{sent} of {n_bytes} bytes have arrived")

    def _discard(self, place: str) -> None:
        """Remove what a broken upload may have left; it is no blob, and is replaced next time."""
        try:
            self._files.rm_file(place)
        except OSError as error:
            log.warning("a broken upload could not be removed: %s", _clean(error))

    def download(self, name: str, target: Path) -> None:
        """Copy a file into a local one, a part at a time; FileNotFoundError if it is not here."""
        self._tried(name, lambda: self._download(self._at(name), target))

    def _download(self, place: str, target: Path) -> None:
        with self._files.open(place, "rb", seekable=False) as file, target.open("wb") as out:
            while part := file.read(PART_BYTES):
                out.write(part)

    def entry(self, name: str) -> Entry | None:
        """Return what is known of a file, None if it is not here."""
        try:
            found = self._tried(name, lambda: self._files.info(self._at(name)))
        except FileNotFoundError:
            return None
        return self._entry(found) if found["type"] == "file" else None

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """Yield all files at or below a folder."""
        top = self._at(folder).rstrip("/")
        try:
            found = self._tried(folder, lambda: self._files.find(top, detail=True))
        except FileNotFoundError:
            return
        for name in sorted(found):
            if found[name]["type"] == "file":
                yield self._entry(found[name])

    def move(self, name: str, to: str) -> None:
        """Give a file another name: the server copies it, then the old name goes."""
        self._tried(name, lambda: self._files.mv(self._at(name), self._at(to)))

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        if self.entry(name) is not None:
            self._tried(name, lambda: self._files.rm_file(self._at(name)))

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _entry(self, found: dict[str, Any]) -> Entry:
        changed_ns = round(found["mtime"].timestamp() * SECOND_NS)
        return Entry(found["name"].removeprefix(f"{self._root}/"), int(found["size"]), changed_ns)

    def _tried(self, name: str, work: Callable[[], T]) -> T:
        """Do something, again and later if the way there fails; say what went wrong at last."""
        pause, number = FIRST_PAUSE_S, 1
        while True:
            try:
                return work()
            except OSError as error:
                said = _clean(error)
                refused = any(word in said for word in FINAL)
                if isinstance(error, FileNotFoundError) and not refused:
                    raise
                if number == ATTEMPTS or refused:
                    raise StoreError(
                        "the store of blobs does not answer as it should",
                        where=f"{self.where}/{name}",
                        found=said,
                        remedy="Look at the server, the bucket and the keys (docs/blobs.md); what "
                        "was not sent is still in the workspace, so run it again",
                    ) from None  # the client's own words may hold a key
                log.warning("attempt %d at %s failed: %s", number, self.where, said)
            self._clock.sleep_s(pause)
            pause, number = 2 * pause, number + 1


def s3_shelf(root: str, clock: Clock | None = None) -> RemoteShelf:
    """Return the shelf at a bucket and prefix, with what the environment says of the server."""
    _check_credentials_file()
    options: dict[str, Any] = {}
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    if endpoint is not None:
        server = urlsplit(endpoint)
        if server.scheme not in ("http", "https") or not server.hostname or "@" in endpoint:
            raise ConfigError(
                "this is no address of a server", where=ENDPOINTS[1], expected="https://HOST:PORT"
            )
        if server.scheme == "http" and server.hostname not in LOOPBACK:
            log.warning("blobs travel to the server without encryption: use https")
        options = {"scheme": server.scheme, "endpoint_override": server.netloc}
    files = S3FileSystem(
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        background_writes=False,
        allow_delayed_open=True,  # a small file is one request
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=CLIENT_ATTEMPTS),
        **options,
    )
    # Two shelves are two clients: the library would hand out the first one for both.
    return RemoteShelf(ArrowFSWrapper(files, skip_instance_cache=True), root, clock)


def _check_credentials_file() -> None:
    named = os.environ.get(CREDENTIALS_FILE)
    if named is None:
        return
    path = Path(named)
    if not path.is_file():
        raise ConfigError("there is no file of keys here", where=CREDENTIALS_FILE, found=named)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            "others may read the file of keys",
            where=named,
            found=f"mode {mode:04o}",
            expected="mode 0600",
            remedy=f"Run chmod 600 {named}",
        )


def _clean(error: OSError) -> str:
    """Return what went wrong in one line without any key."""
    said = " ".join(str(error).split())[:500]
    for name in SECRETS:
        if secret := os.environ.get(name):
            said = said.replace(secret, "***")
    return said
