"""Which shelf an address means. Without one, blobs stay in the workspace."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from agent_gym.core.errors import ConfigError
from agent_gym.rollouts.blobs.shelf import LocalShelf, Shelf
from agent_gym.rollouts.blobs.store import BlobStore

BLOBS_VARIABLE = "AGENT_GYM_BLOBS"
REMOTE = "agent_gym.rollouts.blobs.remote"
EXPECTED = "s3://BUCKET/PREFIX or file:///FOLDER"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?")


def blobs_url() -> str | None:
    """Return the address that ``AGENT_GYM_BLOBS`` gives; None means the workspace."""
    return os.environ.get(BLOBS_VARIABLE) or None


def open_blobs(part: str, folder: Path, suffix: str = "", url: str | None = None) -> BlobStore:
    """Return the blobs of one kind.

    Args:
        part: The kind, such as ``steps``: the folder of that name at a given address.
        folder: Where they lie if there is no address; the cache if the address is remote.
        suffix: How their names end.
        url: The address; ``AGENT_GYM_BLOBS`` if it is not given.
    """
    url = url or blobs_url()
    if url is None:
        return BlobStore(LocalShelf(folder), folder, suffix)
    place = _checked(url)
    if place.scheme == "file":
        there = Path(place.path) / part
        return BlobStore(LocalShelf(there), there, suffix)
    root = f"{place.netloc}{place.path.rstrip('/')}/{part}"
    shelf: Shelf = import_module(REMOTE).s3_shelf(root)
    return BlobStore(shelf, folder, suffix)


def _checked(url: str) -> SplitResult:
    """Return the parts of an address; one that may hold a secret is refused and not repeated."""
    place = urlsplit(url)
    if "@" in url or place.query or place.fragment:
        raise ConfigError(
            "an address of blobs holds no secrets and no options",
            where=BLOBS_VARIABLE,
            expected=EXPECTED,
            remedy="Give keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in the file that "
            "AWS_SHARED_CREDENTIALS_FILE names; the server as AWS_ENDPOINT_URL",
        )
    if place.scheme == "file" and not place.netloc and Path(place.path).is_absolute():
        return place
    well = _BUCKET.fullmatch(place.netloc) and _PREFIX.fullmatch(place.path)
    if place.scheme != "s3" or not well:
        raise ConfigError(
            "this is no address of blobs", where=BLOBS_VARIABLE, found=url[:80], expected=EXPECTED
        )
    return place
