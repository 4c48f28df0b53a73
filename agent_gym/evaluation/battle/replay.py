"""A replay: one battle as a text file that can be played again, to the bit.

The first line says what was played and how it ended, every further line holds one step, the last
one seals all lines before it. Nothing that can be computed is kept: who moves where follows from
the map, the seed and the actions, and the hash of the state after each step proves that it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.files import atomic_path
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle.maps import RewardKind

ENDING = ".battle.jsonl"
LARGEST_BYTES = 64 << 20
LARGEST_LINE = 1 << 20
HASH = r"^[0-9a-f]{64}$"
Mode: TypeAlias = Literal["script", "greedy", "drawn"]
Scope: TypeAlias = Literal["team", "agents"]
Told: TypeAlias = float | tuple[float, ...]
"""What a signal says at one step: one number for the team, or one an agent."""


class Header(Config):
    """What was played, by whom, and how it ended."""

    format: Literal["agent_gym.battle_replay/1"] = "agent_gym.battle_replay/1"
    engine: int = Field(description="version of the engine that played it")
    map: str
    reward: RewardKind
    map_hash: str = Field(description="hash of all that decides a battle but the seed")
    seed: int = Field(ge=0)
    episode: int = Field(ge=1, description="which episode under the seed, counted from 1")
    player: str = Field(min_length=1, max_length=200, description="who decided")
    checkpoint: str | None = Field(description="hash of the policy; null for a script")
    mode: Mode = Field(description="greedy: always the likeliest action; drawn: by chance")
    agents: int = Field(ge=1)
    steps: int = Field(ge=1)
    won: bool
    total_reward: float
    signals: dict[str, Scope] = Field(description="what was recorded beside actions, by name")
    start: str = Field(pattern=HASH, description="hash of the state before the first step")
    versions: dict[str, str]


class Row(Config):
    """One step: what was done, what was thought while deciding, and the state it led to."""

    step: int = Field(ge=1)
    actions: tuple[int, ...]
    state: str = Field(pattern=HASH)
    signals: dict[str, Told] = Field(default_factory=dict)


class _Seal(Config):
    seal: str = Field(pattern=HASH)


_Line = TypeVar("_Line", Header, Row, _Seal)


@dataclass(frozen=True)
class Replay:
    """A recorded battle. ``place`` says where it was read, for who is told of an error."""

    header: Header
    rows: tuple[Row, ...]
    seal: str
    place: str = "replay"

    @cached_property
    def actions(self) -> NDArray[np.int64]:
        """Return what every agent did at every step."""
        return np.array([row.actions for row in self.rows], np.int64)

    def signal(self, name: str) -> FloatArray | None:
        """Return a signal, ``[steps, 1]`` of the team or ``[steps, agents]``; None if absent."""
        if name not in self.header.signals:
            return None
        return np.array([np.atleast_1d(row.signals[name]) for row in self.rows], np.float64)

    @cached_property
    def text(self) -> str:
        """Return the file, in the one way in which it is written."""
        return "".join(f"{line}\n" for line in chain(self._lines(), [_text(_Seal(seal=self.seal))]))

    def sealed(self) -> Replay:
        """Return the same replay with the seal that belongs to what is in it."""
        return replace(self, seal=self.right_seal)

    @property
    def right_seal(self) -> str:
        """Return the hash of all that the replay says."""
        return sha256("\n".join(self._lines()).encode()).hexdigest()

    def _lines(self) -> Iterator[str]:
        return (_text(line) for line in (self.header, *self.rows))


def write_replay(path: Path, replay: Replay) -> None:
    """Write a replay, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(replay.text, encoding="utf-8")


def read_replay(path: Path) -> Replay:
    """Read a replay whose parts fit together; whether the battle went that way is not asked."""
    lines = _lines_of(path)
    header = _parsed(Header, lines[0], f"{path}, line 1", "the first line of a replay")
    body, last = lines[1:-1], lines[-1]
    rows: list[Row] = []
    for number, line in enumerate(body[: header.steps], start=1):
        where = f"{path}, step {number}"
        row = _parsed(Row, line, where, "a step")
        _check_row(row, number, header, where)
        rows.append(row)
    _check_length(len(body), header.steps, path)
    seal = _parsed(_Seal, last, f"{path}, last line", "the seal")
    return Replay(header, tuple(rows), seal.seal, str(path))


def read_header(path: Path) -> Header:
    """Read what a replay says of itself; its steps and its seal are not looked at."""
    try:
        with path.open("rb") as file:
            line = file.readline(LARGEST_LINE).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a replay cannot be read", where=str(path), found=str(error)) from error
    return _parsed(Header, line.rstrip("\n"), f"{path}, line 1", "the first line of a replay")


def replays_in(folder: Path) -> dict[str, Path]:
    """Return the replays in a folder by name; links that lead elsewhere are left out."""
    found = sorted(folder.glob(f"*{ENDING}"))
    return {path.name: path for path in found if path.resolve() == folder.resolve() / path.name}


def scopes_of(signals: Mapping[str, FloatArray]) -> dict[str, Scope]:
    """Return whether each signal has one number a step or one an agent."""
    return {name: "team" if array.ndim == 1 else "agents" for name, array in signals.items()}


def told(signals: Mapping[str, FloatArray], step: int) -> dict[str, Told]:
    """Return what signals say at a step, as plain numbers."""
    made: dict[str, Told] = {}
    for name, array in signals.items():
        here = array[step]
        made[name] = float(here) if array.ndim == 1 else tuple(float(each) for each in here)
    return made


def _lines_of(path: Path) -> Sequence[str]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise DataError(
                "this is too large for a replay",
                where=str(path),
                found=f"{path.stat().st_size:,} bytes",
                expected=f"at most {LARGEST_BYTES:,}",
            )
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise DataError(
            "a replay cannot be read",
            where=str(path),
            found=error.strerror,
            remedy="Name a file that `agent-gym marl record` has written",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError("this is no replay", where=str(path), found="no text") from error
    lines = lines[:-1] if not lines[-1] else lines
    if len(lines) < 3:
        raise DataError(
            "this is no replay, or only its beginning",
            where=str(path),
            found=f"{len(lines)} lines",
            expected="a header, at least one step, and a seal",
        )
    return lines


def _parsed(kind: type[_Line], line: str, where: str, what: str) -> _Line:
    try:
        return kind.model_validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        found = f"{field}: {first['msg']}"
        raise DataError(f"{what} cannot be read", where=where, found=found) from None


def _check_row(row: Row, number: int, header: Header, where: str) -> None:
    if row.step != number:
        raise DataError(
            "a step is missing or out of order", where=where, found=row.step, expected=number
        )
    if len(row.actions) != header.agents:
        raise DataError(
            "every agent acts at every step",
            where=where,
            found=f"{len(row.actions)} actions",
            expected=header.agents,
        )
    found: dict[str, Scope] = {
        name: "agents" if isinstance(each, tuple) else "team" for name, each in row.signals.items()
    }
    lengths = {len(each) for each in row.signals.values() if isinstance(each, tuple)}
    if found != header.signals or lengths - {header.agents}:
        raise DataError(
            "signals are not those of the header", where=where, found=found, expected=header.signals
        )


def _check_length(found: int, expected: int, path: Path) -> None:
    if found != expected:
        raise DataError(
            "the replay has steps too few or too many",
            where=f"{path}, step {min(found, expected) + 1}",
            found=f"{found} steps",
            expected=f"{expected}, as the header says",
        )


def _text(line: Config) -> str:
    return line.model_dump_json()
