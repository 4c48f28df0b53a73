"""What is judged: records of comparable trajectories, in words that cannot pass for anything else.

A record holds only what the judge may read. What a trajectory earned, how a question was answered
or what a market did afterwards is not in it, unless somebody put it there on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config

Kind: TypeAlias = Literal["seen", "did", "said", "outcome"]


def plain(text: object) -> object:
    r"""Return text as lines of visible characters; what cannot be seen becomes a question mark.

    Whatever can end a line does end one here, and marks that hide or turn text around are gone, so
    nobody can write something that looks like another part of a prompt.

    Example:
        >>> plain("up" + chr(13) + "now" + chr(0x202E) + chr(9) + "!")
        'up\nnow? !'
    """
    if not isinstance(text, str):
        return text
    return "\n".join("".join(map(_visible, line)) for line in text.splitlines())


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "?"


class RecordConfig(Config):
    """How much of a trajectory a record tells."""

    news_figures: tuple[str, ...] = Field(
        default=("sentiment", "trusted"), description="told of a market when there are posts"
    )
    figures: tuple[str, ...] = Field(
        default=("move", "trusted", "gap"), description="told of a market when it is traded"
    )
    hindsight: bool = Field(default=False, description="tell how it ended, too")
    longest_text: int = Field(default=1_000, ge=40, description="characters of one message")
    longest_part: int = Field(
        default=16_000, ge=400, description="characters of the posts, and of the decisions"
    )


class Message(Config):
    """One moment of a record: what was seen, done or said."""

    kind: Kind
    text: Annotated[str, BeforeValidator(plain)]


class Candidate(Config):
    """One trajectory as a judge reads it; ``id`` is never shown."""

    id: str = Field(min_length=1)
    messages: tuple[Message, ...]

    @property
    def content(self) -> str:
        """The hash of what is read: equal records cannot be told apart."""
        return fingerprint([[one.kind, one.text] for one in self.messages])


class CandidateGroup(Config):
    """Trajectories that began alike and may be compared with each other."""

    group_id: str
    candidates: tuple[Candidate, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _no_twins(self) -> Self:
        ids = [one.id for one in self.candidates]
        if len(set(ids)) != len(ids):
            raise ValueError("two candidates of a group have one id")
        return self


@dataclass(frozen=True, slots=True)
class Entrant:
    """A record that is judged once, on behalf of all trajectories that read the same."""

    content: str
    ids: tuple[str, ...]
    messages: tuple[Message, ...]


def entrants(group: CandidateGroup) -> list[Entrant]:
    """Return the different records of a group, in an order that does not depend on its own."""
    alike: dict[str, list[Candidate]] = {}
    for one in group.candidates:
        alike.setdefault(one.content, []).append(one)
    return [
        Entrant(content, tuple(sorted(one.id for one in same)), same[0].messages)
        for content, same in sorted(alike.items())
    ]


def common_beginning(records: Sequence[tuple[Message, ...]]) -> int:
    """Return how many messages all records begin with; 0 if there is nothing to compare."""
    if len(records) < 2:
        return 0
    together = zip(*records, strict=False)
    return sum(1 for _ in takewhile(lambda row: all(one == row[0] for one in row), together))
