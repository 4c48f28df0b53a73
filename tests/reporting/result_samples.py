"""Nights to show: a bad one with something of everything, a good one, and their parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate.diff import Diff, Finding, Notice, Word
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance
from agent_gym.reporting.nightly import (
    BaselineRecord,
    Code,
    NightlyResult,
    NightlyRun,
    Past,
    PastNight,
    SeedLists,
)

N_FIXED, N_FRESH, N_NIGHTS = 24, 64, 40
# name, unit, direction, level, noise, must be zero
FIGURES = {
    "signal_throughput": (
        ("acceptance_rate_valid", "share", "up", 0.93, 0.01, False),
        ("duplicate_executions", "n", "down", 0.0, 0.0, True),
        ("false_accept_rate", "share", "down", 0.012, 0.002, False),
        ("false_reject_rate", "share", "down", 0.031, 0.003, False),
        ("latency_p50_ms", "ms", "down", 41.0, 1.5, False),
        ("latency_p95_ms", "ms", "down", 118.0, 6.0, False),
        ("latency_p99_ms", "ms", "down", 240.0, 20.0, False),
        ("queue_max", "n", "down", 14.0, 2.0, False),
        ("reason_accuracy", "share", "up", 0.995, 0.001, False),
        ("signals_processed_per_hour", "1/h", "up", 58.2, 1.2, False),
    ),
    "execution_fallback": (
        ("double_fill_count", "n", "down", 0.0, 0.0, True),
        ("exposure_mismatch_max", "units", "down", 0.0, 0.0, True),
        ("fallback_success_rate", "share", "up", 0.981, 0.004, False),
        ("fill_rate", "share", "up", 0.9962, 0.0008, False),
        ("orphan_orders", "n", "down", 0.0, 0.0, True),
        ("recovery_time_p95_s", "s", "down", 8.4, 0.5, False),
        ("retries_per_order", "n", "down", 0.31, 0.02, False),
        ("slippage_bp_mean", "bp", "down", 2.1, 0.2, False),
        ("slippage_bp_p95", "bp", "down", 9.7, 0.9, False),
    ),
    "protection_health": (
        ("breaker_latency_bars", "bars", "down", 0.0, 0.0, True),
        ("max_drawdown", "share", "down", 0.083, 0.006, False),
        ("protected_time_share", "share", "up", 0.9996, 0.0001, False),
        ("stale_protection_count", "n", "down", 0.0, 0.0, True),
        ("stop_false_trigger_rate", "share", "down", 0.011, 0.002, False),
        ("stop_overshoot_bp_p95", "bp", "down", 14.0, 2.0, False),
        ("stop_trigger_recall", "share", "up", 0.998, 0.001, False),
        ("unprotected_gap_p99_s", "s", "down", 2.2, 0.3, False),
    ),
    "flash_crash": (
        ("crash_loss", "share", "down", 0.041, 0.005, False),
        ("max_drawdown", "share", "down", 0.062, 0.006, False),
        ("net_return", "share", "up", 0.004, 0.01, False),
        ("recovery_bars", "bars", "down", 41.0, 9.0, False),
        ("turnover", "x", "down", 6.1, 0.4, False),
    ),
    "price_gap": (
        ("gap_loss", "share", "down", 0.022, 0.003, False),
        ("max_drawdown", "share", "down", 0.052, 0.006, False),
        ("net_return", "share", "up", 0.006, 0.01, False),
    ),
    "feed_outage": (
        ("blind_orders", "n", "down", 0.0, 0.0, True),
        ("net_return", "share", "up", 0.002, 0.01, False),
        ("stale_decisions", "n", "down", 3.0, 1.0, False),
    ),
    "funding_spike": (
        ("funding_paid", "USDT", "down", 31.0, 4.0, False),
        ("net_return", "share", "up", 0.003, 0.01, False),
    ),
    "thin_book": (
        ("fill_rate", "share", "up", 0.91, 0.01, False),
        ("slippage_bp_mean", "bp", "down", 12.2, 1.1, False),
    ),
}
# What became of some metrics: relative change of tonight, and the word.
FATES: dict[str, tuple[float, Word]] = {
    "signal_throughput/latency_p95_ms": (0.31, "regression"),
    "signal_throughput/latency_p99_ms": (0.33, "regression"),
    "execution_fallback/slippage_bp_mean": (0.14, "regression"),
    "execution_fallback/recovery_time_p95_s": (-0.19, "improvement"),
    "protection_health/max_drawdown": (-0.07, "improvement"),
    "flash_crash/net_return": (0.0, "underpowered"),
    "price_gap/net_return": (0.0, "underpowered"),
    "flash_crash/recovery_bars": (0.05, "nondeterministic"),
    "feed_outage/stale_decisions": (0.1, "quarantined"),
}
STARTED, FINISHED = "2026-11-16T01:30:00Z", "2026-11-16T01:31:12Z"
RUN_ID, BASE_ID = "n20261116-013000-4c1f", "n20261103-013000-91ab"


def metrics_of(scenario: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            name=name,
            unit=unit,
            direction=direction,
            meaning=f"What a desk calls {name.replace('_', ' ')}",
            tolerance=Tolerance(rel=0.0 if zero else 0.05, abs=0.0 if zero else noise / 4),
            must_be_zero=zero,
        )
        for name, unit, direction, _, noise, zero in FIGURES[scenario]
    )


def side(run_id: str, *, tonight: bool, fresh: bool) -> SuiteSamples:
    """Return one side; both share the noise of a seed, so that pairing is real."""
    scenarios = []
    for scenario, figures in FIGURES.items():
        seeds = range(100_000, 100_000 + N_FRESH) if fresh else range(N_FIXED)
        samples = []
        for seed in seeds:
            values: dict[str, float | None] = {}
            for name, _, _, level, noise, zero in figures:
                rng = Seeds(seed).child(f"{scenario}/{name}").rng()
                shared, own = rng.normal(size=2)
                moved, word = FATES.get(f"{scenario}/{name}", (0.0, "unchanged"))
                value = level + noise * shared
                if tonight and word != "unchanged":
                    value += moved * level + 0.35 * noise * own
                values[name] = 0.0 if zero else float(value)
            if tonight and scenario == "execution_fallback" and seed in (7, 100_019):
                values["double_fill_count"] = 1.0
            samples.append(Sample(seed, "ok", values, f"h{scenario}{seed}{tonight and moved}"))
        identity = {"type": scenario, "version": "1", "config_hash": "c" * 8, "data_hash": ""}
        scenarios.append(
            ScenarioSamples(scenario, identity, metrics_of(scenario), tuple(samples), {0: "h"})
        )
    return SuiteSamples(run_id, "default", 1, tuple(scenarios))


def compared(
    scenario: str, metric: Metric, base: Sequence[float], cand: Sequence[float], seeds: range
) -> Finding:
    """Return a finding of the right shape; the gate's own figures are not needed here."""
    ident = f"{scenario}/{metric.name}"
    _, word = FATES.get(ident, (0.0, "unchanged"))
    if ident == "execution_fallback/double_fill_count":
        word = "regression"
    losses = metric.sign * (np.asarray(base) - np.asarray(cand))
    mean, half = float(losses.mean()), 1.96 * float(losses.std(ddof=1)) / math.sqrt(len(losses))
    level, new = float(np.mean(base)), float(np.mean(cand))
    tested = word != "unchanged"
    worst = sorted(seeds, key=lambda seed: -losses[seed - seeds.start])[:3]
    return Finding(
        id=ident,
        scenario=scenario,
        metric=metric.name,
        word=word,
        stage="confirm"
        if word in ("regression", "improvement")
        else "screen"
        if tested
        else "exact",
        unit=metric.unit,
        direction=metric.direction,
        n=len(base),
        base=level,
        cand=new,
        loss=mean,
        delta_abs=new - level,
        delta_rel=(new - level) / abs(level) if level else None,
        ci95=(mean - half, mean + half) if tested else None,
        p=1e-9 if word == "regression" else 0.21 if tested else None,
        p_holm=4e-8 if word == "regression" else None,
        effect=0.97 if word == "regression" else 0.52 if tested else None,
        mde=1.9 * half if tested else None,
        tolerance_rel=metric.tolerance.rel,
        tolerance_abs=metric.tolerance.abs,
        must_be_zero=metric.must_be_zero,
        critical=metric.must_be_zero,
        worst_seeds=tuple(worst) if tested else (),
        why=f"{abs(mean):.3g} {metric.unit} worse on average" if word == "regression" else "",
    )


