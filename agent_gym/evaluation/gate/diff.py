"""What the gate says: a word for every metric, and one for the suite."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Word: TypeAlias = Literal[
    "regression",
    "improvement",
    "unchanged",
    "no_difference_seen",
    "underpowered",
    "nondeterministic",
    "quarantined",
    "error",
    "missing_in_new",
    "missing_in_baseline",
    "incomparable",
]
SuiteWord: TypeAlias = Literal[
    "pass", "regressed", "underpowered", "degraded", "incomparable", "error"
]


class Finding(Struct, frozen=True, kw_only=True):
    """One metric of one scenario, compared.

    ``id`` is ``scenario/metric`` and is what an accepted regression is named by. ``stage`` is the
    stage that decided: ``exact`` (equal hashes), ``screen``, ``confirm``, or ``check`` for words
    that rest on no test. Figures that do not exist are None. ``loss`` and ``ci95`` are in the
    metric's unit, positive where the candidate is worse. ``effect`` is the probability that the
    baseline beats the candidate on a seed, ties counted half. ``mde`` is the smallest loss that
    this comparison would see with 95 % power (None where no seed differs: without noise nobody
    knows), ``required`` the one that it ought to see and ``sd`` the standard deviation of the
    losses. Tolerances are those that judged. The figures are those of the last stage that was
    reached.
    """

    id: str
    scenario: str
    metric: str
    word: Word
    stage: Literal["exact", "screen", "confirm", "check"]
    unit: str = ""
    direction: str = ""
    n: int = 0
    base: float | None = None
    cand: float | None = None
    loss: float | None = None
    delta_abs: float | None = None
    delta_rel: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None
    effect: float | None = None
    sd: float | None = None
    mde: float | None = None
    required: float | None = None
    tolerance_rel: float | None = None
    tolerance_abs: float | None = None
    must_be_zero: bool = False
    critical: bool = False
    worst_seeds: tuple[int, ...] = ()
    why: str = ""


class Notice(Struct, frozen=True, kw_only=True):
    """Something to look at that fails nothing: a change point, a drift from the anchor.

    ``tolerance`` tells that the candidate asks for a wider tolerance than the baseline has.
    """

    kind: Literal["change_point", "anchor_drift", "noise", "quarantine", "tolerance"]
    id: str
    why: str


class Diff(Struct, frozen=True, kw_only=True):
    """A whole comparison; every gating metric of either side is in ``findings`` once, by name."""

    baseline_run: str
    candidate_run: str
    verdict: SuiteWord
    why: str
    n_tests: int
    n_flagged: int
    alpha: float
    method: str
    findings: tuple[Finding, ...]
    notices: tuple[Notice, ...] = ()

    def of(self, *words: Word) -> tuple[Finding, ...]:
        """Return the findings with one of these words, in order."""
        return tuple(finding for finding in self.findings if finding.word in words)
