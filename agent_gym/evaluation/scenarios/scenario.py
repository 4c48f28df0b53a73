"""What a scenario is: a situation that is played once a seed and gives figures and a hash."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.metric import Metric


class Subject(Struct, frozen=True):
    """Who is under test: a desk, an agent or a bot.

    The desk is that of signal scenarios, the agent that of market scenarios, the bot that of
    sessions on a sandbox exchange. ``plant`` names a fault that is put in on purpose, to see
    whether the gate finds it.
    """

    desk: Ref = Ref(use="core-agent")
    agent: Ref = Ref(use="rules/sma-cross")
    plant: str | None = None
    bot: BotConfig | None = None


class Episode(Struct, frozen=True):
    """What one seed gave; None is a figure that could not be measured (counted, never 0).

    ``perf`` holds wall-clock figures; they never gate and are in no hash.
    """

    metrics: Mapping[str, float | None]
    trajectory_hash: str
    events: int
    notes: tuple[str, ...] = ()
    perf: Mapping[str, float] = {}


class Scenario(ABC):
    """A situation. Subclasses are registered as kind ``scenario`` under their type name.

    ``version`` changes when the same parameters would mean another situation or another figure:
    results of different versions are not compared. ``needs_bot`` says that a bot is under test.
    """

    version: ClassVar[int]
    metrics: ClassVar[tuple[Metric, ...]]
    needs_bot: ClassVar[bool] = False

    @abstractmethod
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        """Play one seed. Random streams are children of ``seeds``, one for each purpose."""

    def figures(self) -> tuple[Metric, ...]:
        """Return what this very scenario measures; more than ``metrics`` when it reads a log."""
        return self.metrics

    def data_hash(self) -> str:
        """Return the fingerprint of data that come from outside; empty if all is generated."""
        return ""
