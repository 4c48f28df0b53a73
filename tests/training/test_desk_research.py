from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact

from agent_gym.agents.desk import AgentResponse, Outcome, RecentContext, RejectCode, Rejection
from agent_gym.core.files import to_json
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk import ResearchEngine
from agent_gym.training.desk.arrivals import arrivals
from agent_gym.training.desk.patterns import top_patterns
from agent_gym.training.desk.significance import (
    benjamini_hochberg,
    enrichment_p,
    level_trend_p,
    share_trend_p,
)
from tests.samples import bars_of, random_bars
from tests.training.learning_samples import START, busy_records, remembered, rising, signal_at

HOUR, DAY = 3600.0, 86_400.0
EXPOSURE = RejectCode.RISK_EXPOSURE_LIMIT
SPREAD = RejectCode.MARKET_SPREAD_TOO_WIDE


def refused(ctx: RecentContext, at: float, name: str, code: RejectCode, **params: object) -> None:
    signal = signal_at(at, name, **params)
    ctx.store_signal(signal, at)
    ctx.store_rejection(Rejection(name, code, at, strategy=signal.strategy), at)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_corrected_p_values_agree_with_the_library(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_enrichment_agrees_with_the_library(a, b, c, d):
    if a + b + c + d == 0:
        return
    theirs = fisher_exact([[a, b], [c, d]], alternative="greater").pvalue
    assert enrichment_p(a, a + b, a + c, a + b + c + d) == pytest.approx(theirs, abs=1e-9)


def test_trends():
    times = np.arange(200.0)
    late = (times > 120).astype(float)
    assert share_trend_p(times, late) < 1e-6
    assert share_trend_p(times, np.tile([0.0, 1.0], 100)) > 0.5
    assert share_trend_p(times, np.zeros(200)) is None
    assert share_trend_p([1.0], [1.0]) is None
    assert level_trend_p(np.arange(12)) < 0.01
    assert level_trend_p(np.ones(12)) is None
    # Under the null the p-value is near uniform.
    rng = Seeds(0).rng()
    p = [share_trend_p(times, (rng.random(200) < 0.3).astype(float)) for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.03)


def test_rates_have_intervals_and_the_report_is_json():
    ctx = remembered(busy_records(300))
    report = ResearchEngine(ctx, random_bars(600)).analyze_behavior()
    plain = report.as_dict()
    to_json(plain)
    assert report.n_signals == 300
    turned = sum(entry["n"] for entry in report.rejections.values())
    rate = report.acceptance_rate
    assert rate["estimate"] == pytest.approx(1.0 - turned / 300)
    assert rate["low"] < rate["estimate"] < rate["high"]
    assert {*report.rejections} == {EXPOSURE.value, SPREAD.value}
    assert sum(group["n"] for group in report.by_strategy.values()) == 300
    assert sum(report.signal_trends["counts"]) == 300
    assert report.latency["risk"]["p50"] <= report.latency["risk"]["p99"] <= 50.0
    assert report.pnl["ci"]["low"] < report.pnl["mean"] < report.pnl["ci"]["high"]
    assert 0.005 < report.market["BTC/USDT"]["volatility_1h"] < 0.02
    assert plain["recommendations"]


def test_the_window_and_the_moment_bound_what_is_seen():
    told = busy_records(300)
    engine = ResearchEngine(remembered(told), random_bars(600))
    at = START + 10 * DAY
    week = engine.analyze_behavior("7d", as_of=at)
    inside = [r for kind, t, r in told if kind == "signal" and at - 7 * DAY < t <= at]
    assert week.n_signals == len(inside) > 50
    early = [item for item in told if item[1] <= at]
    alone = ResearchEngine(remembered(early), random_bars(600)).analyze_behavior("7d", as_of=at)
    assert to_json(alone.as_dict()) == to_json(week.as_dict())
    assert engine.analyze_behavior(0.5, as_of=START).n_signals == 0
    assert ResearchEngine(RecentContext()).analyze_behavior().recommendations[0]["text"] == (
        "No signals in this window"
    )


def test_a_planted_pattern_is_found_and_told_first():
    rng = Seeds(1).rng()
    ctx = RecentContext()
    for i in range(400):
        at = START + i * HOUR
        strategy = ("carry", "momentum")[int(rng.integers(2))]
        side = ("buy", "sell")[int(rng.integers(2))]
        bad = strategy == "momentum" and side == "sell" and rng.random() < 0.7
        if bad or rng.random() < 0.05:
            refused(ctx, at, f"s{i}", EXPOSURE, strategy=strategy, side=side)
        else:
            ctx.store_signal(signal_at(at, f"s{i}", strategy=strategy, side=side), at)
    best = ResearchEngine(ctx).analyze_behavior().top_patterns[0]
    assert best["antecedent"] == ["side=sell", "strategy=momentum"]
    assert best["code"] == EXPOSURE.value
    assert best["lift"] > 2.0
    assert best["fisher_p_bh"] < 1e-6


def test_no_pattern_is_made_up():
    found = 0
    for seed in range(20):
        rng = Seeds(seed).child("null").rng()
        ctx = RecentContext()
        for i in range(200):
            at = START + i * 1800.0
            how = {
                "strategy": str(rng.choice(["carry", "momentum", "grid"])),
                "side": str(rng.choice(["buy", "sell"])),
                "amount": float(rng.random() + 0.1),
            }
            if rng.random() < 0.3:
                code = (EXPOSURE, SPREAD)[int(rng.integers(2))]
                refused(ctx, at, f"s{i}", code, **how)
            else:
                ctx.store_signal(signal_at(at, f"s{i}", **how), at)
        found += bool(top_patterns(arrivals(ctx, -np.inf, ctx.latest)))
    assert found <= 2


def test_missed_value_says_whether_a_rule_protected_or_cost():
    price = rising(400)
    bars = bars_of(price, price * 1.0005, price * 0.9995, price)
    ctx = RecentContext()
    for i in range(60):
        at = START + (60 + 4 * i) * HOUR
        refused(ctx, at, f"b{i}", EXPOSURE, side="buy")
        refused(ctx, at + 60.0, f"s{i}", SPREAD, side="sell")
        refused(ctx, at + 120.0, f"b{i}", RejectCode.DUP_DUPLICATE_ID, side="buy")
    report = ResearchEngine(ctx, bars).analyze_behavior(as_of=START + 399 * HOUR)
    missed = report.missed_value
    assert missed[EXPOSURE.value]["verdict"] == "cost"
    assert missed[SPREAD.value]["verdict"] == "protected"
    assert missed[EXPOSURE.value]["ci"]["level"] == pytest.approx(0.975)  # two rules are asked
    assert RejectCode.DUP_DUPLICATE_ID.value not in missed
    texts = [item["text"] for item in report.recommendations]
    assert any(text.startswith(f"Review {EXPOSURE.value}") for text in texts)
    assert any(text.startswith(f"Keep {SPREAD.value}") for text in texts)
    blind = ResearchEngine(ctx).analyze_behavior().missed_value
    assert blind[EXPOSURE.value] == {
        "n": 0, "mean": None, "ci": None, "verdict": "too few", "unknown": 60,
    }  # fmt: skip


def test_a_stored_paper_outcome_needs_no_market():
    ctx = RecentContext()
    for i in range(40):
        at = START + i * DAY
        refused(ctx, at, f"s{i}", EXPOSURE, amount=2.0, price=50.0)
        paper = Outcome(f"s{i}", "win", pnl_horizon={"1d": 1.0 + i % 3}, counterfactual=True)
        ctx.store_outcome(paper, at + DAY)
    found = ResearchEngine(ctx).analyze_behavior().missed_value[EXPOSURE.value]
    assert found["mean"] == pytest.approx(np.mean([0.01 * (1 + i % 3) for i in range(40)]))
    assert found["verdict"] == "cost"


def test_repeats_and_unreadable_messages_are_counted_once_each():
    ctx = RecentContext()
    ctx.store_signal(signal_at(START, "a"), START)
    ctx.store_signal(signal_at(START, "a"), START + 1.0)
    ctx.store_rejection(Rejection("a", RejectCode.DUP_DUPLICATE_ID, START + 1.0), START + 1.0)
    ctx.store_rejection(Rejection("", RejectCode.SCHEMA_BAD_TYPE, START + 2.0), START + 2.0)
    found = arrivals(ctx, -np.inf, START + 9.0)
    assert [a.code for a in found] == [
        None,
        RejectCode.DUP_DUPLICATE_ID,
        RejectCode.SCHEMA_BAD_TYPE,
    ]
    report = ResearchEngine(ctx).analyze_behavior()
    assert report.acceptance_rate["estimate"] == pytest.approx(1 / 3)


def test_drift_between_the_halves_is_told_and_calm_is_not():
    def engine(shift: float) -> ResearchEngine:
        rng = Seeds(4).rng()
        ctx = RecentContext()
        for i in range(400):
            amount = float(np.exp(rng.normal() + (shift if i >= 200 else 0.0)))
            at = START + (100 + i) * HOUR
            ctx.store_signal(signal_at(at, f"s{i}", amount=amount, price=None), at)
        return ResearchEngine(ctx, random_bars(600))

    moved = {entry["name"] for entry in engine(2.0).analyze_behavior().drift}
    assert {"notional_share", "volume_share"} <= moved
    assert "notional_share" not in {e["name"] for e in engine(0.0).analyze_behavior().drift}


def test_lost_agents_are_worth_a_word():
    ctx = RecentContext()
    for i in range(100):
        at = START + i * HOUR
        if i % 4 == 0:
            refused(ctx, at, f"s{i}", RejectCode.AGENT_TIMEOUT)
        else:
            ctx.store_signal(signal_at(at, f"s{i}"), at)
        ctx.store_response(AgentResponse(f"t{i}", "risk", "timeout", latency_ms=100.0 + i), at)
    report = ResearchEngine(ctx).analyze_behavior()
    assert any("agent.timeout" in item["text"] for item in report.recommendations)
    assert report.latency["risk"]["p95"] == pytest.approx(np.quantile(100.0 + np.arange(100), 0.95))
