"""The same learner on benchmark snapshots: it reads the posts of a tick and sets its targets.

The question shows the news of a market alone, so that all who play a snapshot are asked the same
things; each is read once an update, however many play.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from agent_gym.agents.llm.adapter import Adapter, Lora
from agent_gym.agents.llm.agent import LlmAgent
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.base import BaseModel
from agent_gym.agents.llm.calls import Reply
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.agents.llm.prompts import PromptConfig, questions
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.team import Independent
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray, Step
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.rollouts.play import play
from agent_gym.training.grpo.batch import RolloutBatch, recorded_of, stack
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.result import TrainingResult
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.llm.learner import LanguageLearner
from agent_gym.training.llm.notes import shuffled

NEWS_PROMPT = PromptConfig(question="{news} {answers}?")
NEWS_ANSWERS = Answers(words=("SELL", "FLAT", "BUY"))
SEEDS_APART = 1_000


class Recited:
    """Implements Model from a table of what a policy says; for prompts it has read before."""

    draws = True

    def __init__(self, policy: LanguagePolicy, version: str, table: dict[str, FloatArray]) -> None:
        self.name, self.prompt, self.answers = policy.name, policy.prompt, policy.answers
        self.version = version
        self._policy, self._table = policy, table

    def begin(self) -> None:
        """Nothing is remembered from one episode to the next."""

    def ask(self, prompts: list[str], dice: np.random.Generator | None) -> list[Reply]:
        """Answer as the policy would."""
        return [self._policy.reply(self._table[prompt], dice) for prompt in prompts]


class Steps:
    """A sink that keeps the steps of one episode."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def write(self, step: Step) -> None:
        """Keep a step."""
        self.steps.append(step)

    def close(self) -> None:
        """Nothing is to be closed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A snapshot in memory and every question that it will ask."""

    world: BenchmarkWorld
    prompts: tuple[str, ...]

    @property
    def id(self) -> str:
        """Return the snapshot's id."""
        return self.world.snapshot.id


def stages(config: SnapshotConfig, seeds: Sequence[int], folder: Path) -> list[Stage]:
    """Make snapshots and find their questions, which do not depend on who plays."""
    return [stage_of(BenchmarkDataGenerator(config).generate(seed).save(folder)) for seed in seeds]


def play_group(
    learner: LanguageLearner, chosen: Sequence[Stage], members: int, seeds: Seeds
) -> RolloutBatch:
    """Let the policy as it is now play each snapshot several times."""
    model, recorded = _recited(learner, chosen), []
    for stage in chosen:
        for member in range(members):
            steps = _episode(stage, LlmAgent(model), seeds.child(stage.id, member))
            names = stage.world.start(TRADER, seeds).feature_names
            recorded.append(
                recorded_of(
                    steps,
                    id="/".join((*seeds.path, stage.id, str(member))),
                    group_key=stage.id,
                    version=model.version,
                    feature_names=names,
                    texts=tuple(step.before.text or "" for step in steps),
                )
            )
    return stack(recorded)


def greedy_returns(learner: LanguageLearner, chosen: Sequence[Stage]) -> list[float]:
    """Return what the policy earns on each snapshot, doing what it finds likeliest."""
    agent = LlmAgent(_recited(learner, chosen), deterministic=True)
    return [
        float(sum(step.after.reward for step in _episode(stage, agent, Seeds(0))))
        for stage in chosen
    ]


def stage_of(path: Path) -> Stage:
    """Return a snapshot with every question that it will ask."""
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=path, text=True))
    markets = FeatureLayout.of(world.start(TRADER, Seeds(0)).feature_names).markets
    seen = world.reset(Seeds(0))[TRADER]
    found: dict[str, None] = {}
    while True:
        asked = questions(seen.text or "", markets, NEWS_PROMPT, NEWS_ANSWERS)
        found.update(dict.fromkeys(one.prompt for one in asked))
        outcome = world.advance(np.zeros(len(markets)))
        if outcome.terminated:
            return Stage(world, tuple(found))
        seen = outcome.observation


def _recited(learner: LanguageLearner, chosen: Sequence[Stage]) -> Recited:
    prompts = tuple(dict.fromkeys(one for stage in chosen for one in stage.prompts))
    read = learner.log_probs(prompts).cpu().numpy()
    return Recited(learner.policy, learner.version, dict(zip(prompts, read, strict=True)))


def _episode(stage: Stage, agent: LlmAgent, seeds: Seeds) -> list[Step]:
    kept = Steps()
    play(stage.world, Independent({TRADER: agent}), stage.id, seeds, [kept])
    return kept.steps


class SnapshotCase(Config):
    """What is learned from, and how."""

    market: SnapshotConfig
    training: GRPOConfig
    adapter: Adapter = Lora()
    rewards: Literal["true", "shuffled"] = "true"
    pool: int = Field(default=16, ge=1, description="snapshots to learn from")
    groups: int = Field(default=4, ge=1, description="snapshots an update")
    members: int = Field(default=8, ge=2, description="episodes on each of them")


@dataclass(frozen=True, slots=True)
class SnapshotRun:
    """One run; it is looked at on snapshots that it never plays to learn."""

    case: SnapshotCase
    seed: int
    folder: Path

    def train(
        self,
        base: BaseModel,
        held_out: Sequence[int],
        looks: Sequence[int],
        state: Path | None = None,
        say: Callable[[int, list[float]], None] | None = None,
    ) -> TrainingResult:
        """Train a fresh policy; the look before its calibration is told as update -1.

        Args:
            base: The model.
            held_out: Seeds of the snapshots to look at it with.
            looks: Updates before which it is looked at; it always is at the end.
            state: Where checkpoints go.
            say: Is told the returns of each look.
        """
        case, seeds = self.case, Seeds(self.seed).child("snapshots")
        config = LanguageConfig(prompt=NEWS_PROMPT, answers=NEWS_ANSWERS, adapter=case.adapter)
        learner = LanguageLearner(LanguagePolicy(base, config, seeds.child("adapter")))
        first = SEEDS_APART * self.seed + 1
        pool = stages(case.market, range(first, first + case.pool), self.folder / "pool")
        held = stages(case.market, held_out, self.folder / "held_out")

        def look(update: int) -> None:
            if say is not None:
                say(update, greedy_returns(learner, held))

        def source(update: int, own: LanguageLearner) -> RolloutBatch:
            if update in looks:
                look(update)
            drawn = seeds.child("update", update)
            picked = drawn.child("picked").rng().choice(len(pool), case.groups, replace=False)
            chosen = [pool[i] for i in picked]
            batch = play_group(own, chosen, case.members, drawn.child("play"))
            mixed = case.rewards == "shuffled"
            return shuffled(batch, drawn.child("shuffle")) if mixed else batch

        look(-1)
        learner.policy.calibrate([one for stage in pool[:2] for one in stage.prompts])
        result = GRPOTrainingService(case.training).train(learner, source, folder=state)
        look(case.training.updates)
        return result
