"""Does a language model learn to trade from words, and only from true rewards?

Tests ask it of a tiny model, and ``scripts/llm_proof.py`` of SmolLM2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from agent_gym.agents.llm.adapter import Adapter, Lora
from agent_gym.agents.llm.base import BaseModel
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.agents.llm.prompts import questions
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.best_and_worst import SFTConfig, imitate_best
from agent_gym.training.grpo.config import AdamConfig, AlarmLimits, EntropySchedule, GRPOConfig
from agent_gym.training.grpo.result import TrainingResult
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.llm import notes
from agent_gym.training.llm.learner import LanguageLearner
from agent_gym.training.llm.notes import Note, Score

Rewards: TypeAlias = Literal["true", "shuffled"]
Say: TypeAlias = Callable[[int, dict[str, Score]], None]
HELD_OUT_SEED = 2026


def learning(updates: int, entropy: float) -> GRPOConfig:
    """Return the settings of the proof but for their size: one epoch, no division by the spread.

    The weight of the entropy begins about as large as a trade costs and falls to nothing.
    """
    return GRPOConfig(
        updates=updates,
        epochs=1,
        scaling="none",
        equal_groups="regularise" if entropy else "drop",
        entropy=EntropySchedule(start=entropy, end=0.0, updates=updates),
        alarms=AlarmLimits(max_kl=None, max_clip_share=None),
        adam=AdamConfig(learning_rate=1e-3),
    )


class NoteCase(Config):
    """One question: who learns, from which rewards, how long."""

    rewards: Rewards = "true"
    training: GRPOConfig
    adapter: Adapter = Lora()
    pool: int = 192
    groups: int = 32
    members: int = 8
    calibration: int = 24
    sft: SFTConfig | None = None
    demonstrations: int = 192
    wrong_share: float = 0.3


@dataclass(slots=True)
class NoteRun:
    """One run on the text market.

    ``scores`` holds, by update and kind of note, what was found on notes that are never trained on:
    ``seen`` has the wordings of training and ``unseen`` others, both with other tickers.
    """

    case: NoteCase
    seed: int
    learner: LanguageLearner
    scores: dict[int, dict[str, Score]] = field(default_factory=dict)
    zero_shot: dict[str, Score] = field(default_factory=dict)
    imitation: dict[str, Score] | None = None
    result: TrainingResult | None = None

    @classmethod
    def begin(cls, case: NoteCase, seed: int, base: BaseModel) -> NoteRun:
        """Take a model as it is, look at it, calibrate it, and let it imitate if it is to."""
        seeds = Seeds(seed).child("notes")
        config = LanguageConfig(prompt=notes.PROMPT, adapter=case.adapter)
        run = cls(case, seed, LanguageLearner(LanguagePolicy(base, config, seeds.child("adapter"))))
        run.zero_shot = run.look()
        policy = run.learner.policy
        policy.calibrate(prompts_of(policy, run.pool()[: case.calibration]))
        if case.sft is not None:
            run._imitate(case.sft)
        return run

    def pool(self) -> list[Note]:
        """Return the notes to learn from."""
        return notes.training_notes(self._seeds.child("pool"), self.case.pool)

    def look(self) -> dict[str, Score]:
        """Return what the policy is worth now, on notes that are never trained on."""
        return {kind: notes.score(self._read, given) for kind, given in held_out().items()}

    def train(
        self, looks: Sequence[int], folder: Path | None = None, say: Say | None = None
    ) -> TrainingResult:
        """Train, and look at it before some of the updates and at the end."""
        pool, case, updates = self.pool(), self.case, self.case.training.updates

        def note(update: int) -> None:
            self.scores[update] = self.look()
            if say is not None:
                say(update, self.scores[update])

        def source(update: int, learner: LanguageLearner) -> RolloutBatch:
            if update in looks:
                note(update)
            seeds = self._seeds.child("update", update)
            picked = seeds.child("picked").rng().choice(len(pool), case.groups, replace=False)
            chosen = [pool[i] for i in picked]
            batch = notes.play(self._read, chosen, case.members, seeds, learner.version)
            shuffled = case.rewards == "shuffled"
            return notes.shuffled(batch, seeds.child("shuffle")) if shuffled else batch

        self.result = GRPOTrainingService(case.training).train(self.learner, source, folder=folder)
        note(updates)
        return self.result

    @property
    def _seeds(self) -> Seeds:
        return Seeds(self.seed).child("notes")

    def _read(self, texts: Sequence[str]) -> FloatArray:
        policy = self.learner.policy
        asked = [questions(text, ("",), policy.prompt, policy.answers)[0].prompt for text in texts]
        return np.asarray(self.learner.log_probs(asked).cpu().numpy())

    def _imitate(self, config: SFTConfig) -> None:
        seeds = self._seeds.child("demonstrations")
        given = notes.training_notes(seeds.child("notes"), self.case.demonstrations)
        batch = notes.demonstrations(given, seeds.child("done"), self.case.wrong_share)
        imitate_best(self.learner, batch, config)
        self.imitation = self.look()


def held_out() -> dict[str, list[Note]]:
    """Return the notes that every run is looked at with."""
    seeds = Seeds(HELD_OUT_SEED).child("held-out-notes")
    return {
        "seen": notes.held_out_notes(seeds.child("seen"), notes.WORDINGS, 2),
        "unseen": notes.held_out_notes(seeds.child("unseen"), notes.UNSEEN, 4),
    }


def prompts_of(policy: LanguagePolicy, given: Sequence[Note]) -> list[str]:
    """Return notes as the policy is asked about them."""
    return [questions(note.text, ("",), policy.prompt, policy.answers)[0].prompt for note in given]
