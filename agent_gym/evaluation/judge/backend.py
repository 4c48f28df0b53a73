"""Who answers: one small protocol for a model behind an endpoint, a recording, or the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from agent_gym.core.errors import AgentGymError
from agent_gym.core.manifest import fingerprint

FailureKind: TypeAlias = Literal["refused", "malformed", "timeout", "unavailable"]
FAILURES: tuple[FailureKind, ...] = ("refused", "malformed", "timeout", "unavailable")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A part of a prompt, as chat models take it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """A question to a judge.

    Attributes:
        group_id: The group that is judged; no part of the prompt.
        messages: The prompt: all that a model is given.
        labels: The trajectories behind each label in the prompt; for judges that know outcomes.
    """

    group_id: str
    messages: tuple[ChatMessage, ...]
    labels: Mapping[str, tuple[str, ...]]

    def key(self, model: str, version: str) -> str:
        """Return the hash of who is asked what."""
        said = [[one.role, one.content] for one in self.messages]
        return fingerprint({"model": model, "version": version, "messages": said})

    def followed_by(self, *more: ChatMessage) -> JudgeRequest:
        """Return the same question with something after it."""
        return replace(self, messages=(*self.messages, *more))


class JudgeBackend(Protocol):
    """Answers questions; what it says is text and is not trusted.

    ``version`` is a hash of everything but the prompt that decides an answer. ``reads`` says
    whether that prompt is all it knows, or whether it looks up how trajectories ended.
    """

    @property
    def model(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def reads(self) -> Literal["messages", "outcomes"]: ...
    def answer(self, request: JudgeRequest) -> str: ...


class BackendFailed(AgentGymError):
    """A judge gave no answer; the pass fails and says why, the others go on."""

    kind: FailureKind = "unavailable"


class Refused(BackendFailed):
    """A judge would not answer."""

    kind = "refused"


class TimedOut(BackendFailed):
    """A judge did not answer in time."""

    kind = "timeout"
