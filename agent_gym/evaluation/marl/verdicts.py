"""Who learns in fewer steps: the ratio of steps to a win rate, and the word for it.

The bounds were fixed before there was a figure: an arm *matches* MAPPO if the upper end of the
ratio's interval is below 1.15, and *beats* it if it is below 1 against MAPPO and against MAPPO with
reuse of samples. All else is *not shown*, too few seeds included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.marl.runs import TeamRun
from agent_gym.evaluation.statistics import TimeRatio, time_ratio

Word: TypeAlias = Literal["beats", "matches", "not shown"]
MAPPO, REUSE = "mappo", "mappo-reuse"
CONTROLS = (MAPPO, REUSE)
MATCHES_BELOW, BEATS_BELOW = 1.15, 1.0
FEWEST_PAIRS = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, and why it is that one."""

    word: Word
    why: str

    def as_dict(self) -> dict[str, str]:
        """Return the fields by name."""
        return {"word": self.word, "why": self.why}


def steps_ratio(
    ours: Mapping[int, TeamRun],
    theirs: Mapping[int, TeamRun],
    win_rate: float,
    until: int,
    seeds: Seeds,
) -> TimeRatio | None:
    """Return steps to a win rate over those of another arm, by seed; None with a single pair."""
    both = sorted(set(ours) & set(theirs))
    if len(both) < 2:
        return None
    sides = []
    for side in (ours, theirs):
        found = [side[seed].reached(win_rate, until) for seed in both]
        sides.append(([steps for steps, _ in found], [seen for _, seen in found]))
    return time_ratio(sides[0], sides[1], seeds)


def verdict(against: Mapping[str, TimeRatio | None]) -> Verdict:
    """Return the word for an arm from its ratios to the controls, by their names."""
    known = {name: found for name, found in against.items() if found is not None}
    if MAPPO not in known:
        return Verdict("not shown", "there is no ratio to MAPPO")
    few = [name for name, found in known.items() if found.pairs < FEWEST_PAIRS]
    if few:
        return Verdict(
            "not shown", f"{known[few[0]].pairs} pairs are too few; {FEWEST_PAIRS} are needed"
        )
    beaten = [name for name in CONTROLS if name in known and known[name].below(BEATS_BELOW)]
    if len(beaten) == len(CONTROLS):
        return Verdict("beats", "below 1 against MAPPO and against MAPPO with reuse")
    if known[MAPPO].below(MATCHES_BELOW):
        return Verdict("matches", f"below {MATCHES_BELOW} against MAPPO; {_lacking(known, beaten)}")
    return Verdict("not shown", f"not below {MATCHES_BELOW} against MAPPO")


def _lacking(known: Mapping[str, Any], beaten: list[str]) -> str:
    absent = [name for name in CONTROLS if name not in known]
    if absent:
        return f"{absent[0]} was not played"
    return f"not below 1 against {' nor '.join(n for n in CONTROLS if n not in beaten)}"
