"""The gate between what was met and what others made; one way only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.gate.projection import Projection, project
from agent_gym.agents.gate.provenance import ProvenanceError, Source
from agent_gym.agents.gate.tagged import Tagged, aligned_tags
from agent_gym.agents.gate.tags import Tags
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

FLOOR_SHARE = 1.2


class GateConfig(Config):
    """How much of others may be felt, in nats."""

    kl_threshold: float = Field(
        default=0.01, gt=0.0, description="mean divergence of the policy with others from without"
    )
    leakage_bound: float = Field(
        default=0.002, gt=0.0, description="mean divergence of forecasts with others from without"
    )


@dataclass(frozen=True, slots=True)
class GateCounts:
    """What came to the gate so far, in rows.

    Attributes:
        admitted: Rows that went into batches.
        withheld: Rows that were not primary and were left out, or had their batch refused.
        refused_batches: Batches that were refused as a whole.
    """

    admitted: int = 0
    withheld: int = 0
    refused_batches: int = 0

    @property
    def idle(self) -> bool:
        """Return whether nothing ever had to be held back; such a gate has shown nothing."""
        return self.withheld == 0


class _Seal:
    """Only this module holds one, so only the gate can make a batch."""


_SEAL = _Seal()


@final
class PrimaryBatch:
    """Columns of which every row is primary; what a learner of a world model takes.

    Only ``AsymmetricGate`` makes one. A learner that asks for this type cannot be handed anything
    else: a type checker refuses arrays, and so does the constructor.
    """

    __slots__ = ("_columns", "_tags")

    def __init__(self, columns: Mapping[str, Tagged], tags: Tags, seal: _Seal) -> None:
        if seal is not _SEAL:
            raise ProvenanceError(
                "only the gate makes a batch to learn the world from",
                remedy="Call primary_batch() of an AsymmetricGate",
            )
        _require_primary(tags)
        self._columns = MappingProxyType({name: column.x for name, column in columns.items()})
        self._tags = tags

    def __len__(self) -> int:
        return len(self._tags)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns by name; their memory cannot be written to."""
        return self._columns

    @property
    def tags(self) -> Tags:
        """Return where each row came from."""
        return self._tags


class AsymmetricGate:
    """Lets primary rows through to world models, and others' influence on policies up to a bound.

    Example:
        >>> gate = AsymmetricGate(GateConfig())
        >>> met = Tagged(np.ones(3), Tags.of(Source.PRIMARY, "run", [0, 1, 2]))
        >>> len(gate.primary_batch({"close": met})), gate.counts.admitted
        (3, 3)
    """

    def __init__(self, config: GateConfig) -> None:
        self.config = config
        self._counts = GateCounts()

    @property
    def counts(self) -> GateCounts:
        """Return what came to the gate so far."""
        return self._counts

    def primary_batch(self, columns: Mapping[str, Tagged]) -> PrimaryBatch:
        """Return the columns as a batch; a single row that is not primary is an error."""
        tags = aligned_tags(columns)
        tainted = int(np.count_nonzero(~tags.primary))
        if tainted:
            self._count(withheld=tainted, refused=1)
        batch = PrimaryBatch(columns, tags, _SEAL)
        self._count(admitted=len(batch))
        return batch

    def sift(self, columns: Mapping[str, Tagged]) -> PrimaryBatch:
        """Return the primary rows as a batch, in their order; the others are counted and left."""
        tags = aligned_tags(columns)
        keep = np.flatnonzero(tags.primary)
        self._count(withheld=len(tags) - keep.size)
        return self.primary_batch({name: column[keep] for name, column in columns.items()})

    def project(self, logits_without: FloatArray, logits_with: FloatArray) -> Projection:
        """Return how far a policy may follow what others taught it.

        Args:
            logits_without: One row for each held-out primary state, one column an action, of the
                policy that learned from primary data alone.
            logits_with: The same of the policy that learned from others as well.
        """
        return project(logits_without, logits_with, self.config.kl_threshold)

    def leakage_limit(self, floor: float = 0.0) -> float:
        """Return the most that forecasts may differ, where two seeds alone differ by ``floor``."""
        return max(self.config.leakage_bound, FLOOR_SHARE * floor)

    def _count(self, admitted: int = 0, withheld: int = 0, refused: int = 0) -> None:
        now = self._counts
        self._counts = replace(
            now,
            admitted=now.admitted + admitted,
            withheld=now.withheld + withheld,
            refused_batches=now.refused_batches + refused,
        )


def _require_primary(tags: Tags) -> None:
    tainted = np.flatnonzero(~tags.primary)
    if tainted.size:
        raise ProvenanceError(
            "a world model learns from primary rows alone",
            where=f"row {int(tainted[0])}",
            found=", ".join(f"{n} {source.name.lower()}" for source, n in tags.counts().items()),
            expected=f"{len(tags)} {Source.PRIMARY.name.lower()}",
            remedy="Leave these rows out with sift(), if they belong to others",
        )