def findings_of(base: SuiteSamples, cand: SuiteSamples) -> tuple[Finding, ...]:
    found = []
    for old, new in zip(base.scenarios, cand.scenarios, strict=True):
        for metric in old.metrics:
            values = [[s.metrics[metric.name] for s in each.samples] for each in (old, new)]
            first = old.samples[0].seed
            seeds = range(first, first + len(old.samples))
            found.append(compared(old.name, metric, values[0], values[1], seeds))
    return tuple(found)


def a_run(samples: SuiteSamples, **more) -> NightlyRun:
    fields = {
        "run_id": RUN_ID,
        "suite_id": "default",
        "suite_version": 1,
        "created_at": STARTED,
        "finished_at": FINISHED,
        "status": "complete",
        "command": "agent-gym nightly --fail-on-regression --print-summary",
        "samples": samples,
        "code": Code(commit="4c1fd02e91aa", dirty=True, code_hash="9b1e0c77d2f34a10"),
        "manifest": {"versions": {"python": "3.11.9", "numpy": "2.4.0"}, "config_hash": "c" * 8},
        "machine": {"cpu": "2 cores", "system": "Linux"},
        "subject": {"desk": "core-agent", "agent": "rules/sma-cross"},
        "seeds": SeedLists(fixed={name: tuple(range(N_FIXED)) for name in FIGURES}),
        "expected": tuple(FIGURES),
        "params": {name: {"hours": 24} for name in FIGURES},
        "durations": {name: 3.5 + at for at, name in enumerate(FIGURES)},
        "perf": {name: {"seeds_per_s": 9.5} for name in FIGURES},
    }
    return NightlyRun(**(fields | more))


