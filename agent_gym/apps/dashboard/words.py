"""Words of the pages: one table a language, the same keys in each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from agent_gym.apps.dashboard.phrases import translated

LANGUAGES = {"en": "English", "ru": "Русский"}


@cache
def table(language: str) -> dict[str, str]:
    """Return all words of a language by their keys."""
    path = files("agent_gym.apps.dashboard") / "texts" / f"{language}.json"
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language.

    Example:
        >>> Words("en")("nav.runs"), Words("ru")("nav.runs")
        ('Runs', 'Прогоны')
    """

    language: str

    def __call__(self, key: str, **values: object) -> str:
        """Return a text, with values in its places."""
        found = table(self.language)[key]
        return found.format(**values) if values else found

    def known(self, prefix: str, word: str) -> str:
        """Return the text of a word of the stores, or the word itself if it has none."""
        return table(self.language).get(f"{prefix}.{word}", word)

    def said(self, sentence: str) -> str:
        """Return a sentence of the rooms below; one that has no translation stays English."""
        return translated(self.language, sentence)
