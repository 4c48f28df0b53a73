"""The public file of a snapshot: what was played, tick by tick, and nothing of the sealed truth.

Ticks are stored as differences, whole numbers all of them, one column after the other.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.registry import configure
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.content import REMEDY, content_hash, read_packed, write_packed
from agent_gym.markets.snapshot.law import BANDS, KINDS
from agent_gym.markets.snapshot.types import (
    VERSION,
    Author,
    Columns,
    Group,
    PerpetualSpec,
    Post,
    PredictionSpec,
    Resolution,
    Snapshot,
    Whole,
)

SUFFIX = ".snapshot.xz"
KIND = "agent-gym/snapshot"
_POST_FIELDS = ("tick", "author", "market", "kind", "band", "sentiment", "wording")
SENTIMENT_DIGITS = 3


def body_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return all of a snapshot but its id as plain values."""
    columns = {
        one.name: _differences(getattr(snapshot.columns, one.name)) for one in fields(Columns)
    }
    return {
        "version": VERSION,
        "config": snapshot.config.model_dump(mode="json"),
        "predictions": [asdict(one) for one in snapshot.predictions],
        "perpetuals": [asdict(one) for one in snapshot.perpetuals],
        "authors": [asdict(one) for one in snapshot.authors],
        "groups": [{**asdict(one), "members": list(one.members)} for one in snapshot.groups],
        "posts": [[getattr(post, name) for name in _POST_FIELDS] for post in snapshot.posts],
        "resolutions": [asdict(one) for one in snapshot.resolutions],
        "columns": columns,
        "truth_hash": snapshot.truth_hash,
    }


def snapshot_from(body: dict[str, Any]) -> Snapshot:
    """Return the snapshot that a body describes; its id is the hash of the body."""
    posts = tuple(
        Post(f"post-{number}", **dict(zip(_POST_FIELDS, row, strict=True)))
        for number, row in enumerate(body["posts"], start=1)
    )
    return Snapshot(
        id=content_hash(body),
        config=configure(SnapshotConfig, body["config"], where="config of a snapshot"),
        predictions=tuple(PredictionSpec(**one) for one in body["predictions"]),
        perpetuals=tuple(PerpetualSpec(**one) for one in body["perpetuals"]),
        authors=tuple(Author(**one) for one in body["authors"]),
        groups=tuple(Group(**{**one, "members": tuple(one["members"])}) for one in body["groups"]),
        posts=posts,
        resolutions=tuple(Resolution(**one) for one in body["resolutions"]),
        columns=Columns(**{name: _sums(rows) for name, rows in body["columns"].items()}),
        truth_hash=body["truth_hash"],
    )


def save_snapshot(snapshot: Snapshot, folder: Path) -> Path:
    """Write the public file of a snapshot and return its path."""
    path = folder / f"{snapshot.id}{SUFFIX}"
    write_packed(path, KIND, body_of(snapshot))
    return path


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot and check that it is whole, unchanged and in order."""
    body = read_packed(path, KIND)["body"]
    if body.get("version") != VERSION:
        raise DataError(
            "a snapshot of another version",
            where=str(path),
            found=body.get("version"),
            expected=VERSION,
            remedy=REMEDY,
        )
    try:
        snapshot = snapshot_from(body)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            "a snapshot file lacks something, or holds what does not belong there",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy=REMEDY,
        ) from error
    for problem in problems(snapshot):
        raise DataError(problem, where=str(path), remedy=REMEDY)
    return snapshot


def problems(snapshot: Snapshot) -> list[str]:
    """Return in words what is out of order in a snapshot: nothing, if it can be played."""
    rows, found = snapshot.ticks + 1, []
    n_q, n_p = len(snapshot.predictions), len(snapshot.perpetuals)
    for one in fields(Columns):
        wanted = (rows, n_q if one.name in ("noise", "informed") else n_p)
        shape = getattr(snapshot.columns, one.name).shape
        if shape != wanted:
            found.append(f"column {one.name} has the shape {shape}, not {wanted}")
    if not found and (snapshot.columns.close <= 0).any():
        found.append("a price is not above 0")
    if len(set(snapshot.market_ids)) != n_q + n_p:
        found.append("two markets have one id")
    answered = {one.market: one.tick for one in snapshot.resolutions}
    found += [
        f"{market.id} is not resolved at tick {market.resolve_tick}"
        for market in snapshot.predictions
        if answered.get(market.id) != market.resolve_tick
    ]
    if [post.tick for post in snapshot.posts] != sorted(post.tick for post in snapshot.posts):
        found.append("the posts are not in order of time")
    found += [fault for post in snapshot.posts for fault in _faults(snapshot, post)][:1]
    return found


def _faults(snapshot: Snapshot, post: Post) -> list[str]:
    right = (
        0 < post.tick <= snapshot.ticks
        and post.author in snapshot.author_of
        and post.market in snapshot.market_ids
        and post.kind in KINDS
        and post.band in BANDS
    )
    return [] if right else [f"{post.id} has a tick, author, market, kind or band that is unknown"]


def _differences(rows: Whole) -> list[list[int]]:
    """Return each column as its first value and what was added from tick to tick."""
    first = np.zeros((1, rows.shape[1]), dtype=np.int64)
    columns: list[list[int]] = np.diff(rows, axis=0, prepend=first).T.tolist()
    return columns


def _sums(columns: list[list[int]]) -> Whole:
    table = np.array(columns, dtype=np.int64).T
    rows: Whole = np.ascontiguousarray(np.cumsum(table, axis=0))
    rows.setflags(write=False)
    return rows
