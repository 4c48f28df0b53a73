"""How long a key has been good: since when it signs, when it was retired, whether it was revoked.

A retired key signs nothing more; what it signed before stays good. A revoked key is good for
nothing, whenever it signed: who has stolen a key can write any time into a signature.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json

RING = "ring.json"
FORMAT = "agent_gym.keys/1"
LARGEST_RING_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class KeyStanding:
    """What is known of a key; None where nothing has happened."""

    since_ns: int | None = None
    retired_ns: int | None = None
    revoked_ns: int | None = None
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    def refusal(self, signed_ns: int | None) -> str | None:
        """Return why a signature of this time does not count, None if it does."""
        if self.revoked_ns is not None:
            return "revoked"
        late = signed_ns is not None and self.retired_ns is not None
        return "retired" if late and (signed_ns or 0) > (self.retired_ns or 0) else None


def read_standings(folder: Path) -> dict[str, KeyStanding]:
    """Return what is written down of the keys in a folder."""
    path = folder / RING
    if not path.exists():
        return {}
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST_RING_BYTES:
            raise ValueError("a link, or a file that is too large")
        said = json.loads(path.read_bytes())
        if said["format"] != FORMAT:
            raise ValueError(f"format {said['format']!r}")
        return {str(key): KeyStanding(**values) for key, values in said["keys"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            "the list of keys is damaged",
            where=str(path),
            found=str(error),
            remedy="Restore it from a copy: it says which keys were revoked",
        ) from error


def write_standings(folder: Path, standings: dict[str, KeyStanding]) -> None:
    """Write down what is known of the keys."""
    keys = {key: standing.as_dict() for key, standing in sorted(standings.items())}
    write_json(folder / RING, {"format": FORMAT, "keys": keys})
