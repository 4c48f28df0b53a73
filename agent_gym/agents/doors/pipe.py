"""``door/pipe``: any program that reads questions from standard input and answers on its output."""

from __future__ import annotations

import shlex
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from agent_gym.agents.doors.isolation import Caged, Isolation, start_caged
from agent_gym.agents.doors.line import Line
from agent_gym.agents.doors.remote import RemoteAgent
from agent_gym.agents.doors.words import DoorError, pack, unpack
from agent_gym.core.registry import register

NAME = "door/pipe"
LAST_WORDS_S = 1.0
"""How long a program that does not answer may take to end by itself, so that its exit is told."""


class PipeConfig(Isolation):
    """Which program decides, how it is held, and how long it may take."""

    command: tuple[str, ...] = Field(
        description="program and arguments; `python` is the interpreter that runs this"
    )
    process: Literal["episode", "worker"] = Field(
        default="episode", description="a fresh process for each episode, or one for all of them"
    )
    restarts: int = Field(
        default=0,
        ge=0,
        le=100,
        description="how often in an episode a lost process is started anew and asked again",
    )
    start_s: float = Field(default=10.0, gt=0, le=600, description="until it has answered hello")
    answer_s: float = Field(default=5.0, gt=0, le=600, description="for one answer")
    max_bytes: int = Field(default=65_536, ge=1_024, le=16 << 20, description="longest answer")

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_a_program(self) -> Self:
        if not self.command or not self.command[0]:
            raise ValueError("name a program")
        return self


class PipeChannel:
    """Keeps the process of one agent: starts it, asks it, and ends it with all that it began."""

    def __init__(self, config: PipeConfig) -> None:
        self._config = config
        self._caged: Caged | None = None
        self._line: Line | None = None
        self._greeted = False
        self.starts = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> PipeChannel:
        """Return a channel of the same kind; a process cannot be copied."""
        return PipeChannel(self._config)

    def begin(self) -> bool:
        """Have a process: a new one for a new episode, unless one serves them all."""
        if self._caged is not None and self._config.process == "worker":
            return False
        self.fail()
        self._caged = start_caged(self._config.command, self._config, self._config.start_s)
        self._line = Line(self._caged.process, self._config.max_bytes)
        self._greeted = False
        self.starts += 1
        return True

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask one question; the first answer may take as long as a start."""
        if self._line is None:
            raise DoorError("there is no process to ask", expected="begin before ask")
        limit_s = self._config.answer_s if self._greeted else self._config.start_s
        try:
            said = unpack(self._line.exchange(pack(message), limit_s))
        except DoorError as error:
            how = "" if self._caged is None else self._caged.end(LAST_WORDS_S)
            if error.what == "the agent's process ended":
                error.found = f"{how}: {error.found}" if error.found else how
            raise
        self._greeted = True
        return said

    def fail(self) -> None:
        """End the process."""
        if self._caged is not None:
            self._caged.end()
        self._caged = self._line = None

    def finish(self) -> None:
        """End the process if it was there for one episode."""
        if self._config.process == "episode":
            self.fail()


@register("agent", NAME, PipeConfig)
def pipe(config: PipeConfig) -> RemoteAgent:
    """Ask a program in any language, in a cage, by JSON lines over its pipes."""
    return RemoteAgent(NAME, PipeChannel(config), config.restarts)
