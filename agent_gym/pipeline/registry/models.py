"""The models that are known: signed artifacts with a version each, in one registry."""

from __future__ import annotations

import logging
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Row, insert, select

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import home
from agent_gym.pipeline.registry.artifacts import ArtifactStore, VerifiedArtifact
from agent_gym.pipeline.registry.audit import (
    NO_ANCHOR,
    Anchor,
    check_anchor,
    make_anchor,
    read_anchor,
    write_anchor,
)
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.ledger import HistoryEntry, Ledger
from agent_gym.pipeline.registry.publication import Publication
from agent_gym.pipeline.registry.refusals import RefusedArtifact
from agent_gym.pipeline.registry.sealed import MAX_LOOKS, SealedBudget
from agent_gym.rollouts.blobs import blobs_url, open_blobs
from agent_gym.rollouts.database import TrainedModel
from agent_gym.rollouts.database.connection import Database

FIRST_VERSION = "v1.0.0"
VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)\Z")
SHORTEST_PREFIX = 8
HEAD = "history.anchor.json"

log = logging.getLogger(__name__)


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
        head: File with the last anchor of the history.
    """

    def __init__(
        self, artifacts: ArtifactStore, ledger: Ledger, max_looks: int, clock: Clock
    ) -> None:
        self.artifacts, self.ledger, self._clock = artifacts, ledger, clock
        self.sealed = SealedBudget(ledger, max_looks)
        self.head = artifacts.keys.folder.parent / HEAD
        ledger.told = self._keep_head

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
        now = clock or SystemClock()
        published = blobs_url() is not None
        store = ArtifactStore(
            place / "artifacts",
            KeyRing.open(place / "keys"),
            clock=now,
            publication=Publication(open_blobs("models", place / "blobs")) if published else None,
        )
        return cls(store, Ledger(database, now), max_looks, now)

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
                told = {"model": kept.model_hash, "version": version, "manifest": kept.described}
                change.say("registered", **told)
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
            wrong += [f"history: {found}" for found in self.audit() if found != NO_ANCHOR]
        return tuple(wrong)

    # Keys and the audit of the history.

    def rotate_key(self) -> KeyRing:
        """Sign with another key from now on, and sign every model that is good with it."""
        good = [model.model_hash for model in self.models() if not self.verify(model.model_hash)]
        before = self.artifacts.keys
        self.artifacts.keys = before.rotated(self._clock.now_ns())
        with self.ledger.change() as change:
            change.say("key rotated", key=self.artifacts.keys.id, before=before.id)
        for model in good:
            self.sign(model)
        return self.artifacts.keys

    def revoke_key(self, key: str, reason: str) -> KeyRing:
        """Let nothing that a key has signed count any more."""
        self.artifacts.keys = self.artifacts.keys.revoked(key, reason, self._clock.now_ns())
        with self.ledger.change() as change:
            change.say("key revoked", key=key, reason=reason)
        return self.artifacts.keys

    def sign(self, model: str) -> VerifiedArtifact:
        """Sign a registered model with the present key, once it is what was registered."""
        model_hash = self.find(model).model_hash
        told = (e.data for e in self.history() if e.event in ("registered", "signed again"))
        known = [data.get("manifest") for data in told if data.get("model") == model_hash]
        signed = self.artifacts.sign(model_hash, known[-1] if known else None)
        with self.ledger.change() as change:
            said = {"model": model_hash, "key": signed.signed_by, "manifest": signed.described}
            change.say("signed again", **said)
        return signed

    def audit(self, *more: Anchor) -> tuple[str, ...]:
        """Return in words what is wrong with the history, by its chain and by its anchors.

        Args:
            more: Anchors that were kept elsewhere.
        """
        entries, keys = self.history(), self.artifacts.keys
        found = list(self.ledger.check_history())
        anchors = [*more, *([read_anchor(self.head)] if self.head.exists() else [])]
        if entries and not anchors:
            found.append(NO_ANCHOR)
        checked = (check_anchor(anchor, keys, entries) for anchor in anchors)
        return (*found, *dict.fromkeys(words for words in checked if words is not None))

    def anchor(self) -> Anchor:
        """Return a signed note of how long the history is now, to be kept elsewhere."""
        with self.ledger.look() as (_, pointer):
            return self._anchored(pointer.history_length, pointer.history_hash)

    def anchor_anew(self, reason: str) -> Anchor:
        """Take the history as it is for good, after a restore from a copy; say why."""
        if not reason.strip():
            raise ConfigError("an anchor anew has a reason", remedy="Say why")
        self.head.unlink(missing_ok=True)
        with self.ledger.change() as change:
            change.say("anchored anew", reason=reason)
        return read_anchor(self.head)

    def publish_all(self) -> tuple[str, ...]:
        """Send every model that lies here alone to where models are published."""
        published = self.artifacts.publication
        if published is None:
            return ()
        there = published.hashes()
        sent = [model.model_hash for model in self.models() if model.model_hash not in there]
        for model_hash in sent:
            published.publish(self.load(model_hash).folder.parent, model_hash)
        return tuple(sent)

    def _keep_head(self, length: int, last: str) -> None:
        """Anchor what was just written; the change is kept already, so a failure is only told."""
        try:
            write_anchor(self.head, self._anchored(length, last))
        except (OSError, StoreError, DataError) as error:
            log.error("the history could not be anchored: %s", error)

    def _anchored(self, length: int, last: str) -> Anchor:
        return make_anchor(self.artifacts.keys, length, last, self._clock.now_ns())

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return everything that has happened, oldest first."""
        return self.ledger.history()


def _models() -> Any:
    return select(TrainedModel.__table__).order_by(TrainedModel.id)


def _model(row: Row[Any]) -> RegisteredModel:
    return RegisteredModel(
        row.model_id, row.version, row.status, row.base_model, row.batch_id, row.created_ns
    )
