"""Which snapshots files and folders on the command line name."""

from __future__ import annotations

from pathlib import Path

from agent_gym.core.errors import ConfigError
from agent_gym.markets.snapshot.public_file import SUFFIX


def snapshot_files(given: list[Path]) -> list[Path]:
    """Return the snapshots that files and folders name, in order; none is an error."""
    found = [
        path
        for one in given
        for path in (sorted(one.glob(f"*{SUFFIX}")) if one.is_dir() else [one])
    ]
    if not found:
        raise ConfigError(
            "there is no snapshot here",
            where=", ".join(str(one) for one in given),
            expected=f"files named *{SUFFIX}",
            remedy="Make some with `agent-gym snapshot generate`",
        )
    return found
