"""Fresh seeds for a confirmation: today's code here, the baseline's code from its own copy."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.suite import Suite, fresh_seeds
from agent_gym.pipeline.nightly.baseline import Baseline
from agent_gym.pipeline.nightly.code_identity import also_hashes, library_versions
from agent_gym.pipeline.nightly.crew import Crew, Row, Task
from agent_gym.pipeline.nightly.frozen import FrozenCrew
from agent_gym.pipeline.nightly.run import Played, Player, sample_of, suite_samples

PROOF = "proved.json"


@dataclass(slots=True)
class FreshRerun:
    """Plays both sides on the same fresh seeds; more seeds begin with the first ones.

    Attributes:
        suite: What is played today.
        date: Chooses the seeds.
        baseline: The other side.
        old: Plays the baseline's side.
        new: Plays today's side.
        proof: Where it is written that the baseline's code still gives the baseline's hashes, None
            if today's code is the baseline's.
        seeds: The seeds that were asked for, by scenario.
    """

    suite: Suite
    date: str
    baseline: Baseline
    old: Player
    new: Player
    proof: Path | None
    seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _sides: dict[str, tuple[ScenarioSamples, ScenarioSamples]] = field(default_factory=dict)

    def __call__(self, scenarios: Sequence[str], n_seeds: int) -> tuple[SuiteSamples, SuiteSamples]:
        """Return baseline and candidate for the named scenarios alone.

        Raises:
            KeyboardInterrupt: The playing was cut short.
            DataError: The baseline's code does not give here what it gave when it was approved.
        """
        if self.proof is not None:
            prove(self.baseline, self.old.crew, self.proof)
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


def prove(baseline: Baseline, crew: Crew, proof: Path) -> None:
    """See once that the frozen code plays one seed of each scenario as it was recorded.

    What was proved is kept until libraries, Python, the machine or files named beside the code
    change.
    """
    stamp = {
        "machine": platform.node(),
        "versions": library_versions(),
        "also": also_hashes([path for path in map(Path, baseline.setup.also) if path.exists()]),
    }
    if _is_proved(proof, stamp):
        return
    first = {each.name: _first_good(each) for each in baseline.samples.scenarios}
    tasks = [Task(baseline.suite.scenario(name), (sample.seed,)) for name, sample in first.items()]
    rows = crew.play(tasks, _unheard)
    for name, sample in first.items():
        (row,) = rows[name]
        if row["status"] == "interrupted":
            raise KeyboardInterrupt
        if row["trajectory_hash"] != sample.trajectory_hash or row["metrics"] != sample.metrics:
            raise DataError(
                "the baseline's own code does not give the baseline's figures here",
                where=f"{baseline.folder} scenario {name} seed {sample.seed}",
                found=row["error"] or f"hash {row['trajectory_hash']}",
                expected=f"hash {sample.trajectory_hash}",
                remedy="Libraries, the machine, or files outside of the frozen code have changed: "
                "approve a new baseline here",
            )
    write_json(proof, stamp)


def _is_proved(proof: Path, stamp: Mapping[str, object]) -> bool:
    try:
        said: object = msgspec.json.decode(proof.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return said == stamp


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


def proof_of(baseline: Baseline, caches: Path) -> Path:
    """Return where it is written that the frozen code still plays as it did."""
    return caches / "frozen" / baseline.record.id / PROOF


def _as_recorded(scenario: ScenarioSamples, played: Played) -> ScenarioSamples:
    samples = tuple(sample_of(row) for row in played.rows[scenario.name])
    return replace(scenario, samples=samples, repeated={})


def _first_good(scenario: ScenarioSamples) -> Sample:
    return next(sample for sample in scenario.samples if sample.status == "ok")


def _unheard(_scenario: str, _rows: list[Row]) -> None:
    """Tell nobody."""
