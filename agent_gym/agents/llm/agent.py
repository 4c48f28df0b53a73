"""A language model as an agent: it reads the world in words and answers in a word."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Self, cast

import numpy as np
from pydantic import Field, model_validator

from agent_gym.agents.artifact import MANIFEST
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.calls import Model, ModelCall, Reply
from agent_gym.agents.llm.endpoint import Endpoint, EndpointConfig
from agent_gym.agents.llm.prompts import PromptConfig, Question, questions
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Action, Decision, EpisodeStart, Observation, Step

KIND = "llm"


class LlmAgentConfig(Config):
    """Which model answers, and how it is asked."""

    model: str = Field(
        description="folder of a policy or of a model, smollm2-135m, a hub id, or a name at the "
        "endpoint"
    )
    endpoint: EndpointConfig | None = Field(
        default=None, description="ask there; without it the model runs on this machine"
    )
    base: str | None = Field(
        default=None, description="base model of a policy, if it lies elsewhere"
    )
    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?|mps)$")
    deterministic: bool = Field(
        default=False, description="the likeliest answers; such episodes cannot be trained on"
    )
    prompt: PromptConfig | None = Field(
        default=None, description="a policy brings its own; for a model or an endpoint"
    )
    answers: Answers | None = Field(default=None, description="likewise")
    temperature: float | None = Field(default=None, gt=0, description="likewise; default 1")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.endpoint is not None and (self.base is not None or self.device != "cpu"):
            raise ValueError("base and device are those of a model on this machine")
        if self.endpoint is not None and self.deterministic:
            raise ValueError("an endpoint draws as it likes: set its temperature low instead")
        own = (self.prompt, self.answers, self.temperature)
        if self.is_policy and any(one is not None for one in own):
            raise ValueError("a policy brings its own prompt, answers and temperature")
        if self.base is not None and not self.is_policy:
            raise ValueError("base is that of a policy")
        return self

    @property
    def is_policy(self) -> bool:
        """Return whether the model is the folder of a trained policy."""
        return self.endpoint is None and (Path(self.model) / MANIFEST).is_file()


class LlmAgent:
    """Implements Agent on whoever answers.

    ``signals`` holds ``log_prob`` and ``entropy`` of all answers of a moment together when they
    were drawn here, and ``invalid`` and ``failed`` when answers were of no use or did not come.
    Where a market has no usable answer, or is not asked about, its last target stays.
    """

    name = KIND

    def __init__(self, model: Model, *, deterministic: bool = False) -> None:
        self._model = model
        self._deterministic = deterministic
        self._version = model.version
        self._calls: list[ModelCall] = []
        self.counts = {"asked": 0, "invalid": 0, "failed": 0}

    @property
    def version(self) -> str:
        """Return the hash of all that decides."""
        return self._version

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Return what was asked and said in this episode."""
        return tuple(self._calls)

    def reset(self, start: EpisodeStart) -> None:
        """Find the markets of this world; forget the last episode."""
        if start.actions.n is not None:
            raise AgentError(
                "an answer is a target, and this world counts its actions",
                found=f"{start.actions.n} actions",
                expected="shares of a budget",
            )
        self._markets = FeatureLayout.of(start.feature_names).markets
        self._dice = None if self._deterministic else start.seeds.child("policy").rng()
        self._targets = np.zeros(len(self._markets))
        self._version = self._model.version
        self._model.begin()
        self._calls.clear()
        self._t = 0
        self.counts = dict.fromkeys(self.counts, 0)

    def act(self, obs: Observation) -> Decision:
        """Ask about every market that has news, and take the answers as targets."""
        if obs.text is None:
            raise AgentError(
                "a language model reads words, and this world gives none",
                where=f"ts {obs.ts}",
                remedy="Set text to true in the world's config",
            )
        model = self._model
        asked = questions(obs.text, self._markets, model.prompt, model.answers)
        replies = model.ask([one.prompt for one in asked], self._dice) if asked else []
        for question, reply in zip(asked, replies, strict=True):
            if reply.choice is not None:
                self._targets[question.place] = model.answers.targets[reply.choice]
            self._note(question, reply)
        self._t += 1
        return Decision(self._action(), self._signals(replies), self._words(asked, replies))

    def observe(self, step: Step) -> None:
        """Learn nothing: training is done from records."""

    def _action(self) -> Action:
        return float(self._targets[0]) if self._markets == ("",) else self._targets.copy()

    def _signals(self, replies: list[Reply]) -> dict[str, float] | None:
        signals: dict[str, float] = {}
        drawn = [one.log_prob for one in replies if one.log_prob is not None]
        if len(drawn) == len(replies) and self._dice is not None and self._model.draws:
            signals["log_prob"] = float(sum(drawn))
            signals["entropy"] = sum(one.entropy or 0.0 for one in replies)
        failed = sum(one.error is not None for one in replies)
        if invalid := sum(one.choice is None for one in replies) - failed:
            signals["invalid"] = float(invalid)
        if failed:
            signals["failed"] = float(failed)
        self.counts["asked"] += len(replies)
        self.counts["invalid"] += invalid
        self.counts["failed"] += failed
        return signals or None

    def _words(self, asked: list[Question], replies: list[Reply]) -> str | None:
        said = [
            f"{self._markets[question.place]} {reply.said or reply.error}".strip()
            for question, reply in zip(asked, replies, strict=True)
        ]
        return "; ".join(said) or None

    def _note(self, question: Question, reply: Reply) -> None:
        about = dict(reply.about)
        details = dict(about.pop("details", {}))
        if self._markets[question.place]:
            details["market"] = self._markets[question.place]
        if reply.error is not None:
            details["error"] = reply.error
        elif reply.choice is None:
            details["invalid"] = True
        word = None if reply.choice is None else self._model.answers.words[reply.choice]
        self._calls.append(
            ModelCall(
                t=self._t,
                model=self._model.name,
                model_version=self._version,
                user_prompt=question.prompt,
                system_prompt="" if self._model.draws else self._model.prompt.system,
                response=reply.said,
                action_type=word,
                log_prob=reply.log_prob,
                details=details,
                **about,
            )
        )


@register("agent", KIND, LlmAgentConfig)
def llm(config: LlmAgentConfig) -> LlmAgent:
    """Build the agent; the libraries of a local model are loaded only for one."""
    return LlmAgent(_model(config), deterministic=config.deterministic)


def _model(config: LlmAgentConfig) -> Model:
    prompt = PromptConfig() if config.prompt is None else config.prompt
    answers = Answers() if config.answers is None else config.answers
    temperature = 1.0 if config.temperature is None else config.temperature
    if config.endpoint is not None:
        return Endpoint(config.model, config.endpoint, prompt, answers, temperature)
    local = import_module("agent_gym.agents.llm.local")
    if config.is_policy:
        return cast(Model, local.policy_of(Path(config.model), config.base, config.device))
    return cast(
        Model, local.untrained(config.model, prompt, answers, temperature, device=config.device)
    )
