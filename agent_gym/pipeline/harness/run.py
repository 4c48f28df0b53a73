"""One run of the loop, from snapshots to a served model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from agent_gym.core.errors import StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.job import JobOutcome, TrainingJob
from agent_gym.pipeline.automation.readiness import Readiness, ReadinessPolicy
from agent_gym.pipeline.automation.recording import Recording
from agent_gym.pipeline.automation.stages import AutomationConfig, Stages
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.snapshots import SetName, make_snapshots
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import RolloutPolicy
from agent_gym.rollouts.database import StoreCounts
from agent_gym.rollouts.executor import Progress
from agent_gym.training.grpo.config import AdamConfig, EntropySchedule, GRPOConfig

LEARNING = GRPOConfig(
    updates=20,
    epochs=1,
    credit="reward_to_go",
    discount=0.9,
    max_staleness=20,
    adam=AdamConfig(learning_rate=0.01),
    entropy=EntropySchedule(start=0.0),
)
"""Chosen on snapshots of the training set's kind; the sealed ones had no part in it."""


class HarnessOptions(Config):
    """How large a run is."""

    agents: int = Field(default=5, ge=1, le=1_000, description="agents that play")
    snapshots: int = Field(default=20, ge=1, le=100_000, description="snapshots to learn from")
    repeats: int = Field(
        default=10, ge=1, le=100_000, description="episodes of each agent on each snapshot"
    )
    sealed: int = Field(
        default=40, ge=35, le=100_000, description="snapshots that only the gate plays"
    )
    rehearsal: int = Field(
        default=20, ge=20, le=100_000, description="snapshots on which a rollout is watched"
    )
    seed: int = Field(default=0, ge=0, description="decides everything that is drawn")
    workers: int = Field(default=2, ge=1, le=256, description="processes that play")
    train: bool = Field(default=True, description="train, judge and roll out")
    force: bool = Field(default=False, description="train although it is not ready")
    shuffle_rewards: bool = Field(
        default=False, description="a control: learn from the rewards of other trajectories"
    )


class HarnessOutcome(Config):
    """What a run came to."""

    run_id: str
    snapshots: dict[str, int]
    trajectories: dict[str, int]
    steps: int
    played: list[dict[str, Any]]
    champion_before: str
    readiness_before: dict[str, Any]
    readiness_after: dict[str, Any]
    job: JobOutcome | None
    served: dict[str, str]

    @property
    def promoted(self) -> bool:
        """Return whether another model serves now."""
        return self.job is not None and self.job.ending == "promoted"


class Listener(Protocol):
    """Who is told how far a run is."""

    def stage(self, name: str, total: int | None = None) -> Progress: ...
    def tick(self) -> None: ...


def run_harness(options: HarnessOptions, folder: LoopFolder, listener: Listener) -> HarnessOutcome:
    """Make what is missing, let the agents play, train if asked, and see who answers then.

    Args:
        options: How large.
        folder: Where everything lies; a second run goes on from the first.
        listener: Told about progress.
    """
    sets = _snapshots(options, folder, listener)
    config = AutomationConfig(
        readiness=ReadinessPolicy.from_environment().model_copy(update={"spacing_hours": 0.0}),
        grpo=LEARNING.model_copy(update={"seed": options.seed}),
        workers=options.workers,
    )
    with folder.opened(config, rollout=RolloutPolicy(cooldown_s=0.0)) as stages:
        champion = _champion(stages, sets["train"], options, folder.path)
        names = tuple(f"agent-{k}" for k in range(options.agents))
        before = stages.readiness()
        run_id = _next_run(stages)
        recording = Recording(
            stages.store, names, options.repeats, seed=options.seed, workers=options.workers
        )
        model = stages.registry.load(champion).folder
        progress = listener.stage("agents play", len(sets["train"]))
        played = recording.play(model, sets["train"], run_id, progress)
        _refuse_if_nothing(played)
        after = stages.readiness()
        job = _train(options, stages, folder, run_id, listener) if options.train else None
        counts: StoreCounts = stages.store.counts()
        return HarnessOutcome(
            run_id=run_id,
            snapshots={name: len(paths) for name, paths in sets.items()},
            trajectories={"stored": counts.total, "unused": counts.unused, "groups": counts.groups},
            steps=counts.steps,
            played=played,
            champion_before=champion,
            readiness_before=_told(before),
            readiness_after=_told(after),
            job=job,
            served={name: stages.deployments.served(name) for name in names},
        )


def _snapshots(
    options: HarnessOptions, folder: LoopFolder, listener: Listener
) -> dict[SetName, tuple[Path, ...]]:
    wanted: dict[SetName, int] = {
        "train": options.snapshots,
        "rehearsal": options.rehearsal,
        "sealed": options.sealed,
    }
    listener.stage("snapshots", sum(wanted.values()))
    return {
        name: make_snapshots(folder.snapshots(name), name, count, options.seed, listener.tick)
        for name, count in wanted.items()
    }


def _champion(
    stages: Stages, snapshots: tuple[Path, ...], options: HarnessOptions, folder: Path
) -> str:
    """Return who serves; if nobody does, an untrained policy is installed."""
    state = stages.deployments.state()
    if state.champion is None:
        policy = untrained(snapshots, Seeds(options.seed).child("first champion"))
        source = folder / "jobs" / f"first-{policy.version[:12]}"
        if not source.exists():
            policy.save(source)
        stages.deployments.install(stages.registry.add(source).model_hash)
    return stages.champion()


def _next_run(stages: Stages) -> str:
    """Return a name that no run has: how often it was played before, and by whom."""
    state = {"trajectories": stages.store.count(), "champion": stages.champion()}
    return f"run-{fingerprint(state)[:12]}"


def _refuse_if_nothing(played: list[dict[str, Any]]) -> None:
    lost = [row for row in played if row["status"] != "ok"]
    if len(lost) == len(played):
        raise StoreError(
            "nothing could be played and recorded",
            where=f"{len(lost)} snapshots",
            found=lost[0].get("error") or lost[0]["status"],
        )


def _train(
    options: HarnessOptions, stages: Stages, folder: LoopFolder, run_id: str, listener: Listener
) -> JobOutcome:
    listener.stage("train, judge, roll out")
    job = TrainingJob(
        job_id=f"train-{run_id}", force=options.force, shuffle_rewards=options.shuffle_rewards
    )
    with running(stages, folder.workflows) as runtime:
        return runtime.run(job)


def _told(found: Readiness) -> dict[str, Any]:
    return {
        "ready": found.ready,
        "reason": found.reason,
        "conditions": [each.words for each in found.conditions],
    }
