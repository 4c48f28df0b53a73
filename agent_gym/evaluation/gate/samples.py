"""What the gate compares: one side's figures of a suite, a value for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from agent_gym.evaluation.scenarios.metric import Metric

RunStatus: TypeAlias = Literal["ok", "error", "timeout", "crashed", "interrupted", "cancelled"]


MOST_NOTES = 20


class Sample(Struct, frozen=True):
    """One seed of one scenario on one side; a failed one has no metrics but says why.

    ``notes`` are what the scenario says of it (rows of a log that could not be read); they are in
    no comparison.
    """

    seed: int
    status: RunStatus
    metrics: Mapping[str, float | None] = {}
    trajectory_hash: str = ""
    error: str | None = None
    notes: tuple[str, ...] = ()


def few_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the first notes, and how many more there are in place of the others.

    Example:
        >>> few_notes([f"row {at}" for at in range(30)])[-2:]
        ('row 19', '10 more notes')
    """
    if len(notes) <= MOST_NOTES + 1:  # a line that says "1 more" is as long as the note
        return tuple(notes)
    return (*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES} more notes")


class ScenarioSamples(Struct, frozen=True):
    """All seeds of one scenario on one side.

    ``identity`` holds what must be equal for two sides to be comparable: type, version,
    config_hash (parameters without tolerances), data_hash, costs and metric definitions.
    ``repeated`` holds the hashes of the seeds that were played twice, for exactness.
    """

    name: str
    identity: Mapping[str, str]
    metrics: tuple[Metric, ...]
    samples: tuple[Sample, ...]
    repeated: Mapping[int, str] = {}


class SuiteSamples(Struct, frozen=True):
    """One side of a comparison: a run of a whole suite."""

    run_id: str
    suite_id: str
    suite_version: int
    scenarios: tuple[ScenarioSamples, ...]


class Rerun(Protocol):
    """Plays scenarios again on both sides with the same fresh seeds."""

    def __call__(self, scenarios: Sequence[str], n_seeds: int) -> tuple[SuiteSamples, SuiteSamples]:
        """Return baseline and candidate, in this order, for the named scenarios alone."""
