"""Documents of any night validate, hold finite numbers only, and are the same bytes every time."""

from __future__ import annotations

import io
import json
import math
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from agent_gym.evaluation.gate.samples import Sample
from agent_gym.reporting.nightly import (
    baseline_document,
    diff_document,
    document_text,
    html_page,
    junit_xml,
    markdown_summary,
    prometheus_text,
    report_document,
    run_view,
    schema_of,
    summary_view,
)
from agent_gym.reporting.nightly.documents import summary_figures
from tests.reporting import nightly_strategies as odd
from tests.reporting.result_samples import bad_night, good_night

ANY = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def validate(name, document):
    Draft202012Validator(schema_of(name)).validate(document)


def round_trip(document):
    """Return what a strict reader of the file gets."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    text = document_text(document)
    text.encode("utf-8")
    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", ["report", "diff", "baseline", "suite"])
def test_the_schemas_are_schemas_and_strict(name):
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")

    def objects(node):
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                yield node
            for value in node.values():
                yield from objects(value)
        elif isinstance(node, list):
            for value in node:
                yield from objects(value)

    found = list(objects(schema))
    assert found
    assert all(node["additionalProperties"] is False for node in found)


@ANY
@given(odd.runs())
def test_any_report_validates(run):
    validate("report", round_trip(report_document(run)))


@ANY
@given(odd.results())
def test_any_diff_validates(result):
    document = round_trip(diff_document(result))
    validate("diff", document)
    n = len(result.diff.findings) if result.diff else 0
    assert sum(document["counts"].values()) == n


@ANY
@given(odd.baselines())
def test_any_baseline_validates(record):
    validate("baseline", round_trip(baseline_document(record)))


@ANY
@given(odd.results())
def test_any_night_parses_by_the_tools_of_others(result):
    text = prometheus_text(result)
    assert text.endswith("\n")
    seen = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert all(math.isfinite(sample.value) for sample in seen)
    assert all(sample.timestamp is None for sample in seen)
    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in seen]
    assert len(set(keys)) == len(keys) <= 2_000
    root = ElementTree.fromstring(junit_xml(result).encode("utf-8"))
    assert root.tag == "testsuites"
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(root.get(name)) == len(root.findall(f".//{tag}"))
    assert int(root.get("tests")) == len(root.findall(".//testcase"))


@ANY
@given(odd.results())
def test_equal_nights_give_equal_bytes(result):
    def all_of():
        screen = io.StringIO()
        Console(file=screen, width=120).print(summary_view(result), run_view(result.run))
        return (
            document_text(diff_document(result)),
            document_text(report_document(result.run)),
            prometheus_text(result),
            junit_xml(result),
            markdown_summary(result),
            html_page(result),
            screen.getvalue(),
        )

    first, second = all_of(), all_of()
    assert first == second
    for text in first:
        text.encode("utf-8")  # no half of a surrogate is left


def test_the_order_of_scenarios_and_seeds_does_not_matter():
    night = bad_night()
    suite = night.run.samples
    turned = [
        type(each)(
            each.name, each.identity, each.metrics[::-1], each.samples[::-1], dict(each.repeated)
        )
        for each in suite.scenarios
    ][::-1]
    other = type(suite)(suite.run_id, suite.suite_id, suite.suite_version, tuple(turned))
    fields = {name: getattr(night.run, name) for name in night.run.__struct_fields__}
    again = type(night.run)(**(fields | {"samples": other}))
    assert document_text(report_document(again)) == document_text(report_document(night.run))


def test_every_finding_tells_its_figures_and_how_to_see_it_again():
    document = diff_document(bad_night())
    entry = next(e for e in document["regressions"] if e["metric"] == "latency_p95_ms")
    assert entry["delta_rel"] == pytest.approx(0.31, abs=0.03)
    assert entry["ci95"][0] < entry["loss"] < entry["ci95"][1]
    assert len(entry["worst"]) == 3
    assert entry["worst"][0]["loss"] >= entry["worst"][2]["loss"]
    for worst in entry["worst"]:
        command = f"agent-gym replay n20261116-013000-4c1f signal_throughput {worst['seed']}"
        assert worst["replay"] == command
        assert worst["cand"] - worst["base"] == pytest.approx(worst["loss"])
    assert entry["replay"] == entry["worst"][0]["replay"]


def test_critical_regressions_come_first():
    severities = [entry["severity"] for entry in diff_document(bad_night())["regressions"]]
    assert severities == ["critical", "major", "major", "major"]


def test_a_strict_schema_refuses_what_it_does_not_know():
    document = diff_document(good_night())
    validate("diff", document)
    for wrong in ({"surprise": 1}, {"verdict": "fine"}, {"light": "unsure"}):
        with pytest.raises(ValidationError):
            validate("diff", document | wrong)
    with pytest.raises(ValidationError):
        validate("diff", {key: value for key, value in document.items() if key != "errors"})


def test_a_diff_that_calls_errors_good_is_refused():
    document = diff_document(bad_night())
    with pytest.raises(ValidationError):
        validate("diff", document | {"light": "good", "verdict": "pass"})


def test_a_figure_that_is_no_number_is_an_error_and_not_a_zero():
    night = good_night()
    first, *rest = night.run.samples.scenarios
    bent = Sample(0, "ok", {**first.samples[0].metrics, "latency_p50_ms": math.nan}, "h")
    scenario = type(first)(
        first.name, first.identity, first.metrics, (bent, *first.samples[1:]), first.repeated
    )
    suite = type(night.run.samples)("r", "default", 1, (scenario, *rest))
    fields = {name: getattr(night.run, name) for name in night.run.__struct_fields__}
    document = report_document(type(night.run)(**(fields | {"samples": suite})))
    validate("report", document)
    found = next(each for each in document["scenarios"] if each["name"] == first.name)
    assert found["status"] == "error"
    assert "latency_p50_ms" in found["error"]
    assert found["samples"][0]["metrics"]["latency_p50_ms"] is None
    assert found["metrics"]["latency_p50_ms"]["n"] == 23
    assert found["metrics"]["latency_p50_ms"]["unscored"] == 1


def test_numbers_that_are_none_are_null_wherever_they_stand():
    run = good_night().run
    fields = {name: getattr(run, name) for name in run.__struct_fields__}
    odd_ones = {
        "manifest": {"a": math.nan, "b": [math.inf, {"c": -math.inf}]},
        "machine": {"load": math.nan},
        "durations": {"thin_book": math.inf},
        "perf": {"thin_book": {"seeds_per_s": math.nan}},
    }
    document = round_trip(report_document(type(run)(**(fields | odd_ones))))
    validate("report", document)
    assert document["manifest"] == {"a": None, "b": [None, {"c": None}]}
    assert document["machine"] == {"load": None}


def test_figures_of_huge_and_tiny_numbers_are_finite():
    huge = summary_figures([-1.7e308, 1.7e308])
    assert huge["mean"] == 0.0
    assert summary_figures([1e308] * 3)["mean"] == pytest.approx(1e308)
    assert summary_figures([0.1, 0.2, 0.3])["sd"] == pytest.approx(0.1)
    assert summary_figures([])["mean"] is None
    assert summary_figures([4.0])["sd"] is None
