"""Reading an answer: exactly the labels that were asked for, numbers in range, or a reason why not.

Nothing is guessed: no number is fished out of prose, clamped, filled in or matched by its place.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from pydantic import Field, ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config
from agent_gym.evaluation.judge.backend import FailureKind

LONGEST_ANSWER = 200_000
LONGEST_EXPLANATION = 4_000
FENCE = "```"


class Malformed(DataError):
    """An answer that is not what was asked for.

    ``what`` is made of our own words alone, so that it can be told to the judge.
    """

    kind: FailureKind = "malformed"


class NoAnswer(Malformed):
    """Words without a single object: the judge talked, and did not judge."""

    kind = "refused"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said of one record."""

    score: float
    explanation: str


class _Item(Config):
    id: str
    score: Annotated[float, Field(ge=0.0, le=1.0)]
    explanation: Annotated[str, Field(max_length=LONGEST_EXPLANATION)]


class _Answer(Config):
    scores: list[_Item]


def read_answer(text: str, labels: Collection[str]) -> dict[str, Verdict]:
    """Return the verdict on each label; anything else is Malformed.

    Example:
        >>> said = '{"scores": [{"id": "t-1", "score": 0.25, "explanation": "late"}]}'
        >>> read_answer(said, ["t-1"])["t-1"].score
        0.25
    """
    answer = _checked(_object(text))
    found = [item.id for item in answer.scores]
    known = set(labels)
    if len(set(found)) != len(found):
        raise Malformed("an id has more than one score")
    if set(found) - known:
        raise Malformed("there is a score for an id that was not asked for")
    if missing := sorted(known - set(found)):
        raise Malformed(f"the score of {missing[0]} is missing", found=len(missing))
    return {item.id: Verdict(item.score, item.explanation) for item in answer.scores}


def _object(text: str) -> Any:
    if len(text) > LONGEST_ANSWER:
        raise Malformed("the answer is too long", expected=f"{LONGEST_ANSWER:,} characters")
    bare = _without_fence(text.strip())
    if bare and "{" not in bare:
        raise NoAnswer("the answer holds no JSON object")
    try:
        return json.loads(bare, object_pairs_hook=_no_key_twice, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Malformed("the answer is not one JSON object") from error


def _without_fence(text: str) -> str:
    """Return what is inside a Markdown fence, if the whole answer is inside one."""
    head, _, rest = text.partition("\n")
    if head.strip() in (FENCE, FENCE + "json") and rest.endswith(FENCE):
        return rest.removesuffix(FENCE).strip()
    return text


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Malformed("an object has a key twice")
    return made


def _no_number(name: str) -> NoReturn:
    raise Malformed("a score is not a number")


def _checked(value: Any) -> _Answer:
    try:
        return _Answer.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise Malformed(_words(tuple(first["loc"]), first["type"])) from error


def _words(where: tuple[int | str, ...], problem: str) -> str:
    field = next((part for part in reversed(where) if part in _WORDS), None)
    if problem == "extra_forbidden":
        return "there is a key that was not asked for"
    if problem == "missing":
        return "an entry lacks id, score or explanation"
    return _WORDS.get(field, "the answer has another shape than asked for")


_WORDS: dict[int | str | None, str] = {
    "score": "a score is not a number from 0 to 1",
    "id": "an id is not a text",
    "explanation": f"an explanation is not a text of at most {LONGEST_EXPLANATION:,} characters",
}
