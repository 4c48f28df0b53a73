"""The metrics file: every documented name, gauges only, few enough series."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent_gym.reporting.nightly import html_page, markdown_summary, prometheus_text
from tests.reporting.result_samples import bad_night, finding_like, good_night, like

DOCUMENTED = [
    "agent_gym_regressions_total",
    "agent_gym_improvements_total",
    "agent_gym_missing",
    "agent_gym_errors",
    "agent_gym_quarantined",
    "agent_gym_underpowered",
    "agent_gym_last_run_timestamp_seconds",
    "agent_gym_last_success_timestamp_seconds",
    "agent_gym_run_duration_seconds",
    "agent_gym_metric_value",
    "agent_gym_regressions",
    "agent_gym_metric_delta_ratio",
    "agent_gym_scenario_up",
    "agent_gym_baseline_age_seconds",
    "agent_gym_missing_scenarios",
    "agent_gym_run_status",
]


def families(night):
    return {each.name: each for each in text_string_to_metric_families(prometheus_text(night))}


def crowded(n):
    night = bad_night()
    first = night.diff.findings[0]
    found = tuple(
        finding_like(first, id=f"s{at % 50}/m{at}", scenario=f"s{at % 50}", metric=f"m{at}")
        for at in range(n)
    )
    return like(night, diff=like(night.diff, findings=found))


def test_all_names_are_there_and_are_gauges():
    found = families(bad_night())
    assert set(DOCUMENTED) <= set(found)
    assert {family.type for family in found.values()} == {"gauge"}
    assert all(family.documentation for family in found.values())


def test_values_are_those_of_the_night():
    found = families(bad_night())

    def value(name, **labels):
        (hit,) = (each.value for each in found[name].samples if each.labels == labels)
        return hit

    assert value("agent_gym_regressions_total") == 4
    assert value("agent_gym_improvements_total") == 2
    assert value("agent_gym_run_duration_seconds") == 72.0
    assert value("agent_gym_regressions", scenario="signal_throughput", severity="major") == 2
    assert value("agent_gym_run_status", status="regressed") == 1
    assert value("agent_gym_missing_scenarios", where="new") == 0
    ratio = value(
        "agent_gym_metric_delta_ratio", scenario="signal_throughput", metric="latency_p95_ms"
    )
    assert ratio == pytest.approx(0.31, abs=0.03)
    assert value("agent_gym_scenario_up", scenario="thin_book") == 1


def test_no_timestamps_and_a_line_end():
    text = prometheus_text(good_night())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit("}")[-1].split()) <= 2


def test_series_are_capped_and_what_is_left_out_is_counted():
    found = families(crowded(5_000))
    n = sum(len(family.samples) for family in found.values())
    assert 1_500 < n <= 2_000
    (dropped,) = found["agent_gym_series_dropped"].samples
    assert dropped.value > 3_000
    (none,) = families(bad_night())["agent_gym_series_dropped"].samples
    assert none.value == 0


def test_the_largest_night_still_fits():
    night = crowded(5_000)
    assert len(html_page(night).encode()) < 2_000_000
    assert len(markdown_summary(night)) <= 60_000


def test_a_comment_begins_with_the_answer():
    first = markdown_summary(bad_night()).splitlines()[0]
    assert first == "❌ **Agent Gym: 4 regressions**"
    assert len(first) < 80
    text = markdown_summary(bad_night())
    assert text.count("<details>") == text.count("</details>")
    row = next(line for line in text.splitlines() if "latency_p95_ms" in line)
    assert "+30." in row
    assert "<0.0001" in row
    shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    heads = ("4 metrics lost", "double_fill_count", "agent-gym replay", "Better: `execution")
    assert [shown.index(head) for head in heads] == sorted(shown.index(head) for head in heads)
    assert shown.count("agent-gym replay") == 1  # the others are folded
    quiet = next(line for line in text.splitlines() if "latency_p50_ms" in line)
    assert "| ~ |" in quiet
