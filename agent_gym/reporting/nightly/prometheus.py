"""The metrics file for the textfile collector of a node exporter.

All are gauges: they tell the state after the last run. The two names that end in ``_total`` are
kept because dashboards know them, although by convention that ending is for counters.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from agent_gym.reporting.nightly.documents import metric_means
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.verdict import (
    VERDICTS,
    by_severity,
    counts,
    light,
    severity,
    troubles,
    verdict,
    word_of,
)
from agent_gym.reporting.text import epoch_s, finite, one_line

MAX_SERIES = 2_000
RESERVED = 100  # series for what is not told of each metric or scenario
LABEL = 128


class _Series(Struct, frozen=True):
    labels: tuple[str, ...]
    value: float


class _Page:
    """Adds gauges until there are too many series; what is left out is counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.left = MAX_SERIES - RESERVED
        self.dropped = 0

    def one(self, name: str, text: str, value: float | None) -> None:
        """Add a gauge without labels; one that has no value is left out."""
        if value is not None:
            Gauge(name, text, registry=self.registry).set(value)

    def each(
        self, name: str, text: str, labels: tuple[str, ...], rows: Iterable[_Series], share: int = 1
    ) -> None:
        """Add a gauge with labels: as many series as fit into a share of the room left."""
        gauge = Gauge(name, text, labelnames=labels, registry=self.registry)
        known = {tuple(one_line(label, LABEL) for label in row.labels): row.value for row in rows}
        kept = list(known.items())[: self.left // share]
        self.dropped += len(known) - len(kept)
        self.left -= len(kept)
        for given, value in kept:
            gauge.labels(*given).set(value)


def prometheus_text(result: NightlyResult) -> str:
    """Return the metrics file: no timestamps, at most 2,000 series, a line end at the end."""
    page = _Page()
    _totals(page, result)
    _times(page, result)
    _scenarios(page, result)
    _metrics(page, result)
    page.one(
        "agent_gym_series_dropped", "Series left out because there were too many.", page.dropped
    )
    return generate_latest(page.registry).decode()


def _totals(page: _Page, result: NightlyResult) -> None:
    found, wrong = counts(result), troubles(result.run)
    gaps = sum(trouble.kind == "missing" for trouble in wrong)
    missing = found["missing_in_new"] + found["missing_in_baseline"] + gaps
    failed = found["error"] + len(wrong) - gaps
    page.one("agent_gym_regressions_total", "Regressions of the last run.", found["regression"])
    page.one("agent_gym_improvements_total", "Improvements of the last run.", found["improvement"])
    page.one("agent_gym_missing", "Metrics or scenarios that one side does not have.", missing)
    page.one("agent_gym_errors", "Metrics or scenarios that failed.", failed)
    page.one(
        "agent_gym_incomparable", "Metrics that mean something else now.", found["incomparable"]
    )
    page.one("agent_gym_quarantined", "Metrics that do not gate for now.", found["quarantined"])
    page.one("agent_gym_underpowered", "Metrics too noisy to be judged.", found["underpowered"])
    page.one(
        "agent_gym_nondeterministic",
        "Metrics that differ between equal runs.",
        found["nondeterministic"],
    )
    page.one("agent_gym_success", "1 if the last run was good.", float(light(result) == "good"))
    word = verdict(result)
    page.each(
        "agent_gym_run_status",
        "1 for the verdict of the last run.",
        ("status",),
        (_Series((name,), float(name == word)) for name in VERDICTS),
    )


def _times(page: _Page, result: NightlyResult) -> None:
    run = result.run
    ended = epoch_s(run.finished_at)
    page.one("agent_gym_last_run_timestamp_seconds", "End of the last run.", ended)
    succeeded = ended if light(result) == "good" else None
    if succeeded is None and result.last_success_at is not None:
        succeeded = epoch_s(result.last_success_at)
    page.one("agent_gym_last_success_timestamp_seconds", "End of the last good run.", succeeded)
    page.one(
        "agent_gym_run_duration_seconds",
        "Wall time of the last run.",
        max(0.0, ended - epoch_s(run.created_at)),
    )
    if result.baseline is not None:
        age = ended - epoch_s(result.baseline.created_at)
        page.one("agent_gym_baseline_age_seconds", "Age of the baseline at the last run.", age)


def _scenarios(page: _Page, result: NightlyResult) -> None:
    run = result.run
    wrong = {trouble.scenario: trouble for trouble in troubles(run)}
    names = sorted({*run.expected, *(scenario.name for scenario in run.samples.scenarios)})
    page.each(
        "agent_gym_scenario_up",
        "1 if every seed of the scenario was played.",
        ("scenario",),
        (_Series((name,), float(name not in wrong)) for name in names),
    )
    findings = result.diff.findings if result.diff else ()
    new = {each.scenario for each in findings if word_of(each) == "missing_in_new"}
    new |= {trouble.scenario for trouble in wrong.values() if trouble.kind == "missing"}
    old = {each.scenario for each in findings if word_of(each) == "missing_in_baseline"}
    page.each(
        "agent_gym_missing_scenarios",
        "Scenarios of which one side lacks something.",
        ("where",),
        (_Series(("baseline",), len(old)), _Series(("new",), len(new))),
    )
    worse: dict[tuple[str, ...], float] = {}
    for finding in findings:
        if word_of(finding) == "regression":
            key = (finding.scenario, severity(finding))
            worse[key] = worse.get(key, 0.0) + 1.0
    page.each(
        "agent_gym_regressions",
        "Regressions of the last run by scenario and severity.",
        ("scenario", "severity"),
        (_Series(key, worse[key]) for key in sorted(worse)),
    )


def _metrics(page: _Page, result: NightlyResult) -> None:
    names = ("scenario", "metric")
    means = metric_means(result.run)
    findings = by_severity(result.diff.findings if result.diff else ())
    order = [(finding.scenario, finding.metric) for finding in findings]
    order += [key for key in means if key not in set(order)]
    page.each(
        "agent_gym_metric_value",
        "Mean over the fixed seeds of the last run.",
        names,
        (_Series(key, means[key]) for key in order if key in means),
        share=2,
    )
    changes = {
        (finding.scenario, finding.metric): finite(finding.delta_rel) for finding in findings
    }
    page.each(
        "agent_gym_metric_delta_ratio",
        "Relative change from the baseline.",
        names,
        (_Series(key, ratio) for key, ratio in changes.items() if ratio is not None),
    )
