"""By what a judge judges: a short text, and its hash, which every judgment carries."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config

LONGEST_RUBRIC = 8_000


class Rubric(Config):
    """What counts, and how much."""

    name: str = Field(min_length=1)
    text: str = Field(min_length=1, max_length=LONGEST_RUBRIC)

    @property
    def version(self) -> str:
        """The hash of the text: another wording is another judge."""
        return fingerprint(self.text)


DECISIONS = Rubric(
    name="decisions",
    text="""\
Judge decisions, not luck: what matters is what the agent could know when it decided.
- Use of evidence (40 %): positions follow the news, weighed by how reliable their authors are, and
  do not follow promoters, rumours or noise.
- Timing (30 %): it acts while the price has not yet taken the news in, and leaves when it has.
- Risk (20 %): sizes fit the strength of the evidence; it does not turn its positions over for
  nothing, since every trade costs.
- Opportunities (10 %): it uses those that others of the group used.
A record that does the right thing throughout is far better than one that does not. Differences of
scores are as large as differences of quality; part of the way earns part of the score.""",
)

OUTCOMES = Rubric(
    name="outcomes",
    text="""\
- Profit after costs (40 %).
- Timing (30 %): it acted while the price had not yet taken the news in, and left when it had.
- Risk (20 %): losses on the way, sizes, needless trades.
- Opportunities (10 %): it used those that others of the group used.
Differences of scores are as large as differences of quality.""",
)


def read_rubric(path: Path) -> Rubric:
    """Return the rubric in a text file, named after it."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("a rubric cannot be read", where=str(path), found=str(error)) from error
    if not 0 < len(text) <= LONGEST_RUBRIC:
        raise ConfigError(
            "a rubric is empty or too long",
            where=str(path),
            found=f"{len(text)} characters",
            expected=f"1 to {LONGEST_RUBRIC}",
        )
    return Rubric(name=path.stem, text=text)
