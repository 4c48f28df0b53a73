"""``door/openai``: a model behind an OpenAI-compatible endpoint that trades any market world.

The agent ``llm`` reads worlds that speak in words. This one puts numbers into words itself: some
named features of the last few moments, and the position, so that it plays backtests and scenarios.
"""

from __future__ import annotations

import math
from collections import deque

from pydantic import Field

from agent_gym.agents.doors.words import DoorError
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.endpoint import Endpoint, EndpointConfig
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step

NAME = "door/openai"
SYSTEM = "You trade one market. You see its last bars, the newest last. Reply with one word."


class OpenAIConfig(Config):
    """Which model is asked, what it is shown, and how often."""

    model: str = Field(description="name of the model at the endpoint")
    endpoint: EndpointConfig | None = Field(default=None, description="where, with all choices")
    url: str | None = Field(
        default=None, description="where, with the usual choices: http://host:8000/v1"
    )
    shows: tuple[str, ...] = Field(
        default=("close",), min_length=1, description="features that are shown"
    )
    last: int = Field(default=20, ge=1, le=500, description="moments that are shown")
    every: int = Field(
        default=1, ge=1, description="moments from one question to the next; else it stays"
    )
    system: str = Field(default=SYSTEM, max_length=4_000)
    answers: Answers = Field(default_factory=Answers)
    temperature: float = Field(default=0.01, gt=0)
    strict: bool = Field(
        default=True, description="a failed or unreadable answer ends the episode; else it stays"
    )

    def where(self) -> EndpointConfig:
        """Return the endpoint, named in one way or the other."""
        if (self.endpoint is None) == (self.url is None):
            raise DoorError("name either url or endpoint", where=NAME)
        return self.endpoint or EndpointConfig(url=str(self.url))


class OpenAIAgent:
    """Implements Agent on an endpoint; the last target stays where none is asked for."""

    name = NAME

    def __init__(self, config: OpenAIConfig) -> None:
        self._config = config
        prompt = PromptConfig(question="{text} Answer {answers}:", system=config.system)
        self._endpoint = Endpoint(
            config.model, config.where(), prompt, config.answers, config.temperature
        )

    def reset(self, start: EpisodeStart) -> None:
        """Find the features that are shown; forget the last episode."""
        self._columns = {name: start.column(name) for name in self._config.shows}
        self._actions, self._target, self._t = start.actions, 0.0, 0
        self._seen: dict[str, deque[float]] = {
            name: deque(maxlen=self._config.last) for name in self._columns
        }
        self._endpoint.begin()

    def act(self, obs: Observation) -> Decision:
        """Show the last moments and take the answer as a target."""
        for name, column in self._columns.items():
            self._seen[name].append(float(obs.features[column]))
        said: str | None = None
        signals: dict[str, float] = {}
        if self._t % self._config.every == 0:
            said, signals = self._asked()
        self._t += 1
        return Decision(self._actions.encode(self._target), signals or None, said)

    def observe(self, step: Step) -> None:
        """Learn nothing."""

    def _asked(self) -> tuple[str, dict[str, float]]:
        words = self._config.answers.words_in_a_row
        (reply,) = self._endpoint.ask([f"{self._words()} Answer {words}:"], None)
        if reply.choice is not None:
            self._target = self._config.answers.levels[reply.choice]
            return reply.said, {}
        if self._config.strict:
            raise DoorError(
                "the model gave no answer that can be used",
                where=f"{NAME}, decision {self._t}",
                found=reply.error or repr(reply.said[:80]),
                expected=words,
                remedy="Set strict to false to keep the last target instead",
            )
        return reply.said, {"failed" if reply.error else "invalid": 1.0}

    def _words(self) -> str:
        lines = [
            f"{name}: {', '.join(_word(value) for value in values)}."
            for name, values in self._seen.items()
        ]
        return "\n".join([*lines, f"Your position is {self._target:g}."])


def _word(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "unknown"


@register("agent", NAME, OpenAIConfig)
def openai_door(config: OpenAIConfig) -> OpenAIAgent:
    """Ask a model behind an OpenAI-compatible endpoint about the last bars."""
    return OpenAIAgent(config)
