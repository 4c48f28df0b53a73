"""One run of the loop, from snapshots to a served model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_gym.core.errors import AgentGymError, ConfigError, StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.job import JobOutcome, TrainingJob
from agent_gym.pipeline.automation.kinds import ACTIVE, LANGUAGE, kind_of
from agent_gym.pipeline.automation.listening import Listener
from agent_gym.pipeline.automation.readiness import Readiness, ReadinessPolicy
from agent_gym.pipeline.automation.recording import Recording, refuse_if_nothing
from agent_gym.pipeline.automation.snapshot_set import SnapshotSet, refuse_shared
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.first_umc_champion import unschooled
from agent_gym.pipeline.harness.options import LEARNING, READING, HarnessOptions, HarnessOutcome
from agent_gym.pipeline.harness.report import write_report
from agent_gym.pipeline.harness.snapshots import SetName, make_snapshots
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import RolloutPolicy
from agent_gym.pipeline.runtime import AgentRuntime, RuntimeConfig, verify_served

POINTS = 1_000
RUN, JOB = "run-", "train-"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A run under way: what was asked for, where it lies, and what does the work."""

    options: HarnessOptions
    folder: LoopFolder
    stages: Stages
    listener: Listener

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"agent-{k}" for k in range(self.options.agents))


@dataclass(frozen=True, slots=True)
class _Run:
    """What was played and trained; ``ready`` is what was found in between."""

    run_id: str
    champion: str
    job: JobOutcome | None
    played: list[dict[str, Any]] = field(default_factory=list)
    ready: Readiness | None = None


def run_harness(
    options: HarnessOptions,
    folder: LoopFolder,
    listener: Listener,
    *,
    argv: Sequence[str] = ("agent-gym", "harness"),
    url: str | None = None,
) -> HarnessOutcome:
    """Make what is missing, let the agents play, train if asked, and see who answers then.

    Args:
        options: How large.
        folder: Where everything lies; a second run goes on from the first.
        listener: Told about progress.
        argv: The command that makes it again.
        url: Of the database; SQLite in the folder if it is not given.
    """
    rollout = RolloutPolicy(cooldown_s=0.0)
    with folder.opened(_config(options), rollout=rollout, url=url, listener=listener) as stages:
        loop = _Loop(options, folder, stages, listener)
        cut_off = _take_up(loop) if options.train else None
        sets = _snapshots(options, folder, listener)
        champion, before = _champion(loop, sets["train"]), stages.readiness()
        run = cut_off or _run(loop, champion, sets["train"])
        answered, doubts = _answers(loop, run.job)
        counts = stages.store.counts()
        outcome = HarnessOutcome(
            run_id=run.run_id,
            cut_off=run is cut_off,
            snapshots={name: len(paths) for name, paths in sets.items()},
            trajectories={"stored": counts.total, "unused": counts.unused, "groups": counts.groups},
            steps=counts.steps,
            played=run.played,
            champion_before=run.champion,
            readiness_before=_told(before),
            readiness_after=_told(run.ready or before),
            job=run.job,
            answered=answered,
            rollout_verified=not doubts,
            rollout_words=doubts or "every agent was answered by the model that serves",
            report=str(folder.reports / run.run_id / "report.html"),
        )
        write_report(outcome, stages, options, argv)
        return outcome


