"""The snapshots of one purpose: to learn from, to rehearse on, or for the gate alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import DataError
from agent_gym.core.manifest import fingerprint
from agent_gym.markets.snapshot.public_file import SUFFIX


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
    def id(self) -> str:
        """Return the hash of the names, which are the hashes of what is inside."""
        return fingerprint([path.name for path in self.snapshots])
