"""Words of the pages: one table a language, the same keys in each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from agent_gym.apps.dashboard.phrases import translated

# In Russian a comma would be read as the beginning of decimals.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
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

    def count(self, n: int) -> str:
        """Return a whole number with its thousands apart, as the language writes it.

        Example:
            >>> Words("en").count(12_345)
            '12,345'
        """
        return self.grouped(f"{n:,}")

    def grouped(self, said: str) -> str:
        """Return a text whose thousands stand apart as the language has it."""
        return _THOUSANDS.sub("\xa0", said) if self.language == "ru" else said

    def known(self, prefix: str, word: str) -> str:
        """Return the text of a word of the stores, or the word itself if it has none."""
        return table(self.language).get(f"{prefix}.{word}", word)

    def head(self, said: str) -> str:
        """Return words of ours as a head of a column; names of agents and runs stay as they are.

        Example:
            >>> Words("en").head("max DD %")
            'Max DD %'
        """
        return said[:1].upper() + said[1:]

    def said(self, sentence: str) -> str:
        """Return a sentence of the rooms below; one that has no translation stays English."""
        found = translated(self.language, sentence)
        return found if "`" in found else self.grouped(found)  # a command stays as it is
