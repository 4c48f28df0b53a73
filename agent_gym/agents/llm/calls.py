"""What a model was asked and what it said, as the trajectory store keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.prompts import PromptConfig


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one question.

    ``choice`` is None when nothing usable came back; ``error`` then says why, if the model could
    not be asked at all. ``log_prob`` and ``entropy`` are those of the draw, None if nothing was
    drawn here.
    """

    said: str
    choice: int | None
    log_prob: float | None = None
    entropy: float | None = None
    error: str | None = None
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One question to a model; the fields are those of the store's ``LlmCallRecord``."""

    t: int
    model: str
    model_version: str
    user_prompt: str
    response: str
    system_prompt: str = ""
    action_type: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: float | None = None
    log_prob: float | None = None
    tokens: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return the fields for ``LlmCallRecord``."""
        return asdict(self)


class Model(Protocol):
    """Who answers: an endpoint, or a policy on this machine.

    ``draws`` says whether answers are drawn here, by chances that are known.
    """

    @property
    def draws(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def prompt(self) -> PromptConfig: ...
    @property
    def answers(self) -> Answers: ...
    def begin(self) -> None: ...
    def ask(self, prompts: list[str], dice: np.random.Generator | None) -> list[Reply]: ...
