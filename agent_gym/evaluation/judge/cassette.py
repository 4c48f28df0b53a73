"""Recorded answers: a judge is asked once, and its answers are played back ever after.

A cassette is one JSON file. Each call lies under the hash of model, settings and prompt; a prompt
that differs in a single letter is another call, and one that is not there is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from pydantic import Field, ValidationError

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.core.registry import Config
from agent_gym.evaluation.judge.backend import (
    BackendFailed,
    ChatMessage,
    FailureKind,
    JudgeBackend,
    JudgeRequest,
    Refused,
    TimedOut,
)

FAILED: dict[FailureKind, type[BackendFailed]] = {
    "refused": Refused,
    "timeout": TimedOut,
    "unavailable": BackendFailed,
}


class Call(Config):
    """One question, and the answer or the failure that came back."""

    messages: tuple[tuple[Literal["system", "user", "assistant"], str], ...]
    answer: str | None = None
    failure: FailureKind | None = None
    words: str = ""


class Cassette(Config):
    """All calls of one judge with one setting."""

    format: Literal["agent-gym judge cassette 1"] = "agent-gym judge cassette 1"
    model: str
    version: str
    calls: dict[str, Call] = Field(default_factory=dict)


def load_cassette(path: Path) -> Cassette:
    """Return a cassette; a call that does not lie under its own hash is refused."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        cassette = Cassette.model_validate(found)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a cassette cannot be read", where=str(path), found=str(error)) from error
    except (ValueError, RecursionError) as error:
        what = "it is not JSON"
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DataError("this is no cassette of a judge", where=str(path), found=what) from error
    for key, call in cassette.calls.items():
        said = tuple(ChatMessage(role, text) for role, text in call.messages)
        if JudgeRequest("", said, {}).key(cassette.model, cassette.version) != key:
            raise DataError("a call of a cassette was changed", where=f"{path}, call {key}")
        if (call.answer is None) == (call.failure is None) or call.failure == "malformed":
            raise DataError("a call has an answer or a failure", where=f"{path}, call {key}")
    return cassette


@dataclass(frozen=True, slots=True)
class CassetteBackend:
    """Plays a cassette back; it speaks as the judge that was recorded."""

    cassette: Cassette
    where: str = "cassette"
    reads: Literal["messages"] = "messages"

    @classmethod
    def load(cls, path: Path) -> CassetteBackend:
        """Read a cassette from its file."""
        return cls(load_cassette(path), str(path))

    @property
    def model(self) -> str:
        """The model that was recorded."""
        return self.cassette.model

    @property
    def version(self) -> str:
        """The settings it was recorded with."""
        return self.cassette.version

    def answer(self, request: JudgeRequest) -> str:
        """Return the recorded answer, or fail as it failed then."""
        key = request.key(self.model, self.version)
        call = self.cassette.calls.get(key)
        if call is None:
            raise DataError(
                "this question is not on the cassette",
                where=self.where,
                found=f"call {key}, group {request.group_id}",
                remedy="Record again: another group, rubric, seed or number of passes asks others",
            )
        return played(call)


@dataclass(slots=True)
class RecordingBackend:
    """Asks a judge and keeps every call; what lies on the cassette already is not asked again."""

    backend: JudgeBackend
    path: Path
    reads: Literal["messages"] = "messages"
    _cassette: Cassette = field(init=False)
    _lock: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        if self.backend.reads != "messages":
            raise ConfigError(
                "a judge that looks up outcomes cannot be recorded",
                found=self.backend.model,
                remedy="Record a judge that knows the prompt alone",
            )
        fresh = Cassette(model=self.backend.model, version=self.backend.version)
        self._cassette = load_cassette(self.path) if self.path.exists() else fresh
        if (self._cassette.model, self._cassette.version) != (fresh.model, fresh.version):
            raise ConfigError(
                "a cassette holds calls of another judge or other settings",
                where=str(self.path),
                found=self._cassette.model,
                expected=fresh.model,
                remedy="Record on a new file",
            )

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.backend.model

    @property
    def version(self) -> str:
        """Its settings."""
        return self.backend.version

    def answer(self, request: JudgeRequest) -> str:
        """Ask, or play back what was asked before."""
        key = request.key(self.model, self.version)
        call = self._cassette.calls.get(key)
        if call is None:
            call = self._asked(request)
            with self._lock:
                calls = self._cassette.calls | {key: call}
                self._cassette = self._cassette.model_copy(update={"calls": calls})
                write_json(self.path, self._cassette.model_dump(mode="json"))
        return played(call)

    def _asked(self, request: JudgeRequest) -> Call:
        messages = tuple((one.role, one.content) for one in request.messages)
        try:
            return Call(messages=messages, answer=self.backend.answer(request))
        except BackendFailed as error:
            return Call(messages=messages, failure=error.kind, words=str(error))


def played(call: Call) -> str:
    """Return what came back then, or raise it."""
    if call.answer is not None:
        return call.answer
    raise FAILED[call.failure or "unavailable"](
        "the judge failed when it was recorded", found=call.words
    )
