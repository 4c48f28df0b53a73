"""What the scenarios say of themselves, how much is judged, and that a self-test is one."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import msgspec
from jsonschema import Draft202012Validator
from rich.console import Console

from agent_gym.evaluation.gate.samples import ScenarioSamples, SuiteSamples
from agent_gym.reporting.nightly import (
    html_page,
    junit_xml,
    markdown_summary,
    report_document,
    run_view,
    schema_of,
)
from agent_gym.reporting.nightly.run import NightlyResult
from tests.reporting.result_samples import good_night

replace = msgspec.structs.replace
HOSTILE = "signals row 3, timestamp: <script>alert(1)</script>"


def with_scenario(made: ScenarioSamples) -> NightlyResult:
    night = good_night()
    rest = night.run.samples.scenarios[1:]
    samples: SuiteSamples = replace(night.run.samples, scenarios=(made, *rest))
    changed: NightlyResult = replace(night, run=replace(night.run, samples=samples))
    return changed


def with_notes(*notes_by_seed: tuple[str, ...]) -> NightlyResult:
    first = good_night().run.samples.scenarios[0]
    told = dict(enumerate(notes_by_seed))
    samples = tuple(replace(each, notes=told.get(at, ())) for at, each in enumerate(first.samples))
    return with_scenario(replace(first, samples=samples))


def shown(night: NightlyResult) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(run_view(night.run))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_notes_reach_every_output_once() -> None:
    night = with_notes((HOSTILE, "second"), (HOSTILE, "of another seed"))
    document = report_document(night.run)
    Draft202012Validator(schema_of("report")).validate(document)
    first = night.run.samples.scenarios[0].name
    said = {each["name"]: each["notes"] for each in document["scenarios"]}
    assert said.pop(first) == [HOSTILE, "second", "of another seed"]
    assert not any(said.values())
    page = html_page(night)
    assert page.count("of another seed") == 1
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "of another seed" in shown(night)
    comment = markdown_summary(night)
    assert comment.count("of another seed") == 1
    assert "3 notes of the scenarios" in comment
    assert "<script>" not in comment
    (case,) = ElementTree.fromstring(junit_xml(night)).findall(
        f"testsuite[@name='{first}']/testcase[@name='played']"
    )
    assert case.findtext("system-out") == "\n".join((HOSTILE, "second", "of another seed"))
    assert first in shown(night)


def test_notes_are_capped_and_the_rest_is_counted() -> None:
    night = with_notes(tuple(f"row {at}" for at in range(50)))
    notes = report_document(night.run)["scenarios"]
    (told,) = [each["notes"] for each in notes if each["notes"]]
    assert told[:20] == [f"row {at}" for at in range(20)]
    assert told[20:] == ["30 more notes"]


def test_a_night_without_notes_says_nothing_of_them() -> None:
    assert 'id="said"' not in html_page(good_night())
    assert "of the scenarios" not in markdown_summary(good_night())
    assert "system-out" not in junit_xml(good_night())
    assert 'id="said"' in html_page(with_notes(("one",)))


def test_the_head_counts_what_is_in_the_table() -> None:
    first = good_night().run.samples.scenarios[0]
    total = sum(len(each.metrics) for each in good_night().run.samples.scenarios)
    assert f"{total} metrics" in html_page(good_night())
    extra = first.metrics[0].model_copy(update={"name": "only_shown", "gates": False})
    samples = tuple(
        replace(each, metrics={**each.metrics, "only_shown": 1.0}) for each in first.samples
    )
    night = with_scenario(replace(first, metrics=(*first.metrics, extra), samples=samples))
    assert f"{total} gating of {total + 1} metrics" in html_page(night)


def test_a_self_test_is_called_one_first() -> None:
    night = good_night()
    planted: NightlyResult = replace(
        night, run=replace(night.run, subject={"plant": "slow_<agent>"})
    )
    page = html_page(planted)
    banner = page[page.index('id="verdict"') : page.index("</h1>")]
    assert "Self-test" in banner
    assert "slow_&lt;agent&gt;" in page
    assert "<title>Self-test" in page
    assert "Self-test" not in html_page(night)
    assert "self-test with the fault slow" in markdown_summary(planted).splitlines()[0]
    assert "self-test" not in markdown_summary(night)
