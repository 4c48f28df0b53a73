"""The snapshots of one purpose: to learn from, to rehearse on, or for the gate alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_text
from agent_gym.core.manifest import fingerprint
from agent_gym.markets.snapshot.public_file import SUFFIX

SEAL = "only-for-the-gate.txt"
SEAL_WORDS = """The snapshots in this folder are for the promotion gate alone.
Every look at them is counted, and a look elsewhere would not be: who tunes by them fools the gate.
"""


@dataclass(frozen=True, slots=True)
class SnapshotSet:
    """Snapshots in a folder; the set is named by what is in it."""

    snapshots: tuple[Path, ...]

    @classmethod
    def of(cls, folder: Path) -> SnapshotSet:
        """Read which snapshots lie in a folder, in the order of their names."""
        found = tuple(sorted(folder.glob(f"*{SUFFIX}")))
        if not found:
            raise DataError(
                "there is no snapshot",
                where=str(folder),
                expected=f"files *{SUFFIX}",
                remedy="`agent-gym harness` or `agent-gym snapshot generate` makes them",
            )
        return cls(found)

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the snapshots, which are the names of their files."""
        return tuple(path.name.removesuffix(SUFFIX) for path in self.snapshots)

    @property
    def id(self) -> str:
        """Return the hash of the names, which are the hashes of what is inside."""
        return fingerprint([path.name for path in self.snapshots])


def seal(folder: Path) -> None:
    """Mark a folder as one for the gate alone."""
    if not (folder / SEAL).is_file():
        write_text(folder / SEAL, SEAL_WORDS)


def refuse_sealed(snapshots: Iterable[Path]) -> None:
    """Raise if a snapshot lies in a sealed folder: a look that nobody counts."""
    for path in snapshots:
        if (path.parent / SEAL).is_file():
            raise DataError(
                "this snapshot is for the promotion gate alone, which counts every look at it",
                where=str(path),
                found=SEAL,
                remedy="Play others: `agent-gym snapshot generate` makes them",
            )


def refuse_shared(sets: Iterable[tuple[str, SnapshotSet]]) -> None:
    """Raise if a snapshot is in two sets: what was learned from proves nothing."""
    seen: dict[str, str] = {}
    for name, each in sets:
        for snapshot_id in each.ids:
            if snapshot_id in seen:
                raise DataError(
                    "a snapshot is in two sets",
                    where=snapshot_id,
                    found=f"{seen[snapshot_id]} and {name}",
                    remedy="Remove it from one of the folders, the sealed one best",
                )
            seen[snapshot_id] = name
