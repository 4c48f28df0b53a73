"""Nights of the suite for a seeded folder: drawn figures, and a last night that is judged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.manifest import fingerprint
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import GatePolicy, Night, judge, night_of
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.past import night_body
from agent_gym.pipeline.nightly.publish import publish, texts
from agent_gym.pipeline.nightly.setup import Setup
from agent_gym.pipeline.nightly.times import compact, iso
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import BaselineRecord, Code, NightlyResult, NightlyRun

SUITE = "desk"
SCENARIOS = ("execution_fallback", "feed_outage", "flash_crash", "price_gap", "thin_book")
METRICS = {
    "net_return": ("share", "up", 0.02),
    "fill_rate": ("share", "up", 0.85),
    "max_drawdown": ("share", "down", 0.06),
    "slippage_bp": ("bp", "down", 4.0),
    "latency_p95_ms": ("ms", "down", 110.0),
    "turnover": ("x", "down", 6.0),
}
SEEDS = 16
MOST = {"fill_rate": 1.0}
"""What a figure cannot be larger than, however the draw falls."""


def seed_runs(folder: Path, runs: int, now_ns: int) -> str:
    """Write nights: levels that move, baselines that change, and a last night that got worse."""
    workspace = Workspace(folder)
    rng = Seeds(0).child("runs").rng()
    keys = [f"{scenario}/{name}" for scenario in SCENARIOS for name in METRICS]
    levels = np.array([METRICS[key.split("/")[1]][2] for key in keys])
    most = np.array([MOST.get(key.split("/")[1], np.inf) for key in keys])
    noise = rng.normal(0.0, 0.02, (runs, len(keys)))
    gap_ns = min(12 * HOUR_NS, 300 * DAY_NS // max(runs, 1))
    with Ledger(workspace.ledger) as ledger:
        for number in range(runs - 1):
            moved = 1.0 + 0.08 * (number > runs - 40) + 0.05 * (number > runs // 2)
            values = np.minimum(levels * moved * (1.0 + noise[number]), most)
            created = now_ns - (runs - 1 - number) * gap_ns - 5 * MINUTE_NS
            light = ("good", "good", "good", "unsure", "bad")[int(rng.integers(5))]
            body = _body(number, created, light, dict(zip(keys, values.tolist(), strict=True)))
            ledger.record(body["run_id"], SUITE, body["created_at"], body)
        result, setup = _last_night(now_ns)
        publish(workspace, result, setup, texts(result))
        run = result.run
        night = night_of(run.samples, result.diff, run.created_at)
        ledger.record(run.run_id, SUITE, run.created_at, night_body(result, night, 1))
    return run.run_id


def _body(number: int, created_ns: int, light: str, values: dict[str, float]) -> dict[str, object]:
    run_id = f"{compact(created_ns)}-{number:05d}"
    verdict = {"good": "pass", "unsure": "underpowered", "bad": "regressed"}[light]
    night = Night(run_id=run_id, created_at=iso(created_ns), values=values)
    return {
        "run_id": run_id,
        "created_at": iso(created_ns),
        "finished_at": iso(created_ns + MINUTE_NS),
        "status": "complete",
        "verdict": verdict,
        "light": light,
        "exit_code": 1 if light == "bad" else 0,
        "commit": fingerprint(number)[:40],
        "code_hash": fingerprint([number, "code"]),
        "baseline_id": f"baseline-{number // 1000:02d}",
        "night": msgspec.to_builtins(night),
    }


def _last_night(now_ns: int) -> tuple[NightlyResult, Setup]:
    created = now_ns - 3 * MINUTE_NS
    base = _samples("20260101T000000Z-base", worse=0.0)
    cand = _samples(f"{compact(created)}-last", worse=0.3)
    code = Code(commit="a" * 40, code_hash="b" * 64)
    run = NightlyRun(
        run_id=cand.run_id,
        suite_id=SUITE,
        suite_version=1,
        created_at=iso(created),
        finished_at=iso(created + MINUTE_NS),
        status="complete",
        command="agent-gym nightly",
        samples=cand,
        code=code,
        expected=SCENARIOS,
    )
    record_ = BaselineRecord(
        id="baseline-99",
        run_id=base.run_id,
        suite_id=SUITE,
        suite_version=1,
        created_at=iso(now_ns - 30 * DAY_NS),
        reason="seeded",
        approved_by="seed",
        content_hash="c" * 64,
        code=code,
    )
    diff = judge(base, cand, None, GatePolicy())
    setup = Setup(
        suite={}, subject={}, imports=(), date="2026-01-01", code_hash="", packages={}, versions={}
    )
    result = NightlyResult(run=run, diff=diff, baseline=record_, baseline_samples=base)
    return result, setup


def _samples(run_id: str, worse: float) -> SuiteSamples:
    made = []
    for scenario in SCENARIOS:
        rng = Seeds(0).child("samples", scenario).rng()
        metrics = tuple(
            Metric(name=name, unit=unit, direction=way, meaning=name.replace("_", " "))
            for name, (unit, way, _) in METRICS.items()
        )
        samples = []
        for number in range(SEEDS):
            drawn = {
                name: min(level * (1.0 + 0.02 * float(rng.normal())), MOST.get(name, np.inf))
                for name, (_, _, level) in METRICS.items()
            }
            if scenario == "flash_crash":
                drawn["max_drawdown"] *= 1.0 + worse
                drawn["latency_p95_ms"] *= 1.0 + worse / 2.0
            samples.append(Sample(number, "ok", drawn, fingerprint([run_id, scenario, number])))
        made.append(ScenarioSamples(scenario, {"type": scenario}, metrics, tuple(samples)))
    return SuiteSamples(run_id, SUITE, 1, tuple(made))
