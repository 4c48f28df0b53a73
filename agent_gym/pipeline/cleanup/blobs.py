"""The blobs of a workspace: how many there are, whether they are whole, and which may go."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import asdict, dataclass
from typing import Any

from agent_gym.pipeline.registry import ModelRegistry
from agent_gym.pipeline.registry.publication import Publication
from agent_gym.rollouts.blobs import BlobStore, SweepReport, SweepRules, sweep
from agent_gym.rollouts.blobs.store import DAMAGED, TRASH
from agent_gym.rollouts.database import TrajectoryStore


@dataclass(frozen=True, slots=True)
class PartStats:
    """How much there is of one kind of blobs."""

    part: str
    where: str
    blobs: int
    bytes: int
    unnamed: int
    trash: int
    damaged: int
    unsent: int
    cached_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of blobs, and who names them."""

    name: str
    blobs: BlobStore
    marks: Callable[[], Set[str]]

    def stats(self) -> PartStats:
        """Count what is there."""
        found, named = list(self.blobs.entries()), self.marks()
        cached = self.blobs.near.entries() if self.blobs.is_remote else iter(())
        return PartStats(
            part=self.name,
            where=self.blobs.shelf.where,
            blobs=len(found),
            bytes=sum(entry.n_bytes for entry in found),
            unnamed=sum(entry.name not in named for entry in found),
            trash=sum(1 for _ in self.blobs.shelf.entries(TRASH)),
            damaged=sum(1 for _ in self.blobs.shelf.entries(DAMAGED)),
            unsent=len(self.blobs.unsent()),
            cached_bytes=sum(entry.n_bytes for entry in cached),
        )


def parts_of(store: TrajectoryStore, registry: ModelRegistry) -> tuple[Part, ...]:
    """Return the kinds of blobs of a workspace: steps, and models if they are published."""
    steps = Part("steps", store.files.blobs, store.named_files)
    published = registry.artifacts.publication
    if published is None:
        return (steps,)
    return (steps, Part("models", published.blobs, lambda: _named_by(published)))


def verify(store: TrajectoryStore, registry: ModelRegistry) -> tuple[int, tuple[str, ...]]:
    """Read every byte; return how many blobs were looked at and what is wrong, in words.

    Damaged ones are set aside, and trajectories whose steps are lost are no longer trained on.
    """
    report = store.check()
    wrong = [f"steps {name} is damaged" for name in report.damaged]
    wrong += [f"steps {name} is missing" for name in report.missing]
    checked = report.checked
    published = registry.artifacts.publication
    if published is not None:
        named = _named_by(published)
        for digest in sorted(named):
            state = published.blobs.state(digest)
            if state == "damaged":
                published.blobs.set_aside(digest)
            if state != "whole":
                wrong.append(f"models {digest} is {state}")
        checked += len(named)
    return checked, tuple(wrong)


def collect(
    store: TrajectoryStore, registry: ModelRegistry, rules: SweepRules
) -> dict[str, SweepReport]:
    """Remove what no row, no recording that waits and no registered model names."""
    published = registry.artifacts.publication
    withdrawn: set[str] = set()
    if published is not None:
        known = {model.model_hash for model in registry.models()}
        for model_hash, changed_ns in published.hashes().items():
            if model_hash not in known and rules.now_ns - changed_ns >= rules.grace_ns:
                withdrawn.add(model_hash)
                if not rules.dry_run:
                    published.withdraw(model_hash)
    parts = {part.name: part for part in parts_of(store, registry)}
    if published is not None:
        parts["models"] = Part("models", published.blobs, lambda: _named_by(published, withdrawn))
    return {name: sweep(part.blobs, part.marks, rules) for name, part in parts.items()}


def _named_by(published: Publication, without: Set[str] = frozenset()) -> set[str]:
    """Return the blobs that records name; one that cannot be read stops everything."""
    named: set[str] = set()
    for model_hash in set(published.hashes()) - without:
        named |= set((published.record(model_hash) or {}).values())
    return named
