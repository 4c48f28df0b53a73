"""The seed tree: every generator is named, so order of creation never matters."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np


@dataclass(frozen=True, slots=True)
class Seeds:
    """A node of the seed tree; children are addressed by name, not by call order.

    Adding a consumer under a new name changes nobody else's numbers.

    Example:
        >>> Seeds(7).child("market").rng().random() == Seeds(7).child("market").rng().random()
        True
    """

    root: int
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.root < 0:
            raise ValueError(f"a seed is a whole number of at least 0, found {self.root}")

    def child(self, *names: str | int) -> Seeds:
        """Return the node below this one under the given names."""
        return Seeds(self.root, self.path + tuple(map(str, names)))

    def rng(self) -> np.random.Generator:
        """Return a fresh generator for this node."""
        key = tuple(_word(name) for name in self.path)
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.root, spawn_key=key))
        )

    def as_int(self) -> int:
        """Return a 31-bit integer seed for libraries that insist on one."""
        return int(self.rng().integers(2**31 - 1))

    def as_uint64(self) -> int:
        """Return a 64-bit key for kernels that hash instead of drawing."""
        return int(self.rng().integers(2**63 - 1))


def _word(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
