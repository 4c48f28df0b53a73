"""A bot of the user's as a subject: its command, and the folder that holds all of its code."""

from __future__ import annotations

import shlex
from pathlib import Path
from shutil import which
from typing import Any

from pydantic import Field, field_validator

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config

PYTHONS = ("python", "python3")


class BotConfig(Config):
    """A program that trades on a sandbox exchange.

    Everything in ``folder`` counts as its code: it is hashed every night and frozen with a
    baseline, and the program is run in it.
    """

    command: tuple[str, ...] = Field(
        min_length=1,
        description="program and arguments; `python` is the interpreter that runs this",
    )
    folder: Path | None = Field(
        default=None, description="its code; by default the folder of the file that is run"
    )
    limit_s: float = Field(
        default=60.0, gt=0.0, le=3_600.0, description="seconds of wall time for one session"
    )

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value

    def settled(self, beside: Path, where: str) -> BotConfig:
        """Return the same with a whole path as its folder, and a command that fits into it.

        Args:
            beside: The folder that paths are relative to.
            where: Who named it, for messages.
        """
        own = self._named(beside) if self.folder is None else beside / self.folder
        if own is None:
            raise ConfigError(
                "it cannot be seen which files the bot is made of",
                where=where,
                found=shlex.join(self.command),
                expected="a file of the bot in its command, or its folder",
                remedy="Say in which folder its code lies",
            )
        own = own.resolve()
        if not own.is_dir():
            raise ConfigError("the folder of the bot is not there", where=where, found=str(own))
        words = tuple(_inside(word, beside, own, where) for word in self.command)
        settled = self.model_copy(update={"command": words, "folder": own})
        settled.check(where)
        return settled

    def check(self, where: str) -> None:
        """Raise ConfigError unless there is such a program."""
        program = self.command[0]
        own = str((self.folder or Path()) / program)
        if program not in PYTHONS and which(program) is None and which(own) is None:
            raise ConfigError("there is no such program", where=where, found=program)

    def _named(self, beside: Path) -> Path | None:
        """Return the folder of the first file that the command names; a system's is nobody's."""
        for place, word in enumerate(self.command):
            path = beside / word
            if path.is_file() and (place > 0 or not Path(word).is_absolute()):
                return path.parent
        return None


def _inside(word: str, beside: Path, folder: Path, where: str) -> str:
    """Return a word of a command as it is said in the bot's folder."""
    files = [path for path in (folder / word, beside / word) if path.is_file()]
    if not files:
        return word
    for path in files:
        if path.resolve().is_relative_to(folder):
            return str(path.resolve().relative_to(folder))
    if Path(word).is_absolute() and which(word) is not None:
        return word  # a program of the system
    raise ConfigError(
        "a file of the bot lies outside of its folder, so it would not be frozen with it",
        where=where,
        found=word,
        expected=f"a file in {folder}",
        remedy="Name the folder that holds all of the bot's code",
    )