def a_past(findings: Sequence[Finding]) -> Past:
    nights = []
    for at in range(N_NIGHTS):
        rng = Seeds(at).child("past").rng()
        values = {}
        for finding in findings:
            level = finding.base or 0.0
            step = 1.08 if finding.id == "thin_book/slippage_bp_mean" and at >= 22 else 1.0
            values[finding.id] = level * step * (1.0 + 0.012 * float(rng.normal()))
        day = f"2026-{10 if at < 25 else 11:02d}-{at + 7 if at < 25 else at - 24:02d}"
        verdict = {9: "regressed", 10: "regressed", 17: "error", 30: "underpowered"}.get(at, "pass")
        nights.append(
            PastNight(
                run_id=f"night-{at}",
                created_at=f"{day}T01:30:00Z",
                verdict=verdict,
                values=values,
                commit=f"{at:04x}beef",
                baseline_id="b-2026-10-01" if at < 28 else "b-2026-11-03",
            )
        )
    return Past(nights=tuple(nights), change_points={"thin_book/slippage_bp_mean": ("night-22",)})


def a_baseline() -> BaselineRecord:
    return BaselineRecord(
        id="b-2026-11-03",
        run_id=BASE_ID,
        suite_id="default",
        suite_version=1,
        created_at="2026-11-03T08:12:00Z",
        reason="New retry policy, slower and safer",
        approved_by="m.keller",
        content_hash="51d0aa19c3",
        code=Code(commit="91ab44de0c11", code_hash="77aa"),
        accepted=("execution_fallback/retries_per_order",),
        previous="b-2026-10-01",
    )


@cache
def bad_night() -> NightlyResult:
    """Return a night with regressions, improvements, and much that could not be judged."""
    base, cand = (
        side(BASE_ID, tonight=False, fresh=False),
        side(RUN_ID, tonight=True, fresh=False),
    )
    fresh = (side(BASE_ID, tonight=False, fresh=True), side(RUN_ID, tonight=True, fresh=True))
    on_fixed, on_fresh = findings_of(base, cand), findings_of(*fresh)
    findings = tuple(
        new if new.stage == "confirm" else old for old, new in zip(on_fixed, on_fresh, strict=True)
    )
    return NightlyResult(
        run=a_run(cand),
        diff=Diff(
            baseline_run=BASE_ID,
            candidate_run=RUN_ID,
            verdict="regressed",
            why="4 metrics lost more than is tolerated, and the loss holds on 64 fresh seeds.",
            n_tests=len(findings),
            n_flagged=9,
            alpha=0.01,
            method="paired screen on 24 seeds, confirmation on 64 fresh ones, Holm",
            findings=findings,
            notices=(
                Notice(
                    kind="change_point",
                    id="thin_book/slippage_bp_mean",
                    why="8 % higher since night 22 (probability of superiority 0.98)",
                ),
                Notice(
                    kind="anchor_drift",
                    id="signal_throughput/queue_max",
                    why="3.1 % worse than at the last release, in small steps",
                ),
            ),
        ),
        baseline=a_baseline(),
        baseline_samples=base,
        fresh=fresh,
        past=a_past(findings),
        last_success_at="2026-11-15T01:31:05Z",
    )


@cache
def good_night() -> NightlyResult:
    """Return a night on which nothing changed."""
    base = side(BASE_ID, tonight=False, fresh=False)
    found = tuple(
        finding_like(each, word="unchanged", stage="exact", ci95=None, p=None, p_holm=None)
        for each in findings_of(base, base)
    )
    return NightlyResult(
        run=a_run(base),
        diff=Diff(
            baseline_run=BASE_ID,
            candidate_run=RUN_ID,
            verdict="pass",
            why="Every seed went exactly as in the baseline.",
            n_tests=0,
            n_flagged=0,
            alpha=0.01,
            method="equal hashes",
            findings=found,
        ),
        baseline=a_baseline(),
        baseline_samples=base,
    )


def finding_like(finding: Finding, **changes) -> Finding:
    fields = {name: getattr(finding, name) for name in finding.__struct_fields__}
    return Finding(**(fields | changes))


def like(record, **changes):
    """Return a copy of any record with some fields changed."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return type(record)(**(fields | changes))
