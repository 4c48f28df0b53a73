"""The kinds of policy while they learn."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from agent_gym.agents.artifact import About
from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.pipeline.automation.kinds import LANGUAGE, kind_of
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.trainable import TrainablePolicy


class SavedPolicy(Protocol):
    """A policy that can be put into a folder."""

    def save(self, folder: Path, about: About | None = None) -> Any: ...


class Learner(TrainablePolicy, Protocol):
    """A policy that learns, and what it has become."""

    @property
    def policy(self) -> SavedPolicy: ...


def learner_of(folder: Path) -> Learner:
    """Return the policy in a folder, ready to learn."""
    if kind_of(folder).name != LANGUAGE:
        return NeuralLearner(NeuralPolicy.load(folder))
    # The libraries of language models take seconds to load, and are an extra.
    policies = import_module("agent_gym.agents.llm.policy")
    learners = import_module("agent_gym.training.llm.learner")
    learner: Learner = learners.LanguageLearner(policies.LanguagePolicy.load(folder))
    return learner
