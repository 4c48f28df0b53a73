"""The arms of the ablation, and what was expected of each before anything was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent_gym.evaluation.umc.invariants import BUDGET_BP, CURIOUS, fixed_lambda

Sign: TypeAlias = Literal["exactly 0", "about 0", "positive", "negative", "at least 0"]
FULL = "full"
EXOGENOUS = ("m1", "m3", "m4", "n1")
REFLEXIVE, ECHO = "e1", "echo"
NET, GROWTH, DRAWDOWN, SCORE = "net_bp", "growth_bp", "max_drawdown", "log_score"
CHANGED = "changed_share"
GENEROUS_BP = 2.0
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
    """

    part: str
    about: str
    params: Mapping[str, Any] = field(default_factory=dict)
    account: Mapping[str, Any] = field(default_factory=dict)
    heavy: bool = False


def _tiers(*refs: dict[str, Any]) -> dict[str, Any]:
    return {"model": {"tiers": list(refs)}}


EXACT, KALMAN = {"use": "umc/exact"}, {"use": "umc/kalman"}
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
        _tiers(EXACT, KALMAN, {"use": "umc/recurrent"}),
        heavy=True,
    ),
}
LAMBDAS = ("lambda_0", "lambda_fixed", "lambda_adaptive", "lambda_paid")
GATED, OPEN_CLEAN, OPEN_POISONED = "gated", "no_gate_clean", "no_gate_poisoned"
ECHO_ARMS: dict[str, Variant] = {
    GATED: Variant("gate", "learns through the gate beside a poisoned crowd"),
    OPEN_CLEAN: Variant("gate", "no gate, beside a clean crowd"),
    OPEN_POISONED: Variant("gate", "no gate, beside a poisoned crowd"),
}
REFERENCE = {**dict.fromkeys(EXOGENOUS, FULL), REFLEXIVE: "lambda_0", ECHO: GATED}
"""The arm that the others of a market are compared with."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The sign that a difference was expected to have."""

    market: str
    arm: str
    metric: str
    sign: Sign


EXPECTED: tuple[Expected, ...] = (
    *(Expected(market, arm, NET, "exactly 0") for market in EXOGENOUS for arm in LAMBDAS),
    Expected(REFLEXIVE, "lambda_fixed", NET, "at least 0"),
    Expected(REFLEXIVE, "lambda_adaptive", NET, "at least 0"),
    Expected(REFLEXIVE, "lambda_fixed", CHANGED, "positive"),
    Expected(REFLEXIVE, "lambda_paid", CHANGED, "positive"),
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
