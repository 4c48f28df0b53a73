"""Fresh seeds for a confirmation: today's code here, the baseline's code from its own copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from agent_gym.evaluation.gate.exactness import unsteady_seeds
from agent_gym.evaluation.gate.samples import ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.suite import Suite, fresh_seeds
from agent_gym.pipeline.nightly.baseline import Baseline
from agent_gym.pipeline.nightly.crew import Task
from agent_gym.pipeline.nightly.frozen import FrozenCrew
from agent_gym.pipeline.nightly.proof import check_played, most_different, prove
from agent_gym.pipeline.nightly.run import Played, Player, sample_of, suite_samples
from agent_gym.reporting.text import many, span


@dataclass(frozen=True, slots=True)
class Pace:
    """How long episodes took on the pinned seeds, and how often fresh ones may be asked for."""

    seconds: Mapping[str, float]
    workers: int
    times: int

    @classmethod
    def of(cls, played: Played, workers: int, *, twice: bool) -> Pace:
        """Return the pace of a night."""
        seconds = {
            name: sum(row["duration_s"] for row in rows) / max(len(rows), 1)
            for name, rows in played.rows.items()
        }
        return cls(seconds, workers, 2 if twice else 1)


@dataclass(slots=True)
class FreshRerun:
    """Plays both sides on the same fresh seeds; more seeds begin with the first ones.

    Attributes:
        suite: What is played today.
        date: Chooses the seeds.
        baseline: The other side.
        old: Plays the baseline's side.
        new: Plays today's side.
        pinned: Tonight's pinned seeds: where they differ from the baseline's, the baseline's side
            must still play as it was recorded before anything that it says is believed. None if
            both sides are the same code in the same process.
        proof: Where it is written that the baseline's code still gives the baseline's hashes, None
            if today's code is the baseline's.
        pace: How long an episode takes, None if nobody waits.
        seeds: The seeds that were asked for, by scenario.
    """

    suite: Suite
    date: str
    baseline: Baseline
    old: Player
    new: Player
    proof: Path | None
    pinned: SuiteSamples | None = None
    pace: Pace | None = None
    seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _proved: set[str] = field(default_factory=set)
    _sides: dict[str, tuple[ScenarioSamples, ScenarioSamples]] = field(default_factory=dict)

    def __call__(self, scenarios: Sequence[str], n_seeds: int) -> tuple[SuiteSamples, SuiteSamples]:
        """Return baseline and candidate for the named scenarios alone.

        Raises:
            KeyboardInterrupt: The playing was cut short.
            DataError: The baseline's code does not give here what it gave when it was approved.
        """
        if self.proof is not None:
            prove(self.baseline, self.old.crew, self.proof)
        self._prove_pinned([name for name in sorted(scenarios) if name not in self._proved])
        tasks = [
            Task(self.suite.scenario(name), fresh_seeds(self.suite.id, self.date, name, n_seeds))
            for name in sorted(scenarios)
        ]
        before, now = self.old.play(tasks), self.new.play(tasks)
        if not (before.complete and now.complete):
            raise KeyboardInterrupt
        candidate = suite_samples(self.suite, "candidate", now, [task.scenario for task in tasks])
        base = replace(
            self.baseline.samples,
            scenarios=tuple(
                _as_recorded(scenario, before)
                for scenario in self.baseline.samples.scenarios
                if scenario.name in before.rows
            ),
        )
        for task, new in zip(tasks, candidate.scenarios, strict=True):
            self.seeds[task.scenario.name] = task.seeds
            old = [each for each in base.scenarios if each.name == new.name]
            if old:
                self._sides[new.name] = old[0], new
        return base, candidate

    def announce(self, n_seeds: Mapping[str, int]) -> None:
        """Say how many episodes a confirmation will play at most, and about how long that takes."""
        if self.pace is None:
            return
        times = self.pace.times
        episodes = {name: 2 * times * n + len(self.to_prove(name)) for name, n in n_seeds.items()}
        total = sum(episodes.values())
        took = sum(n * self.pace.seconds.get(name, 0.0) for name, n in episodes.items())
        self.new.watch.tell(
            f"confirming {many(len(episodes), 'scenario')} on fresh seeds of both sides: at most "
            f"{many(total, 'more episode')}, about {span(took / self.pace.workers)} at the pace of "
            "the pinned seeds"
        )

    def to_prove(self, name: str) -> tuple[int, ...]:
        """Return the pinned seeds of a scenario that the baseline's side must play as recorded."""
        if self.pinned is None:
            return ()
        old = next((each for each in self.baseline.samples.scenarios if each.name == name), None)
        new = next((each for each in self.pinned.scenarios if each.name == name), None)
        # What cannot even be repeated tonight is never a pass, and proves nothing.
        if old is None or new is None or unsteady_seeds(new):
            return ()
        return most_different(old, new)

    def _prove_pinned(self, names: Sequence[str]) -> None:
        """See, never from the ledger, that the other side plays what differs as it was recorded."""
        seeds = {name: self.to_prove(name) for name in names}
        tasks = [Task(self.baseline.suite.scenario(name), seeds[name]) for name in names]
        tasks = [task for task in tasks if task.seeds]
        if tasks:
            check_played(self.baseline, self.old.crew, tasks)
        self._proved.update(names)

    def sides(self, run_id: str) -> tuple[SuiteSamples, SuiteSamples] | None:
        """Return all fresh seeds of both sides, None if none were asked for."""
        if not self._sides:
            return None
        ordered = [self._sides[name] for name in sorted(self._sides)]
        old = replace(self.baseline.samples, scenarios=tuple(pair[0] for pair in ordered))
        new = SuiteSamples(
            run_id=run_id,
            suite_id=self.suite.id,
            suite_version=self.suite.version,
            scenarios=tuple(pair[1] for pair in ordered),
        )
        return old, new


def frozen_crew(baseline: Baseline, caches: Path, workers: int, timeout_s: float) -> FrozenCrew:
    """Return who plays with the code of a baseline."""
    return FrozenCrew(
        code=baseline.code,
        cache=caches / "frozen" / baseline.record.id,
        scenarios={each["name"]: each for each in baseline.setup.suite["scenarios"]},
        subject=baseline.setup.subject,
        imports=baseline.setup.imports,
        workers=workers,
        timeout_s=timeout_s,
    )


def _as_recorded(scenario: ScenarioSamples, played: Played) -> ScenarioSamples:
    samples = tuple(sample_of(row) for row in played.rows[scenario.name])
    return replace(scenario, samples=samples, repeated={})
