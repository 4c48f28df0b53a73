"""A language policy while it is trained; everything else is what neural policies use, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agent_gym.agents.llm.policy import LanguagePolicy
from agent_gym.agents.llm.prompts import questions
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.core.errors import DataError
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.loss import categorical_entropy
from agent_gym.training.grpo.trainable import Evaluation


@dataclass(frozen=True, slots=True)
class Asked:
    """The decisions of a batch: where each stands, its prompt's number, and its answer's."""

    prompts: tuple[str, ...]
    trajectory: NDArray[np.int64]
    tick: NDArray[np.int64]
    market: NDArray[np.int64]
    prompt: NDArray[np.int64]
    answer: NDArray[np.int64]


class LanguageLearner:
    """Implements TrainablePolicy on a LanguagePolicy, which it changes in place.

    Members of a group are asked the same thing: each prompt is read once, whoever was asked it.
    """

    def __init__(self, policy: LanguagePolicy) -> None:
        self.policy = policy
        self._prepared: tuple[RolloutBatch, Asked] | None = None
        self._read: tuple[str, dict[str, int], Tensor] | None = None

    @property
    def version(self) -> str:
        """Return the hash of the policy as it is now."""
        return self.policy.version

    def named_parameters(self) -> Iterable[tuple[str, torch.nn.Parameter]]:
        """Return the numbers of the adapter."""
        return self.policy.parameters.items()

    def evaluate(self, batch: RolloutBatch) -> Evaluation:
        """Return log-probability and entropy of each decision, all markets together.

        Where nothing was asked there was nothing to decide: log-probability and entropy are 0.
        """
        asked = self._asked(batch)
        log_probs = self._log_probs(asked.prompts)
        n, ticks, markets = batch.actions.shape
        at = torch.from_numpy((asked.trajectory * ticks + asked.tick) * markets + asked.market)
        at = at.to(log_probs.device)
        chosen = log_probs[asked.prompt, asked.answer]
        entropy = categorical_entropy(log_probs)[asked.prompt]
        shape = (n, ticks, markets)
        taken = chosen.new_zeros(n * ticks * markets).index_add(0, at, chosen)
        spread = entropy.new_zeros(n * ticks * markets).index_add(0, at, entropy)
        width = log_probs.shape[-1]
        every = log_probs.new_full((n * ticks * markets, width), -float(np.log(width)))
        every = every.index_copy(0, at, log_probs[asked.prompt])
        return Evaluation(
            taken.view(shape).sum(-1), spread.view(shape).sum(-1), every.view(*shape, width)
        )

    def log_probs(self, prompts: Sequence[str]) -> Tensor:
        """Return the log of the chance of each answer to each prompt, without a gradient.

        It is kept until the next call: who has just drawn a batch begins its update with the very
        same numbers, and reads nothing twice.
        """
        with torch.no_grad():
            found = self.policy.log_probs(prompts)
        self._read = (self.version, {one: i for i, one in enumerate(prompts)}, found)
        return found

    def _log_probs(self, prompts: tuple[str, ...]) -> Tensor:
        if torch.is_grad_enabled():
            return self.policy.log_probs(prompts)
        if self._read is not None and self._read[0] == self.version:
            _, places, found = self._read
            if all(one in places for one in prompts):
                return found[[places[one] for one in prompts]]
        return self.log_probs(prompts)

    def _asked(self, batch: RolloutBatch) -> Asked:
        """Find the questions of a batch, once for all epochs."""
        if self._prepared is None or self._prepared[0] is not batch:
            self._prepared = (batch, asked_in(batch, self.policy))
        return self._prepared[1]


def asked_in(batch: RolloutBatch, policy: LanguagePolicy) -> Asked:
    """Ask again what was asked when the batch was recorded, and find what was answered."""
    if batch.texts is None:
        raise DataError(
            "a language model learns from words, and these trajectories were recorded without",
            where=f"{len(batch)} trajectories",
            remedy="Record with text set to true in the world's config",
        )
    markets = FeatureLayout.of(batch.feature_names).markets
    number: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for n, texts in enumerate(batch.texts):
        for t, text in enumerate(texts):
            for one in questions(text, markets, policy.prompt, policy.answers):
                place = number.setdefault(one.prompt, len(number))
                rows.append((n, t, one.place, place, _answer(batch, policy, (n, t, one.place))))
    if not rows:
        raise DataError("nothing was asked in these trajectories", where=f"{len(batch)} of them")
    columns = np.array(rows, dtype=np.int64).T
    return Asked(tuple(number), *columns)


def _answer(batch: RolloutBatch, policy: LanguagePolicy, at: tuple[int, int, int]) -> int:
    target, levels = batch.actions[at], policy.answers.levels
    if target not in levels:
        raise DataError(
            "an action is none of the policy's answers",
            where=f"trajectory {batch.ids[at[0]]}, tick {at[1]}, market {at[2]}",
            found=float(target),
            expected=list(levels),
        )
    return levels.index(target)
