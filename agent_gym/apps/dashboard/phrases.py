"""Sentences of the rooms below in another language: a book of phrases with places for numbers."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

_PLACE = re.compile(r"\\\{([a-z]+)\\\}")
_HOLE = re.compile(r"\{[a-z]+\}")
_BETWEEN = "; "
LONGEST = 600  # longer ones are nobody's phrase, and patterns get slow on them


@cache
def book(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return what sentences look like and what they are, the wordiest first; none in English."""
    path = files("agent_gym.apps.dashboard") / "texts" / f"phrases.{language}.json"
    if not path.is_file():
        return ()
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    wordiest = sorted(found, key=lambda english: -len(_HOLE.sub("", english)))
    return tuple((_pattern(english), found[english]) for english in wordiest)


def translated(language: str, sentence: str) -> str:
    """Return a sentence in a language; one that is not in the book stays as it is.

    Sentences that are joined by a semicolon are looked up one by one.

    Example:
        >>> translated("ru", "there was no training yet; 2 regressions")
        'обучения ещё не было; регрессий: 2'
        >>> translated("en", "2 regressions")
        '2 regressions'
    """
    if len(sentence) > LONGEST:
        return sentence
    for pattern, other in book(language):
        found = pattern.fullmatch(sentence)
        if found is not None:
            parts = {name: translated(language, said) for name, said in found.groupdict().items()}
            return other.format(**parts)
    if _BETWEEN in sentence:
        return _BETWEEN.join(translated(language, each) for each in sentence.split(_BETWEEN))
    return sentence


def _pattern(english: str) -> re.Pattern[str]:
    """Return what a phrase looks like; a place called ``words`` may hold several sentences."""
    return re.compile(_PLACE.sub(_place, re.escape(english)), re.DOTALL)


def _place(found: re.Match[str]) -> str:
    name = found.group(1)
    return f"(?P<{name}>.+)" if name == "words" else f"(?P<{name}>[^;]+?)"
