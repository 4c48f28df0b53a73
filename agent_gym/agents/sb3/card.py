"""The card of a model: what it is, what it was made for, and the hashes of its files."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agent_gym.agents.sb3.config import CONFIGS, AgentConfig
from agent_gym.agents.sb3.spaces import ActionsSpec, ObservationSpec
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config, configure

FORMAT = "agent_gym.model/1"
CARD = "model.json"


class ModelCard(Config):
    """All about a model but its numbers.

    ``hashes`` holds the SHA-256 of each file. Under the card's own name is that of the card
    without it: it tells damage and carelessness, not malice, for whoever can write can also hash.
    """

    format: str = FORMAT
    algo: str
    agent: dict[str, Any] = Field(description="the settings of the algorithm")
    observations: ObservationSpec
    actions: ActionsSpec
    env: dict[str, Any] = Field(description="the environment it was trained in")
    normalize: dict[str, Any] | None = Field(description="what is normalised, and where it is cut")
    step: int = Field(ge=0, description="steps of training that came before")
    losses: dict[str, float] = Field(default_factory=dict, description="the last ones, by name")
    hashes: dict[str, str] = Field(default_factory=dict)
    manifest: dict[str, Any] = Field(default_factory=dict)

    @property
    def config(self) -> AgentConfig:
        """Return the settings of the algorithm."""
        return configure(CONFIGS[self.algo], self.agent, where=f"{CARD}: agent")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of the columns that it sees; without names they are numbered."""
        names = self.env.get("feature_names")
        return tuple(names) if names else tuple(f"obs_{i}" for i in range(self.observations.width))

    @property
    def levels(self) -> tuple[float, ...] | None:
        """Return the target positions behind its actions, if it was trained on a market."""
        levels = self.env.get("levels")
        return tuple(float(level) for level in levels) if levels and self.actions.n else None

    def sealed(self, files: dict[str, bytes]) -> ModelCard:
        """Return the card with the hashes of files and of itself."""
        hashes = {name: hash_of(content) for name, content in files.items()}
        card = self.model_copy(update={"hashes": hashes})
        return card.model_copy(update={"hashes": hashes | {CARD: hash_of(card.text().encode())}})

    def text(self) -> str:
        """Return the card as it is written."""
        return to_json(self.model_dump(mode="json")) + "\n"


def read_card(folder: Path) -> ModelCard:
    """Read a card; one with a single changed byte is refused."""
    path = folder / CARD
    content = read_bytes(path)
    try:
        card = ModelCard.model_validate(json.loads(content))
        same = card.text().encode() == content
    except (UnicodeError, ValueError, ValidationError) as error:
        raise _damaged(path, type(error).__name__) from error
    if card.format != FORMAT:
        raise DataError(
            "this model has another format", where=str(path), found=card.format, expected=FORMAT
        )
    hashes = {name: value for name, value in card.hashes.items() if name != CARD}
    bare = card.model_copy(update={"hashes": hashes})
    if not same or card.hashes.get(CARD) != hash_of(bare.text().encode()):
        raise _damaged(path, "other bytes than were written")
    if card.algo not in CONFIGS:
        raise DataError("no such algorithm", where=str(path), found=card.algo)
    return card


def read_checked(folder: Path, name: str, card: ModelCard) -> bytes:
    """Read a file of a model; one that differs from its card is refused."""
    content = read_bytes(folder / name)
    if card.hashes.get(name) != hash_of(content):
        raise _damaged(folder / name, "other bytes than were written")
    return content


def read_bytes(path: Path) -> bytes:
    """Read a file; the error names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            "a file of a model cannot be read",
            where=str(path),
            found=error.strerror,
            remedy="Name the folder that `agent-gym train` has written, such as .../best",
        ) from error


def hash_of(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return sha256(content).hexdigest()


def _damaged(path: Path, found: str) -> DataError:
    return DataError(
        f"{path.name} of a model is damaged",
        where=str(path),
        found=found,
        remedy="Take another copy of the model, or train it again",
    )
