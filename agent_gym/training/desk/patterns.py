"""Which kinds of signals meet which rejection more often than chance would have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from agent_gym.training.desk.arrivals import Arrival, traits
from agent_gym.training.desk.significance import benjamini_hochberg, enrichment_p

LEAST_SUPPORT = 10
MOST_PATTERNS = 10
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Pattern:
    """Signals with these traits meet this code ``lift`` times as often as all signals do."""

    antecedent: tuple[str, ...]
    code: str
    support: int
    lift: float
    fisher_p_bh: float

    def as_dict(self) -> dict[str, object]:
        """Return the pattern as plain values."""
        return {
            "antecedent": list(self.antecedent),
            "code": self.code,
            "support": self.support,
            "lift": self.lift,
            "fisher_p_bh": self.fisher_p_bh,
        }


def top_patterns(found: list[Arrival]) -> list[Pattern]:
    """Return the strongest patterns of one or two traits that survive the correction.

    Every pair of traits and code that occurs at all is tested and counted in the correction, not
    only those that look good. A pair of traits is told only if it says more than each alone.
    """
    total = len(found)
    with_code: Counter[str] = Counter(a.code.value for a in found if a.code is not None)
    with_traits: Counter[tuple[str, ...]] = Counter()
    both: Counter[tuple[tuple[str, ...], str]] = Counter()
    for arrival, said in zip(found, traits(found), strict=True):
        names = sorted(said)
        for subset in (*((name,) for name in names), *combinations(names, 2)):
            with_traits[subset] += 1
            if arrival.code is not None:
                both[subset, arrival.code.value] += 1
    asked = [key for key in both if LEAST_SUPPORT <= with_traits[key[0]] < total]
    p_values = [
        enrichment_p(both[key], with_traits[key[0]], with_code[key[1]], total) for key in asked
    ]
    made = [
        Pattern(
            antecedent=key[0],
            code=key[1],
            support=both[key],
            lift=both[key] * total / (with_traits[key[0]] * with_code[key[1]]),
            fisher_p_bh=float(p),
        )
        for key, p in zip(asked, benjamini_hochberg(p_values), strict=True)
    ]
    sure = [pattern for pattern in made if pattern.fisher_p_bh < ALPHA]
    lifts = {(pattern.antecedent, pattern.code): pattern.lift for pattern in made}
    told = [pattern for pattern in sure if _says_more(pattern, lifts)]
    told.sort(key=lambda pattern: (pattern.fisher_p_bh, -pattern.lift, pattern.antecedent))
    return told[:MOST_PATTERNS]


def _says_more(pattern: Pattern, lifts: dict[tuple[tuple[str, ...], str], float]) -> bool:
    if len(pattern.antecedent) == 1:
        return True
    parts = [lifts.get(((name,), pattern.code), 0.0) for name in pattern.antecedent]
    return pattern.lift > 1.2 * max(parts)
