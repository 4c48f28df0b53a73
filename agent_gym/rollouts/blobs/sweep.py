"""What nobody names goes: into the trash first, and for good after it has lain there a while.

A blob is named by the hash of its bytes, so taking it back out of the trash is always right. That
makes the removal safe beside writers: whatever was put, found to be there already or named while
a sweep is under way is read from the trash, and the next sweep takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import StoreError
from agent_gym.rollouts.blobs.shelf import Entry
from agent_gym.rollouts.blobs.store import TRASH, BlobStore

GRACE_NS = DAY_NS
UNFINISHED = ".tmp"


@dataclass(slots=True)
class SweepReport:
    """What a sweep has done, or would do.

    Attributes:
        named: Blobs that somebody names; they stay.
        young: Blobs that nobody names yet; put so lately that they stay.
        trashed: Blobs that go into the trash.
        deleted: Blobs that go for good, after a while in the trash.
        restored: Blobs in the trash that somebody names after all.
        leftovers: Files that killed writers have left half-written.
        uncached: Copies in the cache that can be fetched again.
        bytes_freed: How much room becomes free.
    """

    named: int = 0
    young: int = 0
    trashed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    leftovers: int = 0
    uncached: int = 0
    bytes_freed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SweepRules:
    """How a sweep goes about it.

    Attributes:
        now_ns: The present, by the clock that dates the blobs.
        grace_ns: How long a blob that nobody names stays, and then lies in the trash.
        dry_run: Only say what would be done.
        force: Sweep even if not one blob is named.
    """

    now_ns: int
    grace_ns: int = GRACE_NS
    dry_run: bool = False
    force: bool = False


def sweep(store: BlobStore, marks: Callable[[], Set[str]], rules: SweepRules) -> SweepReport:
    """Remove what nobody names.

    Args:
        store: The blobs.
        marks: Returns the hashes that are named. It is asked after the blobs have been listed, so
            that one which is put and named in between is seen as named.
        rules: How.

    Raises:
        StoreError: There are blobs, and not one of them is named: this is another database's store.
    """
    report = SweepReport()
    listed = list(store.entries())
    waiting = list(store.shelf.entries(TRASH))
    named = marks()
    if listed and not rules.force and not any(entry.name in named for entry in listed):
        raise StoreError(
            "nothing in this store is named by this database",
            where=store.shelf.where,
            found=f"{len(listed)} blobs, none of them named",
            remedy="Look whether database and store belong together; --force sweeps all the same",
        )
    for entry in listed:
        if entry.name in named:
            report.named += 1
        elif rules.now_ns - entry.changed_ns < rules.grace_ns:
            report.young += 1
        else:
            report.trashed.append(entry.name)
            if not rules.dry_run:
                store.shelf.move(store.name(entry.name), f"{TRASH}/{entry.name}{store.suffix}")
    for entry in waiting:
        _empty_trash(store, entry, named, report, rules)
    _tidy_up(store, {entry.name for entry in listed}, report, rules)
    return report


def _empty_trash(
    store: BlobStore, entry: Entry, named: Set[str], report: SweepReport, rules: SweepRules
) -> None:
    digest = entry.name.removeprefix(f"{TRASH}/").removesuffix(store.suffix)
    if digest in named:
        report.restored.append(digest)
        if not rules.dry_run:
            store.shelf.move(entry.name, store.name(digest))
    elif rules.now_ns - entry.changed_ns >= rules.grace_ns:
        report.deleted.append(digest)
        report.bytes_freed += entry.n_bytes
        if not rules.dry_run:
            store.shelf.remove(entry.name)


def _tidy_up(store: BlobStore, there: set[str], report: SweepReport, rules: SweepRules) -> None:
    """Remove old half-written files and, of a remote store, old copies in the cache."""
    for entry in list(store.near.entries()):
        name = entry.name.rpartition("/")[2]
        if rules.now_ns - entry.changed_ns < rules.grace_ns:
            continue
        if name.startswith(".") and name.endswith(UNFINISHED):
            report.leftovers += 1
        elif store.is_remote and name.removesuffix(store.suffix) in there:
            report.uncached += 1
        else:
            continue
        report.bytes_freed += entry.n_bytes
        if not rules.dry_run:
            store.near.remove(entry.name)