def _config(options: HarnessOptions) -> AutomationConfig:
    learning = LEARNING if options.llm is None else READING
    readiness = ReadinessPolicy.from_environment().model_copy(update={"spacing_hours": 0.0})
    return AutomationConfig(
        readiness=readiness,
        grpo=learning.model_copy(update={"seed": options.seed}),
        rounds=options.rounds,
        practice_repeats=max(readiness.min_group_size, options.agents * options.repeats // 2),
        workers=options.workers,
    )


def _snapshots(
    options: HarnessOptions, folder: LoopFolder, listener: Listener
) -> dict[SetName, tuple[Path, ...]]:
    """Make what is missing; whatever lies in the folder of a set belongs to it."""
    wanted: dict[SetName, int] = {
        "train": options.snapshots,
        "rehearsal": options.rehearsal,
        "sealed": options.sealed,
    }
    listener.stage("snapshots", sum(wanted.values()))
    for name, count in wanted.items():
        make_snapshots(folder.snapshots(name), name, count, options.seed, listener.tick)
    found = {name: SnapshotSet.of(folder.snapshots(name)) for name in wanted}
    refuse_shared(found.items())
    return {name: each.snapshots for name, each in found.items()}


def _champion(loop: _Loop, snapshots: tuple[Path, ...]) -> str:
    """Return who serves; if nobody does, a policy that knows nothing is installed."""
    stages = loop.stages
    if stages.deployments.state().champion is None:
        policy = _first(loop.options, snapshots)
        source = loop.folder.path / "jobs" / f"first-{policy.version[:12]}"
        if not source.exists():
            policy.save(source)
        stages.deployments.install(stages.registry.add(source).model_hash)
    champion = stages.champion()
    _check_kind(loop.options, stages.registry.load(champion).folder)
    return champion


def _first(options: HarnessOptions, snapshots: tuple[Path, ...]) -> Any:
    seeds = Seeds(options.seed).child("first champion")
    if options.kind == ACTIVE:
        return unschooled(snapshots)
    if options.kind != LANGUAGE:
        return untrained(snapshots, seeds)
    # The libraries of language models take seconds to load, and are an extra.
    languages = import_module("agent_gym.pipeline.harness.first_language_champion")
    return languages.untaught(options.llm, snapshots, seeds)


def _check_kind(options: HarnessOptions, champion: Path) -> None:
    """Refuse to go on with a champion of another kind than was asked for."""
    wanted, found = options.kind, kind_of(champion).name
    if wanted != found:
        raise ConfigError(
            "a champion of another kind serves here",
            where=str(champion),
            found=found,
            expected=wanted,
            remedy="Give this loop a folder of its own with --folder",
        )


def _run(loop: _Loop, champion: str, snapshots: tuple[Path, ...]) -> _Run:
    run_id = _next_run(loop.stages)
    played = _play(loop, champion, snapshots, run_id)
    ready = loop.stages.readiness()
    job = _train(loop, run_id) if loop.options.train else None
    return _Run(run_id, champion, job, played, ready)


def _take_up(loop: _Loop) -> _Run | None:
    """Go on with jobs that were cut off or failed; one that fails again is left, and told.

    Returns:
        The last run of the harness among them that came to its end: it is the one asked for.
    """
    ended = None
    if not loop.folder.workflows(loop.stages.store).is_file():
        return ended
    with running(loop.stages, loop.folder.workflows(loop.stages.store)) as runtime:
        for job_id in (*runtime.under_way(), *runtime.failed()):
            loop.listener.stage(f"go on with {job_id}")
            try:
                job = runtime.run(TrainingJob(job_id=job_id))
            except AgentGymError as error:
                log.warning("job %s failed again: %s", job_id, error)
                continue
            if job_id.startswith(f"{JOB}{RUN}"):
                ended = _Run(job_id.removeprefix(JOB), job.champion, job)
    return ended


def _next_run(stages: Stages) -> str:
    """Return a name that no run has: how often it was played before, and by whom."""
    state = {"trajectories": stages.store.count(), "champion": stages.champion()}
    return f"{RUN}{fingerprint(state)[:12]}"


def _play(
    loop: _Loop, champion: str, snapshots: tuple[Path, ...], run_id: str
) -> list[dict[str, Any]]:
    options, stages = loop.options, loop.stages
    recording = Recording(
        stages.store, stages.executor, loop.agents, options.repeats, seed=options.seed
    )
    progress = loop.listener.stage("agents play", len(snapshots))
    played = recording.play(stages.registry.load(champion).folder, snapshots, run_id, progress)
    refuse_if_nothing(played)
    return played


def _train(loop: _Loop, run_id: str) -> JobOutcome:
    options = loop.options
    job = TrainingJob(
        job_id=f"{JOB}{run_id}", force=options.force, shuffle_rewards=options.shuffle_rewards
    )
    with running(loop.stages, loop.folder.workflows(loop.stages.store)) as runtime:
        if runtime.status(job.job_id) is not None:
            raise StoreError(
                "a job of this name was done before, in another state of the store",
                where=job.job_id,
                remedy="Begin in an empty folder; do not put trajectories or models back",
            )
        return runtime.run(job)


def _answers(loop: _Loop, job: JobOutcome | None) -> tuple[dict[str, str | None], str]:
    """Let every agent make one tick in its own market, and see which model really answered.

    Returns:
        The model behind each agent, and what is wrong with that, in words.
    """
    stages = loop.stages
    progress = loop.listener.stage("agents answer", len(loop.agents))
    with AgentRuntime(
        stages.store,
        stages.deployments,
        snapshots=loop.folder.snapshots("train"),
        config=RuntimeConfig(text=loop.options.llm is not None),
    ) as runtime:
        for name in loop.agents:
            runtime.add(name, points=POINTS)
        rows = {row.agent_id: row for row in runtime.tick().rows}
        progress(sum(name in rows for name in loop.agents), len(loop.agents), {})
    answered = {name: rows[name].model if name in rows else None for name in loop.agents}
    doubts = [
        f"{name} was answered by {model or 'nobody'}: {(rows[name].error or {}).get('what', '')}"
        if name in rows
        else f"{name} is paused: it has no points left"
        for name, model in answered.items()
        if model != stages.deployments.served(name)
    ]
    if job is not None and job.ending == "promoted" and job.challenger != stages.champion():
        doubts.append(f"{job.challenger} was promoted, and does not serve")
    checked = verify_served(stages.store, stages.deployments)
    return answered, "; ".join(doubts if checked.ok else [*doubts, checked.words])


def _told(found: Readiness) -> dict[str, Any]:
    return {
        "ready": found.ready,
        "reason": found.reason,
        "conditions": [
            {"name": each.name, "met": each.met, "words": each.words} for each in found.conditions
        ],
    }
