"""A language model behind any endpoint that speaks the protocol of OpenAI's chat completions.

The reply is read piece by piece, up to a size and a moment, and taken apart here: an endpoint that
floods, drips, hangs or talks nonsense costs one pass and no more. (What comes with an error status
is read by the library, which bounds the silence between two pieces, not their number.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import BaseModel, Field, ValidationError, field_validator

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.evaluation.judge.backend import BackendFailed, JudgeRequest, Refused, TimedOut
from agent_gym.evaluation.judge.prompt import shortened
from agent_gym.evaluation.judge.records import plain

LARGEST_REPLY = 2_000_000  # bytes
LONGEST_REASON = 300
NO_KEY = "none"  # what servers without keys are sent; the library insists on one


class EndpointConfig(Config):
    """Where the model is and how it is asked; the key itself is never part of it."""

    base_url: str = Field(description="such as http://127.0.0.1:8000/v1")
    model: str = Field(min_length=1)
    key_variable: str = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the key, if any"
    )
    temperature: float | None = Field(default=0.0, ge=0.0, le=2.0, description="None: not sent")
    max_tokens: int = Field(default=4_096, ge=64, le=1_000_000, description="of one answer")
    completion_tokens: bool = Field(
        default=False, description="limit them by max_completion_tokens, as some models insist on"
    )
    json_mode: bool = Field(default=True, description="ask the endpoint for JSON alone")
    timeout_s: float = Field(default=120.0, gt=0.0, le=3_600.0, description="of one reply")
    retries: int = Field(default=2, ge=0, le=10, description="after 408, 409, 429, 5xx, silence")

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, given: str) -> str:
        found = urlsplit(given)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ValueError("an address begins with http:// or https:// and names a host")
        if found.username or found.password or found.query or found.fragment:
            raise ValueError("an address holds no user, key, query or fragment")
        return given


@dataclass(frozen=True, slots=True)
class OpenAIBackend:
    """Asks a model; the key is read from the environment and goes nowhere else."""

    config: EndpointConfig
    clock: Clock = field(default_factory=SystemClock)
    reads: Literal["messages"] = "messages"
    _client: openai.OpenAI = field(init=False, repr=False)

    def __post_init__(self) -> None:
        config = self.config
        key = os.environ.get(config.key_variable)
        if key and not _may_carry_a_key(config.base_url):
            raise ConfigError(
                "a key is not sent over an open line",
                where=config.base_url,
                expected="https://, or this machine",
                remedy=f"Use https, or unset {config.key_variable}",
            )
        client = openai.OpenAI(
            base_url=config.base_url,
            api_key=key or NO_KEY,
            timeout=config.timeout_s,
            max_retries=config.retries,
        )
        object.__setattr__(self, "_client", client)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.config.model

    @property
    def version(self) -> str:
        """The hash of what decides an answer: not the key, nor how long one waits."""
        deciding = {"base_url", "temperature", "max_tokens", "completion_tokens", "json_mode"}
        return fingerprint(self.config.model_dump(mode="json", include=deciding))

    def answer(self, request: JudgeRequest) -> str:
        """Return what the model says."""
        limit = "max_completion_tokens" if self.config.completion_tokens else "max_tokens"
        options: dict[str, Any] = {limit: self.config.max_tokens}
        if self.config.temperature is not None:
            options["temperature"] = self.config.temperature
        if self.config.json_mode:
            options["response_format"] = {"type": "json_object"}
        messages: list[Any] = [
            {"role": one.role, "content": one.content} for one in request.messages
        ]
        with _told(self.config):
            asked = self._client.chat.completions.with_streaming_response.create(
                model=self.config.model, messages=messages, **options
            )
            with asked as response:
                body = self._read(response.iter_bytes())
        return _said(body)

    def _read(self, pieces: Iterator[bytes]) -> bytes:
        """Return the whole reply, as long as it is neither too large nor too slow."""
        end = self.clock.monotonic_s() + self.config.timeout_s
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > LARGEST_REPLY:
                raise BackendFailed("a reply is too large", expected=f"{LARGEST_REPLY:,} bytes")
            if self.clock.monotonic_s() > end:
                raise TimedOut("a reply came too slowly", found=f"{len(body):,} bytes")
        return bytes(body)


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


def _said(body: bytes) -> str:
    try:
        reply = _Completion.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        what = "it is no chat completion" if isinstance(error, ValidationError) else "not JSON"
        raise BackendFailed("an endpoint replied nonsense", found=what) from error
    first = reply.choices[0]
    if first.message.refusal or first.finish_reason == "content_filter":
        words = first.message.refusal or "the endpoint's filter"
        raise Refused(
            "the model would not answer", found=shortened(str(plain(words)), LONGEST_REASON)
        )
    if first.finish_reason == "length":
        raise BackendFailed(
            "an answer was cut off", remedy="Allow more tokens, or show fewer records at a time"
        )
    if first.message.content is None:
        raise BackendFailed("an endpoint replied without an answer")
    return first.message.content


@contextmanager
def _told(config: EndpointConfig) -> Iterator[None]:
    """Turn what can go wrong on the way into words; what no pass can mend ends the run."""
    try:
        yield
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise ConfigError(
            "the endpoint does not let us in",
            where=config.base_url,
            found=f"status {error.status_code}",
            remedy=f"Put the right key into the environment variable {config.key_variable}",
        ) from error
    except openai.NotFoundError as error:
        raise ConfigError(
            "the endpoint has no such model or address",
            where=config.base_url,
            found=config.model,
            remedy="Check --base-url (it mostly ends with /v1) and --model",
        ) from error
    except openai.APIStatusError as error:
        words = shortened(str(plain(error.message)), LONGEST_REASON)
        raise BackendFailed(f"the endpoint said {error.status_code}", found=words) from error
    except (openai.APITimeoutError, httpx2.TimeoutException) as error:
        raise TimedOut("the endpoint gave no reply in time", where=config.base_url) from error
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        raise BackendFailed(
            "the endpoint cannot be reached", where=config.base_url, found=type(error).__name__
        ) from error


def _may_carry_a_key(address: str) -> bool:
    found = urlsplit(address)
    if found.scheme == "https" or found.hostname == "localhost":
        return True
    try:
        return ip_address(found.hostname or "").is_loopback
    except ValueError:
        return False
