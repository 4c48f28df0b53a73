"""How each kind of policy learns: by comparing what was played, or by predicting what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.kinds import ACTIVE, LANGUAGE, NEURAL, kind_of
from agent_gym.pipeline.automation.learning import Learner, learn
from agent_gym.pipeline.automation.predicting import Prediction
from agent_gym.rollouts.database import TrajectoryBatch
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.distance import distances
from agent_gym.training.grpo.neural import NeuralLearner


class Learning(Protocol):
    """What the loop asks of a way of learning; policies are named by their folders."""

    def learn(
        self,
        job: TrainingJob,
        files: JobFolder,
        model: Path,
        batch: TrajectoryBatch,
        config: GRPOConfig,
    ) -> dict[str, Any]:
        """Learn from exactly this batch, keep the policy with the job, and say how it went."""

    def distances(
        self, champion: Path, challenger: Path, rows: RolloutBatch
    ) -> tuple[float, float]:
        """Return entropy of the challenger and its distance from the champion, nats a choice."""

    def version(self, model: Path) -> str:
        """Load a policy, and return its hash."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Implements Learning by GRPO: what did better than its like becomes likelier."""

    load: Callable[[Path], Learner]

    def learn(
        self,
        job: TrainingJob,
        files: JobFolder,
        model: Path,
        batch: TrajectoryBatch,
        config: GRPOConfig,
    ) -> dict[str, Any]:
        """Train the policy of a folder."""
        return learn(job, files, self.load(model), batch, config)

    def distances(
        self, champion: Path, challenger: Path, rows: RolloutBatch
    ) -> tuple[float, float]:
        """Ask both what they would have done."""
        return distances(self.load(champion), self.load(challenger), rows)

    def version(self, model: Path) -> str:
        """Load a policy, and return its hash."""
        return self.load(model).version


def _network(folder: Path) -> Learner:
    return NeuralLearner(NeuralPolicy.load(folder))


def _language_model(folder: Path) -> Learner:
    # The libraries of language models take seconds to load, and are an extra.
    policies = import_module("agent_gym.agents.llm.policy")
    learners = import_module("agent_gym.training.llm.learner")
    learner: Learner = learners.LanguageLearner(policies.LanguagePolicy.load(folder))
    return learner


LEARNING: dict[str, Learning] = {
    NEURAL: Comparison(_network),
    LANGUAGE: Comparison(_language_model),
    ACTIVE: Prediction(),
}


def learning_of(folder: Path) -> Learning:
    """Return how the policy in a folder learns."""
    return LEARNING[kind_of(folder).name]
