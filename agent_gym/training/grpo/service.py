"""The training service: batch after batch, with checkpoints, to the same bits each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.checkpoints import CheckpointFolder, TrainingState
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.optimizer import Optimizer
from agent_gym.training.grpo.result import GroupTotals, TrainingResult, UpdateMetrics
from agent_gym.training.grpo.screening import screen
from agent_gym.training.grpo.trainable import P, Source, TrainablePolicy
from agent_gym.training.grpo.update import Learners, Progress, run_update
from agent_gym.training.threads import torch_threads


@dataclass(frozen=True, slots=True)
class GRPOTrainingService:
    """Trains a policy, in place, by comparing trajectories of the same group.

    Everything random follows from the seed, so the same policy, settings and batches give the
    same bits, also when a run was stopped and continued from its folder.
    """

    config: GRPOConfig = field(default_factory=GRPOConfig)

    def train(
        self,
        policy: P,
        source: Source[P],
        *,
        reference: TrainablePolicy | None = None,
        lineage: Sequence[str] = (),
        folder: Path | None = None,
    ) -> TrainingResult:
        """Ask for a batch, learn from it, and so on.

        Args:
            policy: Who learns.
            source: Gives the batch of an update; called with its number and the policy.
            reference: The policy to stay near to, when ``loss.kl`` is above 0.
            lineage: Versions of the policy before it came here, the newest last; what they
                recorded may still be used as far as ``max_staleness`` allows.
            folder: Where checkpoints go; a run that lies there already is continued.
        """
        self._check_reference(reference)
        with torch_threads(self.config.threads):
            return self._train(policy, source, reference, lineage, folder)

    def _train(
        self,
        policy: P,
        source: Source[P],
        reference: TrainablePolicy | None,
        lineage: Sequence[str],
        folder: Path | None,
    ) -> TrainingResult:
        learners = Learners(policy, Optimizer(policy, self.config.adam), reference)
        state, checkpoints = self._begin(learners, (*lineage, policy.version), folder)
        for update in range(state.done, self.config.updates):
            state = self._advance(learners, state, source(update, policy))
            last = update + 1 == self.config.updates
            if checkpoints and (last or (update + 1) % self.config.checkpoint_every == 0):
                checkpoints.save(state, learners.optimizer.tensors())
        return _result(state, policy)

    def train_on(
        self,
        policy: P,
        batch: RolloutBatch,
        *,
        reference: TrainablePolicy | None = None,
        lineage: Sequence[str] = (),
    ) -> TrainingResult:
        """Learn from one recorded set, ``epochs`` times over, as one update."""
        once = GRPOTrainingService(self.config.model_copy(update={"updates": 1}))
        return once.train(policy, lambda update, own: batch, reference=reference, lineage=lineage)

    def _begin(
        self, learners: Learners, lineage: tuple[str, ...], folder: Path | None
    ) -> tuple[TrainingState, CheckpointFolder | None]:
        before = lineage[-1]
        run = fingerprint({"config": self.config.model_dump(mode="json"), "model": before})
        fresh = TrainingState(run=run, model_before=before, lineage=lineage)
        if folder is None:
            return fresh, None
        checkpoints = CheckpointFolder(folder, run)
        found = checkpoints.load()
        if found is None:
            return fresh, checkpoints
        state, tensors = found
        learners.optimizer.restore(tensors, state.steps)
        return state, checkpoints

    def _advance(
        self, learners: Learners, state: TrainingState, batch: RolloutBatch
    ) -> TrainingState:
        screened = screen(batch, self.config, state.lineage)
        progress = run_update(learners, screened, self.config, state.done)
        version = learners.policy.version if progress.steps else state.lineage[-1]
        refused = Counter(state.refused)
        refused.update(screened.refused)
        return state.model_copy(
            update={
                "done": state.done + 1,
                "steps": learners.optimizer.steps(),
                "lineage": (*state.lineage, version) if progress.steps else state.lineage,
                "trained_ids": tuple(dict.fromkeys(state.trained_ids) | progress.trained_ids),
                "refused": dict(refused),
                "updates": (*state.updates, self._metrics(state.done, batch, progress)),
            }
        )

    def _metrics(self, update: int, batch: RolloutBatch, progress: Progress) -> UpdateMetrics:
        counts, figures = progress.counts, progress.figures
        return UpdateMetrics(
            update=update,
            trajectories=len(batch),
            return_mean=float(batch.returns.mean()),
            groups=GroupTotals(kept=counts.kept, dropped=counts.dropped, refused=counts.refused),
            zero_share=counts.zero_share,
            entropy_coefficient=self.config.entropy.at(update),
            ess=progress.ess,
            steps=progress.steps,
            loss=None if figures is None else figures.loss,
            entropy=None if figures is None else figures.entropy,
            approx_kl=None if figures is None else figures.approx_kl,
            clip_share=None if figures is None else figures.clip_share,
            ratio_max=None if figures is None else figures.ratio_max,
            reference_kl=None if figures is None else figures.kl,
            grad_norm=progress.grad_norm,
            stopped=progress.stopped,
        )

    def _check_reference(self, reference: TrainablePolicy | None) -> None:
        if (reference is None) != (self.config.loss.kl == 0):
            raise ConfigError(
                "a reference policy and loss.kl above 0 belong together",
                where="loss.kl",
                found=f"{self.config.loss.kl:g}, reference {'no' if reference is None else 'yes'}",
            )


def _result(state: TrainingState, policy: TrainablePolicy) -> TrainingResult:
    totals = Counter[str]()
    for update in state.updates:
        totals.update(update.groups.model_dump())
    ids = tuple(sorted(state.trained_ids))
    return TrainingResult(
        method="grpo",
        model_before=state.model_before,
        model_after=policy.version,
        data_hash=fingerprint(list(ids)),
        trained_ids=ids,
        groups=GroupTotals(**totals),
        refused=state.refused,
        updates=state.updates,
    )
