"""Both sides of a metric seed by seed: what plots and lists of the worst seeds are made from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agent_gym.evaluation.gate.diff import Finding
from agent_gym.evaluation.gate.samples import SuiteSamples
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.text import finite, replay_command

WORST = 3


class Pair(Struct, frozen=True):
    """One seed on both sides; ``loss`` is positive where the candidate is worse."""

    seed: int
    base: float
    cand: float
    loss: float
    fresh: bool


class Worst(Struct, frozen=True):
    """A seed to look at first, and the command that plays it again."""

    seed: int
    replay: str
    base: float | None = None
    cand: float | None = None
    loss: float | None = None


class Pairs:
    """All pairs of a night, read once from the samples of both sides."""

    def __init__(self, result: NightlyResult) -> None:
        self._run_id = result.run.run_id
        self._sides: list[tuple[_Side, _Side, bool]] = []
        if result.baseline_samples is not None:
            base, cand = _Side(result.baseline_samples), _Side(result.run.samples)
            self._sides.append((base, cand, False))
        if result.fresh is not None:
            self._sides.append((_Side(result.fresh[0]), _Side(result.fresh[1]), True))

    def of(self, finding: Finding) -> list[Pair]:
        """Return the pairs of a metric, fixed seeds first, each kind by seed."""
        sign = 1.0 if finding.direction == "up" else -1.0
        found = []
        for base_side, cand_side, fresh in self._sides:
            base = base_side.values(finding.scenario, finding.metric)
            cand = cand_side.values(finding.scenario, finding.metric)
            for seed in sorted(base.keys() & cand.keys()):
                loss = finite(sign * (base[seed] - cand[seed]))
                if loss is not None:
                    found.append(Pair(seed, base[seed], cand[seed], loss, fresh))
        return found

    def worst(self, finding: Finding) -> list[Worst]:
        """Return the worst seeds as the gate names them, with their figures where known."""
        known = {pair.seed: pair for pair in self.of(finding)}
        found = []
        for seed in finding.worst_seeds[:WORST]:
            command = replay_command(self._run_id, finding.scenario, seed)
            pair = known.get(seed)
            if pair is None:
                found.append(Worst(seed, command))
            else:
                found.append(Worst(seed, command, pair.base, pair.cand, pair.loss))
        return found


class _Side:
    def __init__(self, suite: SuiteSamples) -> None:
        self._scenarios = {scenario.name: scenario.samples for scenario in suite.scenarios}

    def values(self, scenario: str, metric: str) -> Mapping[int, float]:
        found = {}
        for sample in self._scenarios.get(scenario, ()):
            value = finite(sample.metrics.get(metric)) if sample.status == "ok" else None
            if value is not None:
                found[sample.seed] = value
        return found
