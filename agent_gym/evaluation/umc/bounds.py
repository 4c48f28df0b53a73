"""The bounds of all gates, written down before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_gym.evaluation.protocol.nulls import LEAST_NET_BP

Rule: TypeAlias = Literal[
    "at least", "at most", "equals", "interval holds", "interval above", "shown only"
]
BP_BAR, DAYS, SHARE, SEEDS, NATS = "bp/bar", "days", "share", "seeds", "nats"

NULLS = ("n1", "n2", "n3", "n4")
LEAST_SHARE = {"m1": 0.85, "m2": 0.7, "m3": 0.5, "m3_at_5bp": 0.5, "m4": 0.5}
WHERE = {"m3": "M3 at 1 bp", "m3_at_5bp": "M3 at 5 bp, by who wants the gain alone"}
LEAST_M1_LOW = 0.7
MOST_BREAK_DAYS = 10.0
LEAST_P = 0.01
HEAVIER_TIERS = ("kalman", "recurrent")
"""Beside the exact one, whose rows of gate F have no tier in their names."""
MOST_PREDICTIVE_LEAKAGE, MOST_POLICY_INFLUENCE = 0.002, 0.01


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must do to pass.

    Attributes:
        what: What the figure is.
        rule: How it is held against the value: the figure itself, or an end of its interval.
        value: The number of the rule; None where a figure is only shown, or where the number of
            seeds decides.
        unit: Of figure and value.
    """

    what: str
    rule: Rule
    value: float | None
    unit: str

    def holds(self, value: float, low: float | None, high: float | None) -> bool | None:
        """Say whether a figure passes; None where it is only shown.

        Example:
            >>> Bound("gain", "interval above", 0.0, "bp/bar").holds(0.2, -0.1, 0.5)
            False
        """
        if self.rule == "shown only":
            return None
        assert self.value is not None
        if self.rule == "at least":
            return value >= self.value
        if self.rule == "at most":
            return value <= self.value
        if self.rule == "equals":
            return value == self.value
        if low is None or high is None:
            return False
        if self.rule == "interval above":
            return low > self.value
        return low <= self.value <= high


def _nulls() -> dict[str, Bound]:
    found = {}
    for name in NULLS:
        where = name.upper()
        found[f"A.{name}.timing"] = Bound(
            f"what timing earns before costs on {where}", "interval holds", 0.0, BP_BAR
        )
        found[f"A.{name}.gross"] = Bound(
            f"what is earned before costs on {where}", "interval holds", 0.0, BP_BAR
        )
        found[f"B.{name}.lucky"] = Bound(
            f"seeds of {where} with PSR above .95", "at most", None, SEEDS
        )
        found[f"B.{name}.net"] = Bound(
            f"net on {where}, where one should sit out", "at least", LEAST_NET_BP, BP_BAR
        )
    return found


def _shares() -> dict[str, Bound]:
    found = {
        f"C.{name}.share": Bound(
            f"share of the attainable on {WHERE.get(name, name.upper())}", "at least", least, SHARE
        )
        for name, least in LEAST_SHARE.items()
    }
    return found | {
        "C.m1.share_low": Bound(
            "low end of the interval of the share on M1", "at least", LEAST_M1_LOW, SHARE
        ),
        "C.m1.over_sma": Bound(
            "net above SMA(24,120) on the same paths of M1", "interval above", 0.0, BP_BAR
        ),
        "C.m3_at_5bp_by_growth.share": Bound(
            "share of the gain on M3 at 5 bp, by who wants growth", "shown only", None, SHARE
        ),
    }


def _leaks() -> dict[str, Bound]:
    bounds = {
        "F.g1_purity": Bound("rows of others that were learned from", "equals", 0.0, "rows"),
        "F.g2_hashes": Bound("models that others changed by a bit or more", "equals", 0.0, SEEDS),
        "F.g3_replay": Bound(
            "what others change of forecasts, replay", "at most", MOST_PREDICTIVE_LEAKAGE, NATS
        ),
        "F.g3_live": Bound(
            "what others change of forecasts, own orders move prices",
            "at most",
            MOST_PREDICTIVE_LEAKAGE,
            NATS,
        ),
        "F.g4_policy": Bound(
            "what others change of the policy", "at most", MOST_POLICY_INFLUENCE, NATS
        ),
        "F.control": Bound("leaks that were planted and noticed", "equals", None, SEEDS),
    }
    heavier = {
        f"{name}.{tier}": replace(bound, what=f"{bound.what}, {tier} tier")
        for tier in HEAVIER_TIERS
        for name, bound in bounds.items()
    }
    return bounds | heavier


BOUNDS: dict[str, Bound] = {
    **_nulls(),
    **_shares(),
    "D.costs": Bound(
        "expected loss after the break: what was paid", "at most", MOST_BREAK_DAYS, DAYS
    ),
    "D.net_loss": Bound("loss after the break with all its luck", "at most", MOST_BREAK_DAYS, DAYS),
    "D.gross": Bound(
        "gain after the break before costs, where nothing can be gained",
        "interval holds",
        0.0,
        BP_BAR,
    ),
    "E.prefix_alarm": Bound("planted leaks that the prefix test notices", "equals", None, SEEDS),
    "E.canary_alarm": Bound("planted leaks that the leak canary notices", "equals", None, SEEDS),
    "E.false_alarm": Bound("alarms without a leak", "equals", 0.0, SEEDS),
    "E.time_reversal": Bound(
        "p of earning more when time runs backwards", "at least", LEAST_P, "p"
    ),
    **_leaks(),
    "G.lambda": Bound(
        "decisions that lambda 0 and .46 make differently on a replay", "equals", 0.0, "decisions"
    ),
    "G.prefix": Bound("targets that change without a future", "equals", 0.0, "targets"),
    "G.poison": Bound("targets that change with another future", "equals", 0.0, "targets"),
    "G.doors": Bound("decisions on which targets() and act() differ", "equals", 0.0, "decisions"),
    "G.same_seed": Bound("fits that differ under the same seed", "equals", 0.0, "fits"),
    "G.control": Bound("planted looks ahead that were noticed", "equals", None, SEEDS),
}
"""Every figure by name; the letter before the first point is its gate. Where the value is None and
the figure is not only shown, the number of seeds says it."""
