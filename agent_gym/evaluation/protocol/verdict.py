"""The verdict: one of four words, by rules that are stated beside it.

In this order:

1. *worse than baseline*: the interval of the difference to some baseline lies wholly below 0 (95 %
   for all baselines together).
2. *evidence of edge*: all of: net above 0, DSR above .95 (with the number of trials in the
   registry), PBO below .5, random positions with the same turnover do as well in at most 5 % of
   draws, and confirmed on what nobody has looked at: growth in the lockbox above 0 when it was
   first opened, if no trial had tested those bars before, or, on markets drawn anew for each seed,
   an interval over seeds above 0.
3. *promising*: net above 0, PSR above .95, PBO below .5, and random positions do as well in at most
   5 % of draws. Holding all the time has no timing, so it is never promising.
4. *no evidence of edge*: everything else. That is a normal answer.

On a market in which there is nothing to find, nothing can be evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.statistics import Interval

Word: TypeAlias = Literal[
    "evidence of edge", "promising", "no evidence of edge", "worse than baseline"
]
LEVEL, SURE, HALF, CHANCE = 0.95, 0.95, 0.5, 0.05


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an arm besides its entry in the registry.

    Attributes:
        net: Net a bar in basis points.
        versus: Difference of the nets to each baseline, at a level that holds for all of them.
        p_random: How rare such a growth is among random positions with the same turnover.
        p_unknown: Why that cannot be said, where it cannot.
        unseen: What it earned where nobody had looked; None if not known, or if somebody had.
        unseen_words: What that was.
        nothing_to_find: The market is known to hold no edge.
    """

    net: Interval
    versus: Mapping[str, Interval] = field(default_factory=dict)
    p_random: float | None = None
    p_unknown: str | None = None
    unseen: float | None = None
    unseen_words: str = "growth in the lockbox"
    nothing_to_find: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One condition: what was found, what is asked for, whether it holds."""

    name: str
    found: float | None
    asked: str
    holds: bool
    unknown: str | None = None

    def words(self) -> str:
        """Return the condition as text."""
        found = "not known" if self.found is None else f"{self.found:.3g}"
        if self.unknown is not None:
            found += f": {self.unknown}"
        return f"{self.name} {found} ({'' if self.holds else 'not '}{self.asked})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, why, and the figures that led to it."""

    word: Word
    why: str
    checks: tuple[Check, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        return {
            "word": self.word,
            "why": self.why,
            "checks": [asdict(check) for check in self.checks],
        }


def judge(standings: Standings, trial_id: str, evidence: Evidence) -> Verdict:
    """Return the verdict on a registered trial; one that is not registered is a StoreError."""
    standing = standings.of(trial_id)
    net = _above("net bp a bar", evidence.net.estimate, 0.0)
    psr = _above("PSR", standing.psr, SURE)
    dsr = _above(f"DSR over {standing.trials} trials", standing.dsr, SURE)
    pbo = _below("PBO", standing.pbo, HALF)
    chance = replace(
        _below("p of random timing", evidence.p_random, CHANCE), unknown=evidence.p_unknown
    )
    unseen = _above(evidence.unseen_words, evidence.unseen, 0.0)
    checks = (net, psr, dsr, pbo, chance, unseen)
    worse = [label for label, gap in evidence.versus.items() if gap.high < 0.0]
    if worse:
        gaps = "; ".join(_gap(label, evidence.versus[label]) for label in worse)
        return Verdict("worse than baseline", gaps, checks)
    if evidence.nothing_to_find:
        return Verdict("no evidence of edge", "there is nothing to find in this market", checks)
    if all(check.holds for check in (net, dsr, pbo, chance, unseen)):
        held = ", ".join(check.words() for check in (net, dsr, pbo, chance, unseen))
        return Verdict("evidence of edge", held, checks)
    if all(check.holds for check in (net, psr, pbo, chance)):
        missing = ", ".join(check.words() for check in checks if not check.holds)
        return Verdict("promising", f"lacking: {missing}", checks)
    missing = ", ".join(check.words() for check in (net, psr, pbo, chance) if not check.holds)
    return Verdict("no evidence of edge", missing, checks)


def family_level(count: int) -> float:
    """Return the level for each of so many intervals that all hold together (Bonferroni).

    Example:
        >>> round(family_level(5), 2)
        0.99
    """
    return 1.0 - (1.0 - LEVEL) / max(1, count)


def _above(name: str, found: float | None, least: float) -> Check:
    return Check(name, found, f"above {least:g}", found is not None and found > least)


def _below(name: str, found: float | None, most: float) -> Check:
    return Check(name, found, f"below {most:g}", found is not None and found < most)


def _gap(label: str, gap: Interval) -> str:
    return f"{gap.estimate:.3g} bp a bar against {label} ({gap.low:.3g} to {gap.high:.3g})"
