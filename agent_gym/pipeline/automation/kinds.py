"""The kinds of policy that go through the loop: a small network, or a language model.

Whatever differs between them is here; the stages of a job know policies by their folders alone. The
libraries of language models are loaded only where one plays or learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from agent_gym.agents.artifact import About, read_manifest
from agent_gym.agents.neural.agent import NeuralAgent
from agent_gym.agents.neural.policy import KIND, NeuralPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Ref
from agent_gym.core.types import Agent
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.trainable import TrainablePolicy

NEURAL, LANGUAGE = KIND, "llm"


class SavedPolicy(Protocol):
    """A policy that can be put into a folder."""

    def save(self, folder: Path, about: About | None = None) -> Any: ...


class Learner(TrainablePolicy, Protocol):
    """A policy that learns, and what it has become."""

    @property
    def policy(self) -> SavedPolicy: ...


class PolicyKind(Protocol):
    """What the loop asks of a kind of policy; ``text``: it reads the world in words."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> bool: ...
    @property
    def episode_timeout_s(self) -> float: ...

    def player(self, folder: Path) -> Agent: ...
    def best(self, folder: Path) -> Ref: ...
    def learner(self, folder: Path) -> Learner: ...


@dataclass(frozen=True, slots=True)
class NeuralKind:
    """A small network over the numbers of each market."""

    name: str = NEURAL
    text: bool = False
    episode_timeout_s: float = 60.0

    def player(self, folder: Path) -> Agent:
        """Return an agent that draws its actions."""
        return NeuralAgent(NeuralPolicy.load(folder))

    def best(self, folder: Path) -> Ref:
        """Return the agent that takes its likeliest actions."""
        return Ref(use=NEURAL, params={"model": str(folder), "deterministic": True})

    def learner(self, folder: Path) -> Learner:
        """Return the policy, ready to learn."""
        return NeuralLearner(NeuralPolicy.load(folder))


@dataclass(frozen=True, slots=True)
class LanguageKind:
    """A language model on this machine, whose answers are constrained to a few words."""

    name: str = LANGUAGE
    text: bool = True
    episode_timeout_s: float = 900.0

    def player(self, folder: Path) -> Agent:
        """Return an agent that draws its answers."""
        agents = import_module("agent_gym.agents.llm.agent")
        agent: Agent = agents.LlmAgent(_language_policy(folder))
        return agent

    def best(self, folder: Path) -> Ref:
        """Return the agent that gives its likeliest answers."""
        return Ref(use=LANGUAGE, params={"model": str(folder), "deterministic": True})

    def learner(self, folder: Path) -> Learner:
        """Return the policy, ready to learn."""
        learners = import_module("agent_gym.training.llm.learner")
        learner: Learner = learners.LanguageLearner(_language_policy(folder))
        return learner


KINDS: dict[str, PolicyKind] = {NEURAL: NeuralKind(), LANGUAGE: LanguageKind()}


def kind_of(folder: Path) -> PolicyKind:
    """Return which kind of policy lies in a folder."""
    found = read_manifest(folder).kind
    if found not in KINDS:
        raise DataError(
            "a policy of this kind cannot go through the loop",
            where=str(folder),
            found=found,
            expected=", ".join(KINDS),
        )
    return KINDS[found]


def _language_policy(folder: Path) -> Any:
    return import_module("agent_gym.agents.llm.policy").LanguagePolicy.load(folder)
