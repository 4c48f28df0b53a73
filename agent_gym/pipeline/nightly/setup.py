"""What a run was asked for, kept with it: enough to play any of its seeds again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.scenario import Subject

SETUP_SCHEMA = "agent_gym.setup/1"


class Setup(Struct, frozen=True, kw_only=True):
    """The whole question of a run.

    Attributes:
        suite: The suite as it was given; what was left at a default is left out.
        subject: Agent, desk, and the bot and the fault that was planted, if any.
        imports: Modules that register things without an entry point.
        date: Chooses the fresh seeds.
        code_hash: The code that played.
        packages: The hash of the sources of each top-level package.
        versions: Libraries, Python and machine.
        baseline: The baseline that the run was compared with.
        also: The hash of each file or folder that was named beside the packages.
        libraries: Version and hash of what was installed of each distribution that counts.
    """

    suite: dict[str, Any]
    subject: dict[str, Any]
    imports: tuple[str, ...]
    date: str
    code_hash: str
    packages: dict[str, str]
    versions: dict[str, str]
    baseline: str | None = None
    also: dict[str, str] = {}
    libraries: dict[str, str] = {}

    @property
    def bot_folder(self) -> Path | None:
        """Return where the code of the bot under test lies, if there is one."""
        bot = self.subject.get("bot")
        return None if bot is None else Path(bot["folder"])


def setup_document(setup: Setup) -> dict[str, Any]:
    """Return a setup as plain values."""
    fields: dict[str, Any] = msgspec.to_builtins(setup)
    return {"schema": SETUP_SCHEMA, **fields}


def read_setup(document: Mapping[str, Any]) -> Setup:
    """Return the setup that setup_document() described; ValueError if it is none."""
    fields = dict(document)
    if fields.pop("schema", None) != SETUP_SCHEMA:
        raise ValueError(f"not a setup of the form {SETUP_SCHEMA}")
    try:
        return msgspec.convert(fields, Setup)
    except msgspec.ValidationError as error:
        raise ValueError(f"a setup that cannot be read: {error}") from error


def subject_of(document: Mapping[str, Any]) -> Subject:
    """Return who was under test."""
    bot = document.get("bot")
    return Subject(
        desk=Ref.model_validate(document["desk"]),
        agent=Ref.model_validate(document["agent"]),
        plant=document.get("plant"),
        bot=None if bot is None else BotConfig.model_validate(bot),
    )


def changed_libraries(then: Setup, now: Setup) -> list[str]:
    """Return the names of libraries whose version, or what is installed of them, is another."""
    old, new = then.versions | then.libraries, now.versions | now.libraries
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
