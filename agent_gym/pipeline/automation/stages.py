"""The stages of a job, in their order; each can be done again and has one effect.

What a stage leaves is kept in the folder of the job, so one that was finished is not done again,
and one that was cut off repeats calls that know they were made before: a batch is claimed, a model
registered, a look counted and a model deployed once, whoever asks how often.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.artifact import read_artifact, read_manifest
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.promotion import (
    Evidence,
    Integrity,
    Look,
    Verdict,
    judge_promotion,
)
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.examining import CHALLENGER, Duel, duel, replay_equal
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.judging import judge_batch
from agent_gym.pipeline.automation.kinds import kind_of
from agent_gym.pipeline.automation.learners import learning_of
from agent_gym.pipeline.automation.learning import recorded
from agent_gym.pipeline.automation.listening import Listener, Silence
from agent_gym.pipeline.automation.readiness import Readiness, readiness
from agent_gym.pipeline.automation.recording import Recording, refuse_if_nothing
from agent_gym.pipeline.automation.snapshot_set import SnapshotSet, refuse_shared
from agent_gym.pipeline.automation.stock import UNUSED, stock_of
from agent_gym.pipeline.registry import ModelDeploymentService, ModelRegistry
from agent_gym.pipeline.registry.rollout import Stage
from agent_gym.rollouts.batch import Executor
from agent_gym.rollouts.database import BatchRequest, TrajectoryStore

SEEN_TRAJECTORIES = 40
PRACTICE = "practice"


@dataclass(frozen=True, slots=True)
class Stages:
    """The work of a job, and all it needs.

    Attributes:
        store: Where trajectories are.
        registry: Where models are.
        deployments: Who serves.
        training: Folder of the snapshots that are learned from.
        sealed: Folder of the snapshots that only the gate plays.
        rehearsal: Folder of the snapshots on which a rollout is watched.
        folder: Where jobs keep their files.
        executor: Whose processes play.
        config: The settings.
        clock: Tells the time.
        listener: Told how far the work is.
    """

    store: TrajectoryStore
    registry: ModelRegistry
    deployments: ModelDeploymentService
    training: Path
    sealed: Path
    rehearsal: Path
    folder: Path
    executor: Executor
    config: AutomationConfig = field(default_factory=AutomationConfig)
    clock: Clock = field(default_factory=SystemClock)
    listener: Listener = field(default_factory=Silence)

    def readiness(self) -> Readiness:
        """Return whether training may begin."""
        policy, champion = self.config.readiness, self.deployments.state().champion
        return readiness(stock_of(self.store, policy, champion), policy, self.clock.now_ns())

    def claim(self, job: TrainingJob) -> dict[str, Any]:
        """Take the trajectories of the champion that no batch holds; none is a reason to stop."""

        def make() -> dict[str, Any]:
            champion = self.champion()
            return {"champion": champion, "claimed": self._take(job, 0, champion)}

        return self._files(job, 0).once("claim", make)

    def practise(self, job: TrainingJob, number: int) -> dict[str, Any]:
        """Let the policy of the round before play the training snapshots, and take what it did.

        The same round again records the same trajectories, which the store knows already.
        """

        def make() -> dict[str, Any]:
            model = self.train(job, number - 1)["model_after"]
            recording = Recording(
                self.store,
                self.executor,
                (PRACTICE,),
                self._settings(job).practice_repeats,
                seed=self._settings(job).grpo.seed,
            )
            snapshots = SnapshotSet.of(self.training).snapshots
            progress = self.listener.stage(f"round {number + 1}: play", len(snapshots))
            folder = self.registry.load(model).folder
            played = recording.play(folder, snapshots, job.batch(number), progress)
            refuse_if_nothing(played)
            kept = [row["mean_return"] for row in played if row["status"] == "ok"]
            claimed = self._take(job, number, model)
            if not claimed:
                raise StoreError(
                    "no group of what was played is large enough to learn from",
                    where=job.batch(number),
                    expected=f"{self._settings(job).readiness.min_group_size} of a snapshot",
                    remedy="Raise practice_repeats",
                )
            return {"mean_return": sum(kept) / len(kept), "claimed": claimed}

        return self._files(job, number).once("practise", make)

    def train(self, job: TrainingJob, number: int) -> dict[str, Any]:
        """Learn from the batch of a round, mark exactly what was learned from, register the model.

        What cannot be learned from would fail again: the whole batch goes back, and ``failed`` says
        why. After any other failure the batch stays with the job, which goes on with it when it is
        asked for again.
        """
        files, batch_id = self._files(job, number), job.batch(number)

        def make() -> dict[str, Any]:
            before = self.registry.load(self._before(job, number)).folder
            self.listener.stage(f"round {number + 1}: learn")
            try:
                if self._settings(job).grpo.reward == "judge":
                    judge_batch(self.store, batch_id)
                batch = self.store.read_batch(batch_id)
                learning, settings = learning_of(before), self._settings(job).grpo
                return learning.learn(job, files, before, batch, settings)
            except (ConfigError, DataError) as error:
                return {"failed": str(error)}

        told = files.once("train", make)
        if "failed" in told:
            self.store.batches.release(batch_id, told["failed"])
            return told
        self.store.batches.complete(
            batch_id,
            told["trained_ids"],
            model_version=told["model_after"],
            training_loss=told["loss"],
        )
        if told["changed"]:
            base = told["model_before"]
            self.registry.add(files.policy, batch_id=batch_id, base_model=base)
        return told

    def challenger(self, job: TrainingJob) -> str:
        """Return the model that the last round left."""
        return str(self.train(job, self._settings(job).rounds - 1)["model_after"])

    def examine(self, job: TrainingJob) -> dict[str, Any]:
        """Count a look at the sealed set, then let champion and challenger play it."""

        def make() -> dict[str, Any]:
            champion, challenger = self.claim(job)["champion"], self.challenger(job)
            sealed = SnapshotSet.of(self.sealed)
            refuse_shared([("train", SnapshotSet.of(self.training)), ("sealed", sealed)])
            look = self.registry.sealed.spend(
                sealed.id,
                challenger,
                alpha=self._settings(job).promotion.alpha,
                members=sealed.ids,
            )
            found = self._duel(champion, challenger, self.sealed, "judge on sealed snapshots")
            entropy, distance = self._distances(job, champion, challenger)
            evidence = Evidence(
                champion=champion,
                challenger=challenger,
                sealed_set=sealed.id,
                pairs=found.pairs,
                integrity=self._integrity(job, challenger, found, sealed),
                figures=found.figures.model_copy(
                    update={"entropy": entropy, "kl_to_champion": distance}
                ),
            )
            return {
                "evidence": evidence.model_dump(mode="json"),
                "look": look.model_dump(mode="json"),
            }

        return self._files(job).once("examine", make)

    def evidence(self, job_id: str) -> Evidence:
        """Return what the gate was shown of a job that came so far."""
        return Evidence.model_validate(
            self._files(TrainingJob(job_id=job_id)).read("examine")["evidence"]
        )

    def decide(self, job: TrainingJob) -> Verdict:
        """Let the gate judge, and write its verdict down."""

        def make() -> dict[str, Any]:
            found = self.examine(job)
            evidence = Evidence.model_validate(found["evidence"])
            look = Look.model_validate(found["look"])
            return judge_promotion(evidence, look, self._settings(job).promotion).as_dict()

        verdict = Verdict.from_dict(self._files(job).once("decide", make))
        self.registry.sealed.record(Look.model_validate(self.examine(job)["look"]), verdict)
        return verdict

    def roll_out(self, job: TrainingJob) -> dict[str, Any]:
        """Take the challenger through shadow and canary to full service, watched all the way."""
        champion, challenger = self.claim(job)["champion"], self.challenger(job)

        def make() -> dict[str, Any]:
            found = self._duel(champion, challenger, self.rehearsal, "rehearse")
            if found.failed:  # nothing is deployed yet, so asking again begins here
                raise StoreError(
                    "episodes of the rehearsal failed",
                    where=job.job_id,
                    found="; ".join(found.failed[:3]),
                )
            return {
                "pairs": [
                    [pair.snapshot_id, pair.champion, pair.challenger] for pair in found.pairs
                ]
            }

        pairs = self._files(job).once("rehearse", make)["pairs"]
        if self.deployments.state().champion == challenger or self._taken_back(challenger):
            return self._served(challenger)
        self.deployments.deploy(challenger)
        half = len(pairs) // 2
        steps: tuple[tuple[Stage, Any], ...] = (("canary", pairs[:half]), ("full", pairs[half:]))
        for stage, some in steps:
            for snapshot_id, theirs, own in some:
                decision = self.deployments.observe(
                    f"{job.job_id}:{snapshot_id}", theirs, own, challenger
                )
                if decision.action == "roll_back":
                    return self._served(challenger)
            self.deployments.advance(stage, challenger)
        return self._served(challenger)

    def champion(self) -> str:
        """Return the hash of the champion; what a canary answers has no part in it."""
        champion = self.deployments.state().champion
        if champion is None:
            raise StoreError(
                "no model serves yet", remedy="Install a first champion, then ask again"
            )
        return champion

    def _taken_back(self, model: str) -> bool:
        """Say whether its rollout has ended badly: this job was cut off right after."""
        past = self.deployments.last_rollout(model)
        return past is not None and past.status == "rolled_back"

    def _served(self, model: str) -> dict[str, Any]:
        """Return who serves now, and what became of the rollout of a model."""
        past = self.deployments.last_rollout(model)
        told = None if past is None else past.as_dict()
        return self.deployments.state().as_dict() | {"rollout": told}

    def _files(self, job: TrainingJob, number: int | None = None) -> JobFolder:
        folder = self.folder / job.job_id
        return JobFolder(folder if number is None else folder / f"round-{number}")

    def _settings(self, job: TrainingJob) -> AutomationConfig:
        return job.config or self.config

    def _take(self, job: TrainingJob, number: int, model: str) -> int:
        """Take what a model recorded and no batch holds; return how much that is."""
        batch = self.store.batches.claim(
            BatchRequest(
                batch_id=job.batch(number),
                chosen=UNUSED.model_copy(update={"agent_version": model}),
                min_group_size=self._settings(job).readiness.min_group_size,
                base_model=model,
            )
        )
        return 0 if batch is None else len(self.store.batches.ids(job.batch(number)))

    def _before(self, job: TrainingJob, number: int) -> str:
        """Return the model that a round begins with."""
        if number == 0:
            return str(self.claim(job)["champion"])
        return str(self.train(job, number - 1)["model_after"])

    def _duel(self, champion: str, challenger: str, folder: Path, stage: str) -> Duel:
        snapshots = SnapshotSet.of(folder).snapshots
        return duel(
            self.registry.load(champion).folder,
            self.registry.load(challenger).folder,
            snapshots,
            self.executor,
            self.listener.stage(stage, 2 * len(snapshots)),
        )

    def _distances(self, job: TrainingJob, champion: str, challenger: str) -> tuple[float, float]:
        """Compare both on what the champion saw when it recorded the first batch."""
        rows = recorded(self.store.read_batch(job.batch(0)))
        some = rows.select(np.arange(min(len(rows), SEEN_TRAJECTORIES)))
        own, other = (self.registry.load(one).folder for one in (challenger, champion))
        return learning_of(own).distances(other, own, some)

    def _integrity(
        self, job: TrainingJob, challenger: str, found: Duel, sealed: SnapshotSet
    ) -> Integrity:
        artifact = self.registry.load(challenger)
        manifest, _ = read_artifact(artifact.folder, kind_of(artifact.folder).name)
        return Integrity(
            artifact_hash_ok=manifest.model_hash == challenger,
            policy_loads=learning_of(artifact.folder).version(artifact.folder) == challenger
            and not any(one.startswith(CHALLENGER) for one in found.failed),
            replay_equal=replay_equal(artifact.folder, sealed.snapshots[0]),
            snapshots_hash_ok=sealed.ids == tuple(load_snapshot(p).id for p in sealed.snapshots),
            data_manifest_ok=all(self._data_ok(job, k) for k in range(self._settings(job).rounds)),
            notes="; ".join(found.failed[:3]),
        )

    def _data_ok(self, job: TrainingJob, number: int) -> bool:
        """Say whether the model of a round names exactly the batch it learned from."""
        told = self.train(job, number)
        if not told["changed"]:
            return True
        manifest = read_manifest(self.registry.load(told["model_after"]).folder)
        held = set(self.store.batches.ids(job.batch(number)))
        ids = told["trained_ids"]
        return manifest.data_hash == fingerprint(ids) and held == set(ids)
