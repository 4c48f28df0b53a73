"""What stays of an episode: our own trace of it, and the folder in which a replay is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent_gym.core.errors import StoreError
from agent_gym.core.files import write_json
from agent_gym.envs.starcraft.messages import UnitLook

SCHEMA = 1
TRACE, METADATA = "trace.json", "metadata.json"
MOVING = ("x", "y", "hp", "shield", "target")
FIXED = ("kind", "max_hp", "max_shield")


@dataclass(slots=True)
class Trace:
    """Every unit at every moment of one episode, agents first; actions are those that were played.

    A target is what the game says a unit is engaged with; it tells it for agents alone.
    """

    agents: int
    frames: list[tuple[UnitLook, ...]] = field(default_factory=list)
    actions: list[list[int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain columns for JSON; there is one frame more than there are actions."""
        first = self.frames[0] if self.frames else ()
        return {
            "schema": SCHEMA,
            "agents": self.agents,
            "units": {name: [getattr(unit, name) for unit in first] for name in FIXED},
            "frames": [
                {name: [getattr(unit, name) for unit in frame] for name in MOVING}
                for frame in self.frames
            ],
            "actions": self.actions,
            "rewards": self.rewards,
        }


@dataclass(frozen=True, slots=True)
class Recording:
    """A replay that was saved, with what is beside it."""

    replay: Path
    trace: Path
    metadata: Path


def new_folder(place: Path, name: str) -> Path:
    """Make a folder that nobody has and return its full path: the name and the next free number.

    The game names a replay by the second, so two in one folder could overwrite each other.
    """
    place = place.expanduser().absolute()
    number = 1
    while True:
        folder = place / f"{name}-{number}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise StoreError(
                "cannot write here", where=str(folder), found=error.strerror
            ) from error
        else:
            return folder


def keep(replay: Path, trace: Trace, about: dict[str, Any]) -> Recording:
    """Write the trace and, last of all, the metadata: without them a replay is unfinished."""
    try:
        data = replay.read_bytes()
    except OSError as error:
        raise StoreError("the replay is not there", where=str(replay)) from error
    if not data:
        raise StoreError("the replay is empty", where=str(replay))
    kept = Recording(replay, replay.with_name(TRACE), replay.with_name(METADATA))
    write_json(kept.trace, trace.as_dict())
    metadata = {
        "schema": SCHEMA,
        "replay": replay.name,
        "replay_sha256": sha256(data).hexdigest(),
        "trace": TRACE,
        "trace_sha256": sha256(kept.trace.read_bytes()).hexdigest(),
        **about,
    }
    write_json(kept.metadata, metadata)
    return kept
