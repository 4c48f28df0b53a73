"""The kinds of policy that go through the loop: a small network, a language model, or UMC.

How each plays is here, and how it learns in ``learners``; the stages of a job know policies by
their folders alone. Libraries that only one kind needs are loaded where it plays, and those
of learning never: a process that plays is ready seconds earlier without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from agent_gym.agents.artifact import read_manifest
from agent_gym.agents.neural.agent import NeuralAgent
from agent_gym.agents.neural.policy import KIND, NeuralPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Ref
from agent_gym.core.types import Agent

NEURAL, LANGUAGE, ACTIVE = KIND, "llm", "umc/market"


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


@dataclass(frozen=True, slots=True)
class LanguageKind:
    """A language model on this machine, whose answers are constrained to a few words."""

    name: str = LANGUAGE
    text: bool = True
    episode_timeout_s: float = 900.0

    def player(self, folder: Path) -> Agent:
        """Return an agent that draws its answers."""
        policies = import_module("agent_gym.agents.llm.policy")
        agents = import_module("agent_gym.agents.llm.agent")
        agent: Agent = agents.LlmAgent(policies.LanguagePolicy.load(folder))
        return agent

    def best(self, folder: Path) -> Ref:
        """Return the agent that gives its likeliest answers."""
        return Ref(use=LANGUAGE, params={"model": str(folder), "deterministic": True})


@dataclass(frozen=True, slots=True)
class ActiveKind:
    """UMC: laws of how markets move, and the position of least expected free energy."""

    name: str = ACTIVE
    text: bool = False
    episode_timeout_s: float = 60.0

    def player(self, folder: Path) -> Agent:
        """Return an agent that draws its actions."""
        agents = import_module("agent_gym.agents.umc.snapshots.agent")
        agent: Agent = agents.UMCMarketAgent(agents.UMCMarketPolicy.load(folder))
        return agent

    def best(self, folder: Path) -> Ref:
        """Return the agent that takes the actions of least free energy."""
        return Ref(use=ACTIVE, params={"model": str(folder), "deterministic": True})


KINDS: dict[str, PolicyKind] = {
    kind.name: kind for kind in (NeuralKind(), LanguageKind(), ActiveKind())
}


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
