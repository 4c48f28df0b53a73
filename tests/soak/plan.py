"""What goes wrong, in which order: drawn from the seed alone, so that it can be had again.

Kinds come in rounds. Every round has each kind once, shuffled, so a short run that ends its first
round has seen them all.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from agent_gym.core.seeds import Seeds

SHARED = (
    "kill service",
    "stop service",
    "kill worker",
    "kill harness",
    "kill nightly",
    "kill recorder",
    "harness trains",
    "database locked",
    "disk full",
    "clock jump",
    "slow clients",
    "broken clients",
    "hostile bodies",
)
KINDS = {
    "sqlite": SHARED,
    "postgres": (*SHARED, "database restart", "database read-only"),
}
PAUSE_S = (0.5, 4.0)
LASTS_S = (1.0, 4.0)
JUMPS_S = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        number: Place in the plan, from 0.
        kind: What.
        pause_s: Waited before it.
        lasts_s: How long it lasts, if it lasts.
        pick: Decides among several targets; below 1.
        jump_s: How far the clock jumps, if it does.
    """

    number: int
    kind: str
    pause_s: float
    lasts_s: float
    pick: float
    jump_s: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def planned(seed: int, database: str) -> Iterator[Fault]:
    """Yield faults without end."""
    kinds, number, bag = KINDS[database], 0, 0
    while True:
        rng = Seeds(seed).child("soak", database, bag).rng()
        for k in rng.permutation(len(kinds)):
            yield Fault(
                number=number,
                kind=kinds[int(k)],
                pause_s=round(float(rng.uniform(*PAUSE_S)), 3),
                lasts_s=round(float(rng.uniform(*LASTS_S)), 3),
                pick=round(float(rng.random()), 6),
                jump_s=JUMPS_S[int(rng.integers(len(JUMPS_S)))],
            )
            number += 1
        bag += 1
