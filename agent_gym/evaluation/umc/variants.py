"""The arms of the ablation, and what was expected of each.

Most of it was written down before anything was measured; what came after the first run is marked
``later``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent_gym.evaluation.umc.invariants import BUDGET_BP, CURIOUS, fixed_lambda

Sign: TypeAlias = Literal["exactly 0", "about 0", "positive", "negative", "at least 0"]
FULL = "full"
EXOGENOUS = ("m1", "m2", "m3", "m4", "n1")
REFLEXIVE, ECHO = "e1", "echo"
NET, GROWTH, DRAWDOWN, SCORE = "net_bp", "growth_bp", "max_drawdown", "log_score"
CHANGED = "changed_share"
GENEROUS_BP = 2.0
MARGINS: Mapping[str, float] = {NET: 0.3, SCORE: 0.002}
"""What counts as next to nothing: what a null may cost at most, and what others may change of a
forecast. Set after the first run."""
METRICS: Mapping[str, str] = {
    NET: "net, bp a bar",
    GROWTH: "log growth, bp a bar",
    DRAWDOWN: "deepest drawdown, share of the peak",
    SCORE: "log score of the next return, nats a bar",
    CHANGED: "share of decisions that differ",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One arm: what differs from the whole agent.

    Attributes:
        part: The part of the agent that the arm is about.
        about: What differs, in words.
        params: Of the agent.
        account: Of the account.
        heavy: It takes torch and a minute or more a seed.
        later: It was added after the first run.
    """

    part: str
    about: str
    params: Mapping[str, Any] = field(default_factory=dict)
    account: Mapping[str, Any] = field(default_factory=dict)
    heavy: bool = False
    later: bool = False


def _tiers(*refs: dict[str, Any]) -> dict[str, Any]:
    return {"model": {"tiers": list(refs)}}


EXACT, KALMAN, RECURRENT = ({"use": f"umc/{tier}"} for tier in ("exact", "kalman", "recurrent"))
RISK = {"kelly_fraction": 0.25, "var_limit": 0.02, "max_drawdown": 0.15}
NO_EFE = {"efe_weight_first": 0.0, "efe_weight_last": 0.0}
NO_RRL = {"reinforcement_weight_first": 0.0, "reinforcement_weight_last": 0.0}

VARIANTS: dict[str, Variant] = {
    FULL: Variant("all", "the agent as it comes"),
    "lambda_0": Variant("lambda", "lambda 0", {"lam": fixed_lambda(0.0)}),
    "lambda_fixed": Variant("lambda", f"lambda {CURIOUS} for good", {"lam": fixed_lambda(CURIOUS)}),
    "lambda_adaptive": Variant(
        "lambda",
        f"lambda that moves and may cost {BUDGET_BP} bp a bar",
        {"lam": {"regret_budget_bp": BUDGET_BP}},
    ),
    "lambda_paid": Variant(
        "lambda",
        f"lambda that moves and may cost {GENEROUS_BP:g} bp a bar",
        {"lam": {"regret_budget_bp": GENEROUS_BP}},
        later=True,
    ),
    "with_macro": Variant("macrostates", "macrostates as inputs of the model", {"macro": {}}),
    "exact_only": Variant("Kalman tier", "without the Kalman tier", _tiers(EXACT)),
    "kalman_only": Variant("exact tier", "without the exact tier", _tiers(KALMAN)),
    "one_head": Variant(
        "heads beside drift",
        "the exact tier with the drift family alone",
        _tiers({**EXACT, "params": {"memories": [], "slopes": []}}),
    ),
    "with_risk": Variant("risk chain", "Kelly cap .25, VaR 2 %, drawdown 15 %", account=RISK),
    "with_actor": Variant(
        "actor", "an actor that may replace the planner", {"actor": {}}, heavy=True
    ),
    "actor_without_efe": Variant(
        "actor", "an actor taught by realised growth alone", {"actor": NO_EFE}, heavy=True
    ),
    "actor_without_rrl": Variant(
        "actor", "an actor taught by expected free energy alone", {"actor": NO_RRL}, heavy=True
    ),
    "with_recurrent": Variant(
        "recurrent tier",
        "with the recurrent tier to choose from",
        _tiers(EXACT, KALMAN, RECURRENT),
        heavy=True,
    ),
    "recurrent_only": Variant(
        "lighter tiers", "the recurrent tier alone", _tiers(RECURRENT), heavy=True, later=True
    ),
    "recurrent_one_head": Variant(
        "heads of the recurrent tier",
        "the recurrent tier alone, with one head instead of five",
        _tiers({**RECURRENT, "params": {"heads": 1}}),
        heavy=True,
        later=True,
    ),
}
LAMBDAS = ("lambda_0", "lambda_fixed", "lambda_adaptive", "lambda_paid")
GATED, NO_ECHO = "gated", "no_echo"
OPEN_CLEAN, OPEN_POISONED = "no_gate_clean", "no_gate_poisoned"
ECHO_ARMS: dict[str, Variant] = {
    GATED: Variant("gate", "learns through the gate beside a poisoned crowd"),
    NO_ECHO: Variant("echoes", "learns without any crowd beside it", later=True),
    OPEN_CLEAN: Variant("gate", "no gate, beside a clean crowd"),
    OPEN_POISONED: Variant("gate", "no gate, beside a poisoned crowd"),
}
REFERENCE = {**dict.fromkeys(EXOGENOUS, FULL), REFLEXIVE: "lambda_0", ECHO: GATED}
"""The arm that the others of a market are compared with."""
LATER_MARKETS = ("m2",)


@dataclass(frozen=True, slots=True)
class Expected:
    """The sign that a difference was expected to have."""

    market: str
    arm: str
    metric: str
    sign: Sign

    @property
    def later(self) -> bool:
        """Say whether it was written down after the first run."""
        return about(self.arm).later or self.market in LATER_MARKETS

    @property
    def by_construction(self) -> bool:
        """Say whether it cannot come out otherwise unless something is broken."""
        return self.sign == "exactly 0"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "market": self.market,
            "arm": self.arm,
            "metric": self.metric,
            "sign": self.sign,
            "by_construction": self.by_construction,
            "added_after_the_first_run": self.later,
        }


EXPECTED: tuple[Expected, ...] = (
    *(Expected(market, arm, NET, "exactly 0") for market in EXOGENOUS for arm in LAMBDAS),
    Expected(REFLEXIVE, "lambda_fixed", NET, "at least 0"),
    Expected(REFLEXIVE, "lambda_adaptive", NET, "at least 0"),
    Expected(REFLEXIVE, "lambda_fixed", CHANGED, "positive"),
    Expected(REFLEXIVE, "lambda_paid", CHANGED, "positive"),
    Expected(ECHO, NO_ECHO, NET, "exactly 0"),
    Expected(ECHO, NO_ECHO, SCORE, "exactly 0"),
    Expected(ECHO, OPEN_CLEAN, SCORE, "about 0"),
    Expected(ECHO, OPEN_POISONED, SCORE, "negative"),
    Expected("m3", "with_macro", NET, "positive"),
    Expected("m1", "with_macro", NET, "about 0"),
    Expected("m1", "with_risk", GROWTH, "negative"),
    Expected("m1", "with_risk", DRAWDOWN, "negative"),
    Expected("m1", "one_head", NET, "about 0"),
    Expected("m3", "one_head", NET, "negative"),
    Expected("m4", "one_head", NET, "negative"),
)


def about(arm: str) -> Variant:
    """Return what an arm is."""
    return VARIANTS[arm] if arm in VARIANTS else ECHO_ARMS[arm]
