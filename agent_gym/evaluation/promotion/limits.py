"""What needs no comparison: facts that must be true, and limits that must be kept."""

from __future__ import annotations

from collections.abc import Iterator

from agent_gym.evaluation.promotion.evidence import Figures, Integrity
from agent_gym.evaluation.promotion.policy import Limits
from agent_gym.evaluation.promotion.verdict import Check

FACTS = (
    ("artifact_hash_ok", "the artifact has its signed hashes", "the artifact's hashes differ"),
    ("policy_loads", "the policy loads", "the policy does not load"),
    ("replay_equal", "two replays are equal", "two replays differ"),
    ("snapshots_hash_ok", "the snapshots have their hashes", "a snapshot's hash differs"),
    ("data_manifest_ok", "the training data are those named", "the training data differ"),
)
# Figure, limit, unit; the last one is a floor, the others are ceilings.
CEILINGS = (
    ("max_drawdown", "max_drawdown", "of equity"),
    ("ruined", "max_ruined", "episodes"),
    ("invalid_rate", "max_invalid_rate", "of actions"),
    ("latency_ms", "max_latency_ms", "ms (p99)"),
    ("kl_to_champion", "max_kl", "nats"),
)
FLOORS = (("entropy", "min_entropy", "nats"),)


def integrity(facts: Integrity) -> Check:
    """Return whether everything that was checked beforehand is true."""
    broken = [wrong for name, _, wrong in FACTS if not getattr(facts, name)]
    notes = f" ({facts.notes})" if facts.notes else ""
    words = "; ".join(broken) + notes if broken else "; ".join(right for _, right, _ in FACTS)
    return Check(
        name="integrity",
        passed=not broken,
        words=words,
        figures={name: bool(getattr(facts, name)) for name, _, _ in FACTS},
    )


def absolute_limits(figures: Figures, limits: Limits) -> Iterator[Check]:
    """Yield one check for every limit that is asked for."""
    sides = [*((row, False) for row in CEILINGS), *((row, True) for row in FLOORS)]
    for (name, limit_name, unit), floor in sides:
        limit, found = getattr(limits, limit_name), getattr(figures, name)
        if limit is None:
            continue
        bound = f"the {'least' if floor else 'most'} allowed is {limit:g} {unit}"
        if found is None:
            yield Check(
                name=name,
                passed=False,
                words=f"was not measured; {bound}",
                figures={"found": None, "limit": limit},
            )
            continue
        passed = bool(found >= limit) if floor else bool(found <= limit)
        yield Check(
            name=name,
            passed=passed,
            words=f"{found:.6g} {unit}; {bound}",
            figures={"found": found, "limit": limit},
        )
