"""Blobs: files named by the SHA-256 of their bytes, on this disk or on an S3-compatible server.

Belongs here: the store, its two shelves (a folder, a bucket), and the removal of what nobody names.
May import: core. The library for remote files is loaded only if a remote address is given.
Hands on: ``open_blobs``, and paths of local files whose bytes have been checked.
"""

from agent_gym.rollouts.blobs.place import BLOBS_VARIABLE, blobs_url, open_blobs
from agent_gym.rollouts.blobs.shelf import Entry, LocalShelf, Shelf
from agent_gym.rollouts.blobs.store import BlobState, BlobStore
from agent_gym.rollouts.blobs.sweep import SweepReport, SweepRules, sweep

__all__ = [
    "BLOBS_VARIABLE",
    "BlobState",
    "BlobStore",
    "Entry",
    "LocalShelf",
    "Shelf",
    "SweepReport",
    "SweepRules",
    "blobs_url",
    "open_blobs",
    "sweep",
]
