"""A model behind an endpoint that speaks as OpenAI's does.

Whatever goes wrong there costs a decision, never the episode: it is tried again a few times, then
counted, and what is held stays. After several failures in a row nobody is asked any more until the
next episode. An answer from there has no chance that could be trusted, so nothing of it can be
trained on by GRPO; the best can be imitated.
"""

from __future__ import annotations

import os

import numpy as np
from openai import APIError, OpenAI
from pydantic import Field

from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.calls import Reply
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config

NO_KEY = "none"


class EndpointConfig(Config):
    """Where a model is asked, and how often a failure is borne."""

    url: str = Field(pattern=r"^https?://[^@\s]+$", description="base, such as http://host:8000/v1")
    key_variable: str = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the key"
    )
    timeout_s: float = Field(default=30.0, gt=0, le=600)
    retries: int = Field(default=2, ge=0, le=10, description="after a failure that may pass")
    give_up_after: int = Field(
        default=5, ge=1, description="failures in a row after which an episode asks no more"
    )
    max_tokens: int = Field(default=8, ge=1, le=4_096, description="of one reply")
    guided_choice: bool = Field(
        default=False, description="send the answers as guided_choice, as vLLM understands it"
    )


class Endpoint:
    """Implements Model over HTTP; its chances are unknown."""

    draws = False

    def __init__(
        self,
        model: str,
        config: EndpointConfig,
        prompt: PromptConfig,
        answers: Answers,
        temperature: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        self.name, self.prompt, self.answers = model, prompt, answers
        self._config, self._temperature = config, temperature
        self._clock = SystemClock() if clock is None else clock
        self._failed_in_a_row = 0
        self._client = OpenAI(
            base_url=config.url,
            api_key=os.environ.get(config.key_variable) or NO_KEY,
            timeout=config.timeout_s,
            max_retries=config.retries,
        )

    @property
    def version(self) -> str:
        """Return the hash of what is asked of whom; the weights behind it are unknown."""
        return fingerprint(
            {
                "model": self.name,
                "url": self._config.url,
                "prompt": self.prompt.model_dump(mode="json"),
                "answers": self.answers.model_dump(mode="json"),
                "temperature": self._temperature,
                "max_tokens": self._config.max_tokens,
                "guided_choice": self._config.guided_choice,
            }
        )

    def begin(self) -> None:
        """Try again in a new episode."""
        self._failed_in_a_row = 0

    def ask(self, prompts: list[str], dice: np.random.Generator | None) -> list[Reply]:
        """Ask one question after the other; dice stay where they are, the endpoint has its own."""
        return [self._ask(prompt) for prompt in prompts]

    def _ask(self, prompt: str) -> Reply:
        config = self._config
        if self._failed_in_a_row >= config.give_up_after:
            return Reply("", None, error=f"not asked: {self._failed_in_a_row} failures in a row")
        sent = {"temperature": self._temperature, "max_tokens": config.max_tokens}
        begun = self._clock.monotonic_s()
        try:
            found = self._client.chat.completions.create(
                model=self.name,
                messages=[
                    {"role": "system", "content": self.prompt.system},
                    {"role": "user", "content": prompt},
                ],
                temperature=self._temperature,
                max_tokens=config.max_tokens,
                extra_body=(
                    {"guided_choice": list(self.answers.words)} if config.guided_choice else None
                ),
            )
            said = found.choices[0].message.content or ""
        except (APIError, ValueError, IndexError, AttributeError, TypeError) as error:
            # A server may send anything at all; what is no completion is a failure of its own.
            self._failed_in_a_row += 1
            return Reply("", None, error=f"{type(error).__name__}: {error}"[:500], about=dict(sent))
        self._failed_in_a_row = 0
        usage = found.usage
        about = sent | {
            "latency_ms": 1e3 * (self._clock.monotonic_s() - begun),
            "prompt_tokens": None if usage is None else usage.prompt_tokens,
            "completion_tokens": None if usage is None else usage.completion_tokens,
            "details": {"model": found.model, "fingerprint": found.system_fingerprint},
        }
        return Reply(said, self.answers.read(said), about=about)
