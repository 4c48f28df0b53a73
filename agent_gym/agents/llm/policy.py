"""A policy on a language model: the model, an adapter, a way of asking, and a few answers.

The chance of an answer is the softmax over the answers' first tokens at the end of the prompt. That
is exactly how a model draws that may say nothing else, so log-probability, entropy and distance
are exact, and one forward pass is a decision. All that decides is in the version: the hash of the
base model, the adapter's numbers, the bias, the prompt, the answers and the temperature.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

from agent_gym.agents.artifact import (
    About,
    ArtifactManifest,
    model_hash_of,
    read_artifact,
    write_artifact,
)
from agent_gym.agents.llm.adapter import Adapter, Lora, attach, layers_of
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.base import BaseModel, load_base
from agent_gym.agents.llm.calls import Reply
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.agents.llm.reader import Reader
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

KIND = "llm"
WEIGHTS, CARD = "policy.safetensors", "policy.json"
BIAS = "bias"
BASE_MODEL = "base_model"
PROBE = "Price 1.00. Answer:"


class LanguageConfig(Config):
    """How a model is asked, what it may answer, and which of its numbers may change."""

    prompt: PromptConfig = Field(default_factory=PromptConfig)
    answers: Answers = Field(default_factory=Answers)
    adapter: Adapter = Field(default_factory=Lora)
    temperature: float = Field(default=1.0, gt=0, le=100)
    longest_prompt: int = Field(
        default=512, ge=8, description="most tokens of a prompt; of a longer one the end is read"
    )


class _Card(Config):
    """All about a policy but its numbers."""

    kind: str = KIND
    base_hash: str
    config: LanguageConfig


class LanguagePolicy:
    """Implements Model on this machine; a learner changes ``parameters`` in place."""

    draws = True

    def __init__(
        self,
        base: BaseModel,
        config: LanguageConfig,
        seeds: Seeds,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.base, self.config = base, config
        self.answers, self.prompt = config.answers, config.prompt
        ids = base.first_tokens(config.answers.words)
        self.parameters = attach(base.network, config.adapter, seeds)
        self._bias = torch.zeros(len(ids))
        if weights is not None:
            self._put(weights)
        adapter = config.adapter
        cut = len(layers_of(base.network)) - adapter.layers if isinstance(adapter, Lora) else 0
        self._reader = Reader(base, ids, cut, config.longest_prompt)
        self._reader.check(PROBE)

    @property
    def name(self) -> str:
        """Return the name of the base model."""
        return self.base.name

    @property
    def files(self) -> dict[str, bytes]:
        """Return the policy as it is now, as files."""
        tensors = {name: one.detach().cpu().clone() for name, one in self.parameters.items()}
        card = _Card(base_hash=self.base.hash, config=self.config)
        return {
            WEIGHTS: bytes_of({**tensors, BIAS: self._bias}),
            CARD: (to_json(card.model_dump(mode="json")) + "\n").encode(),
        }

    @property
    def version(self) -> str:
        """Return the hash of all that decides, as it is now."""
        return model_hash_of(self.files)

    @property
    def bias(self) -> FloatArray:
        """Return what is taken off each answer."""
        return self._bias.double().numpy()

    def log_probs(self, prompts: Sequence[str]) -> Tensor:
        """Return the log of the chance of each answer, ``[prompts, answers]``, float64.

        The model reads in single precision; the softmax is done in double, so that the chances of
        the answers add up to one to the last bit that matters.
        """
        logits = self._reader.logits(prompts).double()
        bias = self._bias.to(logits)
        return torch.log_softmax((logits - bias) / self.config.temperature, dim=-1)

    def calibrate(self, prompts: Sequence[str]) -> None:
        """Take the mean of each answer over some prompts off it, in place of the bias it had.

        A model prefers some words whatever it is shown. Without this it would never try others.
        The prompts must be those of training: the bias is part of the policy.
        """
        with torch.no_grad():
            self._bias = self._reader.logits(prompts).mean(0).cpu()

    def lean(self, word: str, nats: float) -> None:
        """Make an answer likelier, whatever the prompt; this is part of the policy."""
        self._bias[self.answers.words.index(word)] -= nats * self.config.temperature

    def begin(self) -> None:
        """Forget nothing: every question stands for itself."""

    def ask(self, prompts: list[str], dice: np.random.Generator | None) -> list[Reply]:
        """Draw an answer to each prompt, or take the likeliest where there are no dice."""
        with torch.no_grad():
            found = self.log_probs(prompts).cpu().numpy()
        return [self.reply(row, dice) for row in found]

    def save(self, folder: Path, about: About | None = None) -> ArtifactManifest:
        """Put adapter, bias and settings into a folder of their own; the base stays where it is.

        Where it is goes into the manifest: it is no part of the policy, its hash is.
        """
        about = about or About()
        noted = replace(about, config={**about.config, BASE_MODEL: self.base.name})
        return write_artifact(folder, KIND, self.files, noted)

    @classmethod
    def load(cls, folder: Path, base: str | None = None, device: str = "cpu") -> LanguagePolicy:
        """Read a policy and the model it stands on, which must be the very one it was made on.

        Args:
            folder: Where the policy was saved.
            base: The base model, if it lies elsewhere than the manifest says.
            device: Where it reckons.
        """
        manifest, files = read_artifact(folder, KIND)
        try:
            card = _Card.model_validate(json.loads(files[CARD]))
            weights = tensors_of(checked_tensors(files[WEIGHTS]))
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no language policy", where=str(folder), found=error) from error
        name = str(manifest.config.get(BASE_MODEL, "")) if base is None else base
        found = load_base(name, device, expected_hash=card.base_hash)
        return cls(found, card.config, Seeds(0), weights)

    def _put(self, weights: Mapping[str, Tensor]) -> None:
        expected = {name: tuple(one.shape) for name, one in self.parameters.items()}
        expected[BIAS] = tuple(self._bias.shape)
        found = {name: tuple(one.shape) for name, one in weights.items()}
        if found != expected:
            odd = sorted(set(found.items()) ^ set(expected.items()))
            raise DataError("the weights do not fit the model", where=KIND, found=odd[:2])
        if bad := [name for name, one in weights.items() if not torch.isfinite(one).all()]:
            raise DataError("a weight is not a number", where=KIND, found=bad[0])
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(weights[name])
        self._bias = weights[BIAS].float()

    def reply(self, log_probs: FloatArray, dice: np.random.Generator | None) -> Reply:
        """Draw an answer by its chances, or take the likeliest where there are no dice."""
        chances = np.exp(log_probs)
        tokens = {"log_probs": [float(one) for one in log_probs], "bias": self.bias.tolist()}
        about = {"tokens": tokens, "temperature": self.config.temperature}
        if dice is None:
            choice = int(log_probs.argmax())
            return Reply(self.answers.words[choice], choice, about=about)
        reach = chances.cumsum()
        choice = min(int((dice.random() * reach[-1] >= reach).sum()), len(reach) - 1)
        return Reply(
            self.answers.words[choice],
            choice,
            log_prob=float(log_probs[choice]),
            entropy=-float((chances * log_probs).sum()),
            about=about,
        )
