"""Benchmark snapshots: recorded market places with something to learn and a sealed truth.

``config`` says what a snapshot is made of, ``law`` what its posts tell about the truth,
``generator`` makes it, ``public_file`` and ``sealed`` keep its two halves. What players meet
imports neither ``generator`` nor ``sealed``, and this door does not either.
"""

from agent_gym.markets.snapshot.config import SCENARIOS, Burst, SnapshotConfig
from agent_gym.markets.snapshot.law import NewsLaw, Reading, read_post
from agent_gym.markets.snapshot.public_file import load_snapshot, problems, save_snapshot
from agent_gym.markets.snapshot.types import Author, PerpetualSpec, Post, PredictionSpec, Snapshot

__all__ = [
    "SCENARIOS",
    "Author",
    "Burst",
    "NewsLaw",
    "PerpetualSpec",
    "Post",
    "PredictionSpec",
    "Reading",
    "Snapshot",
    "SnapshotConfig",
    "load_snapshot",
    "problems",
    "read_post",
    "save_snapshot",
]
