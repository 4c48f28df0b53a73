"""Where a record came from, and which of two origins taints more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

from agent_gym.core.errors import DataError

LARGEST_T = 2**63 - 1


class ProvenanceError(DataError):
    """A record is not of the origin that was asked for."""


class Source(IntEnum):
    """Who made a record, by how much it taints what is learned from it.

    PRIMARY is what the agent itself met in the world that it is to know; SYNTHETIC was generated in
    its place; IMAGINED was dreamt by a model; ECHO was made by others that live beside it.
    """

    PRIMARY = 0
    SYNTHETIC = 1
    IMAGINED = 2
    ECHO = 3

    def join(self, other: Source) -> Source:
        """Return the worse of two.

        Example:
            >>> Source.PRIMARY.join(Source.ECHO).name
            'ECHO'
        """
        return max(self, other)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one record came from.

    Attributes:
        source: Who made it.
        run_id: The run in which it was made.
        t: Its time in that run: a bar, a step or nanoseconds.
        parent_hash: ``digest`` of the record, or fingerprint of the data, that it was made from.
    """

    source: Source
    run_id: str
    t: int
    parent_hash: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.source, Source):
            raise ProvenanceError("a record has a source", found=self.source, expected="a Source")
        if not self.run_id:
            raise ProvenanceError("a record belongs to a run", where="run_id", found=repr(""))
        if abs(self.t) > LARGEST_T:
            raise ProvenanceError("a time has 64 bits", where="t", found=self.t)

    @property
    def digest(self) -> str:
        """Return the SHA-256 by which records that come from this one name it."""
        fields = [self.source.name, self.run_id, self.t, self.parent_hash]
        return sha256(json.dumps(fields).encode()).hexdigest()

    def combine(self, other: Provenance) -> Provenance:
        """Return the worse of two: the more tainted source, and of one source the later record."""
        return max(self, other, key=_rank)

    def child(self, source: Source, run_id: str, t: int) -> Provenance:
        """Return the provenance of a record made from this one; it is never cleaner.

        Example:
            >>> seen = Provenance(Source.ECHO, "crowd", 3)
            >>> seen.child(Source.IMAGINED, "dream", 0).source.name
            'ECHO'
        """
        return Provenance(self.source.join(source), run_id, t, self.digest)


def _rank(record: Provenance) -> tuple[int, int, str, str]:
    return record.source, record.t, record.run_id, record.parent_hash
