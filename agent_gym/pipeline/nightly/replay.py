"""One seed of a kept run, played again: is it the same, and what did the baseline do there?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import configure
from agent_gym.evaluation.gate.samples import Sample
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.baseline import Baseline, open_baseline
from agent_gym.pipeline.nightly.code_identity import code_identity
from agent_gym.pipeline.nightly.crew import TIMEOUT_S, Crew, LocalCrew, Row, Task
from agent_gym.pipeline.nightly.exits import FAILED, INCOMPARABLE, INTERRUPTED, OK
from agent_gym.pipeline.nightly.kept import KeptRun, find_baseline, open_run, sample_in
from agent_gym.pipeline.nightly.rerun import frozen_crew
from agent_gym.pipeline.nightly.run import sample_of
from agent_gym.pipeline.nightly.setup import Setup, subject_of
from agent_gym.pipeline.nightly.workspace import Workspace

Side: TypeAlias = Literal["candidate", "baseline"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What was recorded of a seed, what it gives now, and what the baseline gave.

    Attributes:
        scenario: Its name.
        seed: The seed.
        side: Whose code and subject played.
        plant: The fault that was planted then, and now again.
        same_code: Whether the code that plays is the code that played.
        recorded: What the run recorded, None if it did not play this seed.
        played: What came of it now.
        events: Events of the way that was played now.
        notes: What the scenario says about it.
        baseline: What the baseline's side gave on this seed, None if there is none.
    """

    scenario: str
    seed: int
    side: Side
    plant: str | None
    same_code: bool
    recorded: Sample | None
    played: Sample
    events: int
    notes: tuple[str, ...]
    baseline: Sample | None

    @property
    def same(self) -> bool | None:
        """Return whether hash and figures are those recorded; None if nothing was recorded."""
        if self.recorded is None:
            return None
        return (self.recorded.trajectory_hash, self.recorded.metrics, self.recorded.status) == (
            self.played.trajectory_hash,
            self.played.metrics,
            self.played.status,
        )

    @property
    def exit_code(self) -> int:
        """Return 0 if it is the same, 3 if other code was asked, 4 if the same code differs."""
        if self.played.status == "interrupted":
            return INTERRUPTED
        if self.same is None:
            return OK if self.played.status == "ok" else FAILED
        if self.same:
            return OK
        return FAILED if self.same_code else INCOMPARABLE

    def rows(self) -> list[tuple[str, Any, Any, Any]]:
        """Return each figure as recorded, as played now, and as the baseline had it."""
        sides = [self.recorded, self.played, self.baseline]
        names = sorted({name for side in sides if side is not None for name in side.metrics})
        columns = [{} if side is None else side.metrics for side in sides]
        was, now, base = columns
        return [(name, was.get(name), now.get(name), base.get(name)) for name in names]


def replay_seed(
    workspace: Workspace,
    run: str,
    scenario: str,
    seed: int,
    *,
    side: Side = "candidate",
    any_seed: bool = False,
) -> Replay:
    """Play one seed of a run (or a baseline) again, with its own config, subject and plant.

    Raises:
        ConfigError: The run did not play this seed, and ``any_seed`` was not asked for.
    """
    asked = _asked(workspace, run, side)
    suite = configure(Suite, asked.setup.suite, where=f"setup of {run}")
    task = Task(suite.scenario(scenario), (seed,))
    if not any_seed and asked.recorded(scenario, seed) is None:
        raise ConfigError(
            "this run did not play this seed",
            where=f"{run} {scenario}",
            found=seed,
            remedy="Take a seed of its report, or play any seed with --any-seed",
        )
    row = _play(asked.crew(workspace), task)
    base = _beside(asked, task)
    if base is None and asked.baseline is not None and scenario in _names(asked.baseline):
        crew = _Asked(asked.baseline.setup, None, asked.baseline, frozen=True)
        base = sample_of(_play(crew.crew(workspace), task))
    return Replay(
        scenario=scenario,
        seed=seed,
        side=side,
        plant=asked.setup.subject["plant"],
        same_code=asked.frozen or asked.is_today,
        recorded=asked.recorded(scenario, seed),
        played=sample_of(row),
        events=row["events"],
        notes=tuple(row["notes"]),
        baseline=base,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which setup is played, where its record is, and by which code."""

    setup: Setup
    run: KeptRun | None
    baseline: Baseline | None
    frozen: bool

    @property
    def is_today(self) -> bool:
        also = tuple(map(Path, self.setup.also))
        libraries = tuple(self.setup.libraries)
        found = code_identity(tuple(self.setup.packages), also=also, libraries=libraries)
        return found.code_hash == self.setup.code_hash

    def crew(self, workspace: Workspace) -> Crew:
        if self.frozen and self.baseline is not None and not self.is_today:
            return frozen_crew(self.baseline, workspace.caches, 1, TIMEOUT_S)
        return LocalCrew(subject_of(self.setup.subject), 1, TIMEOUT_S, self.setup.imports)

    def recorded(self, scenario: str, seed: int) -> Sample | None:
        if self.frozen and self.baseline is not None:
            fixed = sample_in(self.baseline.samples, scenario, seed)
            fresh = None if self.run is None else self.run.recorded(scenario, seed, side=0)
            return fixed or fresh
        return None if self.run is None else self.run.recorded(scenario, seed)


def _asked(workspace: Workspace, name: str, side: Side) -> _Asked:
    baseline = find_baseline(workspace, name)
    if baseline is not None:
        return _Asked(baseline.setup, None, baseline, frozen=True)
    run = open_run(workspace, name)
    beside = None if run.setup.baseline is None else open_baseline(workspace, run.setup.baseline)
    if side == "candidate":
        return _Asked(run.setup, run, beside, frozen=False)
    if beside is None:
        raise ConfigError(
            "this run was compared with no baseline",
            found=run.run_id,
            remedy="Leave out --side, or give the id of a baseline",
        )
    return _Asked(beside.setup, run, beside, frozen=True)


def _beside(asked: _Asked, task: Task) -> Sample | None:
    """Return what the baseline's side recorded on this seed."""
    name, seed = task.scenario.name, task.seeds[0]
    if asked.baseline is None:
        return None
    found = sample_in(asked.baseline.samples, name, seed)
    return found or (None if asked.run is None else asked.run.recorded(name, seed, side=0))


def _play(crew: Crew, task: Task) -> Row:
    (row,) = crew.play([task], lambda _name, _rows: None)[task.scenario.name]
    return row


def _names(baseline: Baseline) -> set[str]:
    return {scenario.name for scenario in baseline.suite.scenarios}
