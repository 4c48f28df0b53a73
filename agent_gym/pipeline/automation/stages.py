"""The stages of a job, in their order; each can be done again and has one effect.

What a stage leaves is kept in the folder of the job, so one that was finished is not done again,
and one that was cut off repeats calls that know they were made before: a batch is claimed, a model
registered, a look counted and a model deployed once, whoever asks how often.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.agents.artifact import read_artifact
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.neural.policy import KIND, NeuralPolicy
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.evaluation.promotion import (
    Evidence,
    Integrity,
    Look,
    PromotionPolicy,
    Verdict,
    judge_promotion,
)
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.pipeline.automation.examining import Duel, distances, duel, replay_equal
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.learning import learn, recorded
from agent_gym.pipeline.automation.readiness import Readiness, ReadinessPolicy, readiness
from agent_gym.pipeline.automation.sealed_set import SealedSet
from agent_gym.pipeline.automation.stock import UNUSED, stock_of
from agent_gym.pipeline.registry import ModelDeploymentService, ModelRegistry
from agent_gym.pipeline.registry.rollout import Stage
from agent_gym.rollouts.database import BatchRequest, TrajectoryStore
from agent_gym.training.grpo.config import GRPOConfig

SEEN_ROWS = 4_000


class AutomationConfig(Config):
    """When training begins, how it learns, and what a model must show."""

    readiness: ReadinessPolicy = Field(default_factory=ReadinessPolicy)
    grpo: GRPOConfig = Field(default_factory=GRPOConfig)
    promotion: PromotionPolicy = Field(default_factory=PromotionPolicy)
    workers: int = Field(default=2, ge=1, description="processes that play")


@dataclass(frozen=True, slots=True)
class Stages:
    """The work of a job, and all it needs.

    Attributes:
        store: Where trajectories are.
        registry: Where models are.
        deployments: Who serves.
        sealed: Folder of the snapshots that only the gate plays.
        rehearsal: Folder of the snapshots on which a rollout is watched.
        folder: Where jobs keep their files.
        config: The settings.
        clock: Tells the time.
    """

    store: TrajectoryStore
    registry: ModelRegistry
    deployments: ModelDeploymentService
    sealed: Path
    rehearsal: Path
    folder: Path
    config: AutomationConfig = field(default_factory=AutomationConfig)
    clock: Clock = field(default_factory=SystemClock)

    def readiness(self) -> Readiness:
        """Return whether training may begin."""
        policy = self.config.readiness
        return readiness(stock_of(self.store, policy), policy, self.clock.now_ns())

    def claim(self, job: TrainingJob) -> dict[str, Any]:
        """Take the trajectories of the champion that no batch holds; none is a reason to stop."""

        def make() -> dict[str, Any]:
            champion = self.champion()
            batch = self.store.batches.claim(
                BatchRequest(
                    batch_id=job.job_id,
                    chosen=UNUSED.model_copy(update={"agent_version": champion}),
                    min_group_size=self.config.readiness.min_group_size,
                    base_model=champion,
                )
            )
            return {
                "champion": champion,
                "claimed": 0 if batch is None else len(self.store.batches.ids(job.job_id)),
            }

        return self._files(job).once("claim", make)

    def train(self, job: TrainingJob) -> dict[str, Any]:
        """Learn from the claimed batch, mark exactly what was learned from, register the model.

        If learning fails the whole batch goes back.
        """
        files = self._files(job)

        def make() -> dict[str, Any]:
            champion = self._policy(self.claim(job)["champion"])
            try:
                batch = self.store.read_batch(job.job_id)
                told = learn(job, files, champion, batch, self.config.grpo)
            except AgentGymError as error:
                self.store.batches.release(job.job_id, str(error))
                raise
            trained = NeuralPolicy.load(files.policy)
            rows = recorded(batch)
            layout = FeatureLayout.of(rows.feature_names)
            seen = rows.observations[rows.mask][:SEEN_ROWS][:, layout.columns(champion.inputs)]
            told["challenger_entropy"], told["kl_to_champion"] = distances(champion, trained, seen)
            return told

        told = files.once("train", make)
        self.store.batches.complete(
            job.job_id,
            told["trained_ids"],
            model_version=told["model_after"],
            training_loss=told["loss"],
        )
        if told["changed"]:
            base = told["model_before"]
            self.registry.add(files.policy, batch_id=job.job_id, base_model=base)
        return told

    def examine(self, job: TrainingJob) -> dict[str, Any]:
        """Count a look at the sealed set, then let champion and challenger play it."""

        def make() -> dict[str, Any]:
            told, sealed = self.train(job), SealedSet.of(self.sealed)
            champion, challenger = told["model_before"], told["model_after"]
            look = self.registry.sealed.spend(
                sealed.id, challenger, alpha=self.config.promotion.alpha
            )
            found = self._duel(champion, challenger, self.sealed)
            evidence = Evidence(
                champion=champion,
                challenger=challenger,
                sealed_set=sealed.id,
                pairs=found.pairs,
                integrity=self._integrity(job, told, found, sealed),
                figures=found.figures.model_copy(
                    update={
                        "entropy": told["challenger_entropy"],
                        "kl_to_champion": told["kl_to_champion"],
                    }
                ),
            )
            return {
                "evidence": evidence.model_dump(mode="json"),
                "look": look.model_dump(mode="json"),
            }

        return self._files(job).once("examine", make)

    def decide(self, job: TrainingJob) -> Verdict:
        """Let the gate judge, and write its verdict down."""

        def make() -> dict[str, Any]:
            found = self.examine(job)
            evidence = Evidence.model_validate(found["evidence"])
            look = Look.model_validate(found["look"])
            return judge_promotion(evidence, look, self.config.promotion).as_dict()

        verdict = Verdict.from_dict(self._files(job).once("decide", make))
        self.registry.sealed.record(Look.model_validate(self.examine(job)["look"]), verdict)
        return verdict

    def roll_out(self, job: TrainingJob) -> dict[str, Any]:
        """Take the challenger through shadow and canary to full service, watched all the way."""
        told = self.train(job)
        champion, challenger = told["model_before"], told["model_after"]

        def make() -> dict[str, Any]:
            return {
                "pairs": [
                    [pair.snapshot_id, pair.champion, pair.challenger]
                    for pair in self._duel(champion, challenger, self.rehearsal).pairs
                ]
            }

        pairs = self._files(job).once("rehearse", make)["pairs"]
        if self.deployments.state().champion == challenger:
            return self.deployments.state().as_dict()
        self.deployments.deploy(challenger)
        half = len(pairs) // 2
        steps: tuple[tuple[Stage, Any], ...] = (("canary", pairs[:half]), ("full", pairs[half:]))
        for stage, some in steps:
            for snapshot_id, theirs, own in some:
                decision = self.deployments.observe(f"{job.job_id}:{snapshot_id}", theirs, own)
                if decision.action == "roll_back":
                    return self.deployments.state().as_dict()
            self.deployments.advance(stage)
        return self.deployments.state().as_dict()

    def champion(self) -> str:
        """Return the hash of the champion; what a canary answers has no part in it."""
        champion = self.deployments.state().champion
        if champion is None:
            raise StoreError(
                "no model serves yet", remedy="Install a first champion, then ask again"
            )
        return champion

    def _files(self, job: TrainingJob) -> JobFolder:
        return JobFolder(self.folder / job.job_id)

    def _policy(self, model: str) -> NeuralPolicy:
        return NeuralPolicy.load(self.registry.load(model).folder)

    def _duel(self, champion: str, challenger: str, folder: Path) -> Duel:
        return duel(
            self.registry.load(champion).folder,
            self.registry.load(challenger).folder,
            SealedSet.of(folder).snapshots,
            self.config.workers,
        )

    def _integrity(
        self, job: TrainingJob, told: dict[str, Any], found: Duel, sealed: SealedSet
    ) -> Integrity:
        artifact = self.registry.load(told["model_after"])
        manifest, _ = read_artifact(artifact.folder, KIND)
        held = set(self.store.batches.ids(job.job_id))
        ids = told["trained_ids"]
        return Integrity(
            artifact_hash_ok=manifest.model_hash == told["model_after"],
            policy_loads=NeuralPolicy.load(artifact.folder).version == told["model_after"]
            and not found.failed,
            replay_equal=replay_equal(artifact.folder, sealed.snapshots[0]),
            snapshots_hash_ok=all(load_snapshot(path) is not None for path in sealed.snapshots),
            data_manifest_ok=manifest.data_hash == fingerprint(ids) and held == set(ids),
            notes="; ".join(found.failed[:3]),
        )
