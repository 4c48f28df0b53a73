"""Who learns in fewer steps: the ratio of steps to a win rate, and the word for it.

The bounds were fixed before there was a figure: an arm *matches* MAPPO if the upper end of the
ratio's interval is below 1.15, and *beats* it if it is below 1 against MAPPO and against MAPPO with
reuse of samples. All else is *not shown*, too few seeds included. Where MAPPO in short windows was
played too, both words have to hold against it as well: the same algorithm, updated more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.marl.runs import TeamRun
from agent_gym.evaluation.statistics import TimeRatio, time_ratio

Word: TypeAlias = Literal["beats", "matches", "not shown"]
MAPPO, SHORT, REUSE = "mappo", "mappo-short", "mappo-reuse"
CONTROLS = (MAPPO, SHORT, REUSE)
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
    if REUSE in known and len(beaten) == len(known):
        return Verdict("beats", f"below 1 against {_listed(beaten)}")
    plain = [name for name in (MAPPO, SHORT) if name in known]
    slower = [name for name in plain if not known[name].below(MATCHES_BELOW)]
    if slower:
        return Verdict("not shown", f"not below {MATCHES_BELOW} against {_listed(slower)}")
    words = f"below {MATCHES_BELOW} against {_listed(plain)}; {_lacking(known, beaten)}"
    return Verdict("matches", words)


def _lacking(known: Mapping[str, Any], beaten: list[str]) -> str:
    if REUSE not in known:
        return f"{REUSE} was not played"
    return f"not below 1 against {_listed([name for name in known if name not in beaten])}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
