"""Exactness: is a scenario deterministic, and did anything happen differently at all?"""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples


def by_seed(samples: Sequence[Sample]) -> dict[int, list[Sample]]:
    """Return the samples of each seed, seeds in order; several are repeats of one seed."""
    found: dict[int, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: (sample.seed, sample.trajectory_hash)):
        found.setdefault(sample.seed, []).append(sample)
    return found


def unsteady_seeds(scenario: ScenarioSamples) -> tuple[int, ...]:
    """Return the seeds that gave another trajectory when they were played again."""
    played = by_seed(scenario.samples)
    unsteady = {
        seed
        for seed, again in scenario.repeated.items()
        if seed in played and any(sample.trajectory_hash != again for sample in played[seed])
    }
    unsteady |= {
        seed
        for seed, samples in played.items()
        if len({sample.trajectory_hash for sample in samples}) > 1
    }
    return tuple(sorted(unsteady))


def same_trajectories(old: ScenarioSamples, new: ScenarioSamples) -> bool:
    """Return whether every seed of the baseline went the same way in the candidate.

    A sample without a hash proves nothing, so it is never the same.
    """
    before, after = by_seed(old.samples), by_seed(new.samples)
    return bool(before) and all(
        {sample.trajectory_hash for sample in samples}
        == {sample.trajectory_hash for sample in after.get(seed, [])}
        and all(sample.trajectory_hash for sample in samples)
        for seed, samples in before.items()
    )
