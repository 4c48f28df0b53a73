"""The models that are known: signed artifacts with a version each, in one registry."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Row, insert, select

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.pipeline.registry.artifacts import ArtifactStore, VerifiedArtifact
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.ledger import HistoryEntry, Ledger
from agent_gym.pipeline.registry.refusals import RefusedArtifact
from agent_gym.pipeline.registry.sealed import MAX_LOOKS, SealedBudget
from agent_gym.rollouts.database import TrainedModel
from agent_gym.rollouts.database.connection import Database

FIRST_VERSION = "v1.0.0"
VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)\Z")
SHORTEST_PREFIX = 8


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model by its hash and version."""

    model_hash: str
    version: str
    status: str
    base_model: str | None
    batch_id: str | None
    created_ns: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def next_version(versions: list[str]) -> str:
    """Return the version after the highest one.

    Example:
        >>> next_version([]), next_version(["v1.0.9", "v1.0.10"])
        ('v1.0.0', 'v1.0.11')
    """
    known = [tuple(map(int, found.groups())) for name in versions if (found := VERSION.match(name))]
    if not known:
        return FIRST_VERSION
    major, minor, patch = max(known)
    return f"v{major}.{minor}.{patch + 1}"


class ModelRegistry:
    """Artifacts on disk, their versions and everything that happened to them in the database.

    Attributes:
        sealed: Looks at sealed sets and their verdicts.
        ledger: Transactions and history.
    """

    def __init__(self, artifacts: ArtifactStore, ledger: Ledger, max_looks: int) -> None:
        self.artifacts, self.ledger = artifacts, ledger
        self.sealed = SealedBudget(ledger, max_looks)

    @classmethod
    def open(
        cls,
        database: Database,
        folder: Path | None = None,
        *,
        clock: Clock | None = None,
        max_looks: int = MAX_LOOKS,
    ) -> Self:
        """Open or make a registry.

        Args:
            database: That of the trajectory store.
            folder: Where artifacts and keys lie; ``models`` in the results if it is not given.
            clock: Tells the time.
            max_looks: How often a sealed set may be looked at.
        """
        place = (folder or home() / "models").absolute()
        store = ArtifactStore(place / "artifacts", KeyRing.open(place / "keys"))
        return cls(store, Ledger(database, clock or SystemClock()), max_looks)

    def add(
        self, source: Path, *, batch_id: str | None = None, base_model: str | None = None
    ) -> RegisteredModel:
        """Copy, sign and register an artifact; the same one again changes nothing.

        Args:
            source: Folder that training has written (``agents.artifact``).
            batch_id: What it was trained on.
            base_model: What it was trained from.
        """
        kept = self.artifacts.put(source)
        with self.ledger.change() as change:
            known = change.connection.execute(_models()).all()
            if not any(row.model_id == kept.model_hash for row in known):
                version = next_version([row.version for row in known])
                new: dict[str, Any] = {
                    "model_id": kept.model_hash,
                    "version": version,
                    "base_model": base_model,
                    "batch_id": batch_id,
                    "status": "ready",
                    "storage_path": str(kept.folder),
                    "eval_metrics": {},
                    "created_ns": change.at_ns,
                }
                change.connection.execute(insert(TrainedModel), [new])
                change.say("registered", model=kept.model_hash, version=version)
        return self.find(kept.model_hash)

    def load(self, model: str) -> VerifiedArtifact:
        """Return the artifact of a model, checked; a refusal is written into the history."""
        model_hash = self.find(model).model_hash
        try:
            return self.artifacts.load(model_hash)
        except RefusedArtifact as error:
            with self.ledger.change() as change:
                change.say("artifact refused", model=model_hash, found=str(error.found))
            raise

    def find(self, name: str) -> RegisteredModel:
        """Return a model by its version, its hash, or the first digits of it."""
        known = self.models()
        found = [model for model in known if name in (model.model_hash, model.version)]
        if not found and len(name) >= SHORTEST_PREFIX:
            found = [model for model in known if model.model_hash.startswith(name)]
        if len(found) != 1:
            raise ConfigError(
                "several models begin like this" if found else "there is no such model",
                found=name[:80],
                expected=", ".join(model.version for model in known[-5:]) or None,
                remedy="`agent-gym registry list` shows them",
            )
        return found[0]

    def models(self) -> tuple[RegisteredModel, ...]:
        """Return all models, oldest first."""
        with self.ledger.look() as (connection, _):
            return tuple(_model(row) for row in connection.execute(_models()))

    def verify(self, model: str | None = None) -> tuple[str, ...]:
        """Check a model, or every model and the history; return what is wrong, in words."""
        asked = self.models() if model is None else (self.find(model),)
        wrong = []
        for each in asked:
            try:
                self.load(each.model_hash)
            except RefusedArtifact as error:
                wrong.append(f"{each.version} {each.model_hash[:12]}: {error.found}")
        if model is None:
            wrong += [f"history: {found}" for found in self.ledger.check_history()]
        return tuple(wrong)

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return everything that has happened, oldest first."""
        return self.ledger.history()


def _models() -> Any:
    return select(TrainedModel.__table__).order_by(TrainedModel.id)


def _model(row: Row[Any]) -> RegisteredModel:
    return RegisteredModel(
        row.model_id, row.version, row.status, row.base_model, row.batch_id, row.created_ns
    )
