"""The machine-readable results: report, diff and baseline manifest as plain JSON values.

Equal input gives equal bytes: scenarios and metrics come in the order of their names, seeds in the
order of their numbers. A figure that does not exist is null; a figure that is not finite is null
too, and its seed, scenario or finding then says ``error``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import msgspec

from agent_gym.core.files import to_json
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.gate.diff import Finding
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, few_notes
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.reporting.nightly.pairs import Pairs
from agent_gym.reporting.nightly.run import BaselineRecord, NightlyResult, NightlyRun
from agent_gym.reporting.nightly.verdict import (
    WORDS,
    Trouble,
    by_severity,
    counts,
    explanation,
    headline,
    light,
    sample_problem,
    severity,
    troubles,
    verdict,
    word_of,
)
from agent_gym.reporting.text import finite, one_line, visible

REPORT_SCHEMA, DIFF_SCHEMA = "agent_gym.report/1", "agent_gym.diff/1"
BASELINE_SCHEMA = "agent_gym.baseline/1"
HUGE = 1e140
LONGEST_NOTE = 300
SchemaName: TypeAlias = Literal["report", "diff", "baseline", "suite"]
# The words of findings as keys of the diff.
KEYS = {
    **{word: word for word in WORDS},
    "regression": "regressions",
    "improvement": "improvements",
    "error": "errors",
}


@cache
def schema_of(name: SchemaName) -> dict[str, Any]:
    """Return a shipped JSON Schema (2020-12)."""
    path = files(__package__) / "schemas" / f"{name}.schema.json"
    found: dict[str, Any] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    return found


def report_document(run: NightlyRun) -> dict[str, Any]:
    """Return ``latest.json``: what ran, on what, and every figure of every seed."""
    wrong = {trouble.scenario: trouble for trouble in troubles(run)}
    known = {scenario.name: scenario for scenario in run.samples.scenarios}
    scenarios = [
        _scenario(run, name, known.get(name), wrong.get(name))
        for name in sorted({*run.expected, *known})
    ]
    states = [scenario["status"] for scenario in scenarios]
    identities = {name: dict(known[name].identity) for name in known}
    document = {
        "schema": REPORT_SCHEMA,
        "run_id": run.run_id,
        "suite": {"id": run.suite_id, "version": run.suite_version},
        "status": run.status,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "command": run.command,
        "code": msgspec.to_builtins(run.code),
        "config_hash": fingerprint(plain(identities)),
        "machine": dict(run.machine),
        "subject": dict(run.subject),
        "manifest": dict(run.manifest),
        "seeds": {
            "fixed": {name: list(seeds) for name, seeds in run.seeds.fixed.items()},
            "fresh": {name: list(seeds) for name, seeds in run.seeds.fresh.items()},
        },
        "scenarios": scenarios,
        "totals": {state: states.count(state) for state in ("ok", "error", "missing")},
        "notes": list(run.notes),
    }
    made: dict[str, Any] = plain(document)
    return made


def _scenario(
    run: NightlyRun, name: str, found: ScenarioSamples | None, trouble: Trouble | None
) -> dict[str, Any]:
    samples = sorted(found.samples, key=lambda sample: sample.seed) if found else []
    metrics = sorted(found.metrics, key=lambda metric: metric.name) if found else []
    return {
        "name": name,
        "identity": dict(found.identity) if found else {},
        "status": trouble.kind if trouble else "ok",
        "error": trouble.why if trouble else None,
        "params": dict(run.params.get(name, {})),
        "n_seeds": len(samples),
        "duration_s": run.durations.get(name),
        "metrics": {metric.name: _figures(metric, samples) for metric in metrics},
        "samples": [_sample(sample) for sample in samples],
        "repeated": {str(seed): text for seed, text in found.repeated.items()} if found else {},
        "trajectory_hash": fingerprint(
            [[sample.seed, visible(sample.trajectory_hash)] for sample in samples]
        ),
        "perf": dict(run.perf.get(name, {})),
        "notes": scenario_notes(samples),
    }


def scenario_notes(samples: Sequence[Sample]) -> list[str]:
    """Return what the seeds of a scenario say of themselves, each note once, and not too many."""
    ordered = sorted(samples, key=lambda sample: sample.seed)
    told = (one_line(note, LONGEST_NOTE) for sample in ordered for note in sample.notes)
    return list(few_notes(list(dict.fromkeys(told))))


def all_notes(run: NightlyRun) -> list[tuple[str, str]]:
    """Return the notes of all scenarios, each beside the name of its scenario, by name."""
    return [
        (scenario.name, note)
        for scenario in sorted(run.samples.scenarios, key=lambda each: each.name)
        for note in scenario_notes(scenario.samples)
    ]


def _figures(metric: Metric, samples: Sequence[Sample]) -> dict[str, Any]:
    values = [_value(sample, metric.name) for sample in samples]
    known = sorted(value for value in values if value is not None)
    return {
        "unit": metric.unit,
        "direction": metric.direction,
        "meaning": metric.meaning,
        "gates": metric.gates,
        "must_be_zero": metric.must_be_zero,
        "tolerance": {"rel": metric.tolerance.rel, "abs": metric.tolerance.abs},
        "n": len(known),
        "unscored": len(values) - len(known),
        **summary_figures(known),
    }


def summary_figures(ordered: Sequence[float]) -> dict[str, float | None]:
    """Return the figures of sorted values; those that do not exist are None.

    Example:
        >>> summary_figures([1.0, 2.0, 3.0, 10.0])["iqm"]
        2.5
    """
    n = len(ordered)
    if n == 0:
        return dict.fromkeys(("mean", "median", "iqm", "sd", "min", "max"))
    largest = max(abs(ordered[0]), abs(ordered[-1]))
    scale = largest if largest > HUGE else 1.0  # sums of squares of such numbers overflow
    mean = math.fsum(value / scale for value in ordered) / n
    spread = math.fsum((value / scale - mean) ** 2 for value in ordered)
    middle = ordered[n // 4 : n - n // 4]
    half = n // 2
    median = ordered[half] if n % 2 else 0.5 * ordered[half - 1] + 0.5 * ordered[half]
    figures = {
        "mean": mean * scale,
        "median": median,
        "iqm": math.fsum(value / scale for value in middle) / len(middle) * scale,
        "sd": math.sqrt(spread / (n - 1)) * scale if n > 1 else None,
        "min": ordered[0],
        "max": ordered[-1],
    }
    return {name: finite(value) for name, value in figures.items()}


def metric_means(run: NightlyRun) -> dict[tuple[str, str], float]:
    """Return the mean of each metric over the fixed seeds, by scenario and metric, in order."""
    means = {}
    for scenario in sorted(run.samples.scenarios, key=lambda each: each.name):
        for metric in sorted(scenario.metrics, key=lambda each: each.name):
            values = (_value(sample, metric.name) for sample in scenario.samples)
            mean = summary_figures(sorted(each for each in values if each is not None))["mean"]
            if mean is not None:
                means[scenario.name, metric.name] = mean
    return means


def _value(sample: Sample, metric: str) -> float | None:
    return finite(sample.metrics.get(metric)) if sample.status == "ok" else None


def _sample(sample: Sample) -> dict[str, Any]:
    problem = sample_problem(sample)
    return {
        "seed": sample.seed,
        "status": "error" if problem and sample.status == "ok" else sample.status,
        "metrics": {name: finite(value) for name, value in sample.metrics.items()},
        "trajectory_hash": sample.trajectory_hash,
        "error": sample.error if sample.status != "ok" else problem,
    }


def diff_document(result: NightlyResult) -> dict[str, Any]:
    """Return ``nightly_diff.json``: every metric under its word, the worst first."""
    diff, pairs = result.diff, Pairs(result)
    lists: dict[str, list[dict[str, Any]]] = {key: [] for key in KEYS.values()}
    for finding in by_severity(diff.findings if diff else ()):
        lists[KEYS[word_of(finding)]].append(_entry(finding, pairs))
    baseline = result.baseline
    document = {
        "schema": DIFF_SCHEMA,
        "verdict": verdict(result),
        "light": light(result),
        "headline": headline(result),
        "why": explanation(result),
        "baseline": None
        if diff is None
        else {
            "run_id": diff.baseline_run,
            "id": baseline.id if baseline else None,
            "hash": baseline.content_hash if baseline else None,
            "created_at": baseline.created_at if baseline else None,
        },
        "candidate": {
            "run_id": result.run.run_id,
            "status": result.run.status,
            "created_at": result.run.created_at,
            "code": msgspec.to_builtins(result.run.code),
        },
        "family": None
        if diff is None
        else {
            "T": diff.n_tests,
            "flagged": diff.n_flagged,
            "alpha": finite(diff.alpha),
            "method": diff.method,
        },
        "counts": {KEYS[word]: count for word, count in counts(result).items()},
        "failed_scenarios": [
            {
                "scenario": trouble.scenario,
                "kind": trouble.kind,
                "why": trouble.why,
                "seeds": list(trouble.seeds),
            }
            for trouble in troubles(result.run)
        ],
        "notices": [msgspec.to_builtins(notice) for notice in (diff.notices if diff else ())],
        **lists,
    }
    made: dict[str, Any] = plain(document)
    return made


def _entry(finding: Finding, pairs: Pairs) -> dict[str, Any]:
    worst = pairs.worst(finding)
    return {
        "id": finding.id,
        "scenario": finding.scenario,
        "metric": finding.metric,
        "word": word_of(finding),
        "stage": finding.stage,
        "severity": severity(finding),
        "unit": finding.unit,
        "direction": finding.direction,
        "n": finding.n,
        "base": finite(finding.base),
        "cand": finite(finding.cand),
        "loss": finite(finding.loss),
        "delta_abs": finite(finding.delta_abs),
        "delta_rel": finite(finding.delta_rel),
        "ci95": _interval(finding.ci95),
        "p": finite(finding.p),
        "p_holm": finite(finding.p_holm),
        "effect": finite(finding.effect),
        "sd": finite(finding.sd),
        "mde": finite(finding.mde),
        "required": finite(finding.required),
        "tolerance": {"rel": finite(finding.tolerance_rel), "abs": finite(finding.tolerance_abs)},
        "must_be_zero": finding.must_be_zero,
        "critical": finding.critical,
        "worst": [msgspec.to_builtins(seed) for seed in worst],
        "replay": worst[0].replay if worst else None,
        "why": finding.why,
    }


def _interval(ends: tuple[float, float] | None) -> list[float] | None:
    known = [] if ends is None else [end for end in map(finite, ends) if end is not None]
    return known if len(known) == 2 else None


def baseline_document(record: BaselineRecord) -> dict[str, Any]:
    """Return the ``manifest.json`` of a baseline."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    made: dict[str, Any] = plain({"schema": BASELINE_SCHEMA, **fields})
    return made


def plain(value: Any) -> Any:
    """Return a JSON value whose texts are visible and whose numbers are finite or null."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        pairs = sorted((visible(str(key)), item) for key, item in value.items())
        return {key: plain(item) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return finite(value)
    if value is None or isinstance(value, bool | int):
        return value
    return visible(str(value))


def document_text(document: Mapping[str, Any]) -> str:
    """Return a document as the text of its file."""
    return to_json(document) + "\n"
