"""What this side and the worker say to each other: one JSON object a line, a question, an answer.

    {"id": 3, "ask": "step", "actions": [1, 6, 1]}
    {"id": 3, "ok": {...}}   or   {"id": 3, "failed": {"kind": "game", "what": "..."}}

Both sides check what they get. The worker runs elsewhere and cannot import this module; it holds
the same number, and a change of any message here or there raises both.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from agent_gym.core.errors import ConfigError, VenueError

PROTOCOL = 1
LONGEST_LINE = 1 << 20
LONGEST_SHOWN = 200
T = TypeVar("T")


class GameLost(VenueError):
    """The worker or the game died, hung, or said what cannot be understood."""


class Failed(Struct, frozen=True, forbid_unknown_fields=True):
    """Why there is no answer: the ``setup`` is incomplete, the ``game`` broke, or we ask badly."""

    kind: Literal["setup", "game", "request"]
    what: str


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the worker."""

    id: int
    ok: Raw = Raw()
    failed: Failed | None = None


class Probed(Struct, frozen=True, forbid_unknown_fields=True):
    """The worker can import SMAC."""

    protocol: int
    python: str
    smac: str
    pysc2: str


class Opened(Struct, frozen=True, forbid_unknown_fields=True):
    """What SMAC says about the map."""

    protocol: int
    smac: str
    pysc2: str
    agents: int
    enemies: int
    actions: int
    observation: int
    state: int
    limit: int


class UnitLook(Struct, frozen=True, forbid_unknown_fields=True):
    """One unit; ``target`` counts units, agents first, and is -1 where the game tells none.

    ``kind`` is the game's own number for the type of the unit.
    """

    kind: int
    x: float
    y: float
    hp: float
    max_hp: float
    shield: float
    max_shield: float
    target: int


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """All that can be seen at one moment."""

    seen: list[list[float]]
    state: list[float]
    legal: list[list[bool]]
    units: list[UnitLook]


class Begun(Struct, frozen=True, forbid_unknown_fields=True):
    """An episode has begun."""

    game_version: str
    look: Look


class Stepped(Struct, frozen=True, forbid_unknown_fields=True):
    """What a step brought; ``limit`` says that time ran out."""

    look: Look
    reward: float
    ended: bool
    won: bool
    limit: bool


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the replay is."""

    path: str


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    """The game was told to go."""


def question(number: int, ask: str, fields: dict[str, Any]) -> bytes:
    """Return a question as a line."""
    return msgspec.json.encode({"id": number, "ask": ask, **fields}) + b"\n"


def read_answer(line: bytes, number: int, ask: str, kind: type[T]) -> T:
    """Return what a line says.

    Raises:
        ConfigError: The worker says that something is missing over there.
        GameLost: The line is not an answer to this question, or says that the game broke.
    """
    try:
        answer = msgspec.json.decode(line, type=Answer)
        if answer.failed is None and answer.id == number:
            return msgspec.json.decode(answer.ok, type=kind)
    except msgspec.MsgspecError as error:
        raise GameLost(
            "the worker gave an answer that is none",
            where=ask,
            found=f"{error}: {line[:LONGEST_SHOWN]!r}",
            expected=f"a line of protocol {PROTOCOL}",
        ) from error
    if answer.failed is None:
        raise GameLost(
            "the worker answers another question", where=ask, found=answer.id, expected=number
        )
    if answer.failed.kind == "setup":
        raise ConfigError(
            "StarCraft II is not set up",
            where=ask,
            found=answer.failed.what,
            remedy="`agent-gym doctor` says what is missing",
        )
    raise GameLost("the game failed", where=ask, found=answer.failed.what)
