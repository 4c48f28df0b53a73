"""A crash or a gap is green nowhere; a good night is green everywhere."""

from __future__ import annotations

import io
import math
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from agent_gym.reporting.nightly import (
    NightlyResult,
    diff_document,
    headline,
    html_page,
    junit_xml,
    light,
    markdown_summary,
    prometheus_text,
    report_document,
    summary_view,
    troubles,
)
from agent_gym.reporting.nightly.verdict import BROKEN, UNJUDGED, word_of
from tests.reporting import nightly_strategies as odd
from tests.reporting.result_samples import bad_night, finding_like, good_night, like


def with_word(word, **more) -> NightlyResult:
    """Return a good night whose gate says pass although one metric has this word."""
    night = good_night()
    first, *rest = night.diff.findings
    bent = finding_like(first, word=word, **more)
    return like(night, diff=like(night.diff, findings=(bent, *rest)))


def with_samples(change) -> NightlyResult:
    night = good_night()
    suite = night.run.samples
    return like(
        night,
        run=like(night.run, samples=like(suite, scenarios=tuple(change(list(suite.scenarios))))),
    )


def without_last(scenarios):
    return scenarios[:-1]


def without_seeds(scenarios):
    return [like(scenarios[0], samples=()), *scenarios[1:]]


def one_seed(**changes):
    def change(scenarios):
        first = scenarios[0]
        samples = (like(first.samples[0], **changes), *first.samples[1:])
        return [like(first, samples=samples), *scenarios[1:]]

    return change


def partial() -> NightlyResult:
    night = good_night()
    return like(night, run=like(night.run, status="partial"))


def said(verdict) -> NightlyResult:
    night = good_night()
    return like(night, diff=like(night.diff, verdict=verdict))


BAD = {
    **{word: with_word(word) for word in BROKEN},
    **{f"verdict {word}": said(word) for word in ("regressed", "incomparable", "error")},
    "NaN in a finding": with_word("unchanged", cand=math.nan),
    "infinite loss": with_word("no_difference_seen", loss=math.inf),
    "NaN interval": with_word("improvement", ci95=(math.nan, 1.0)),
    "missing scenario": with_samples(without_last),
    "no seeds": with_samples(without_seeds),
    "crashed seed": with_samples(one_seed(status="crashed", metrics={})),
    "timed out seed": with_samples(one_seed(status="timeout", metrics={}, error="too slow")),
    "NaN seed": with_samples(one_seed(metrics={"latency_p50_ms": math.nan})),
    "infinite seed": with_samples(one_seed(metrics={"latency_p50_ms": -math.inf})),
    "partial": partial(),
    "crash without a diff": like(with_samples(without_last), diff=None),
}
UNSURE = {
    **{word: with_word(word) for word in UNJUDGED},
    **{f"verdict {word}": said(word) for word in ("underpowered", "degraded")},
    "no baseline": like(good_night(), diff=None, baseline=None),
    "no findings": like(good_night(), diff=like(good_night().diff, findings=())),
}


def gauges(night) -> dict[str, float]:
    families = text_string_to_metric_families(prometheus_text(night))
    return {
        sample.name + str(sample.labels.get("status", "")): sample.value
        for family in families
        for sample in family.samples
        if set(sample.labels) <= {"status"}
    }


def colours(night) -> dict[str, str]:
    """Return how each output looks to whoever reads nothing but its signal."""
    screen = io.StringIO()
    Console(file=screen, width=120).print(summary_view(night))
    first = screen.getvalue().split(":")[0]
    root = ElementTree.fromstring(junit_xml(night))
    if int(root.get("failures")) + int(root.get("errors")):
        xml = "bad"
    else:
        xml = "unsure" if int(root.get("skipped")) else "good"
    known, page = gauges(night), html_page(night)
    word = diff_document(night)["verdict"]
    return {
        "diff": diff_document(night)["light"],
        "verdict": "good" if word == "pass" else "not good",
        "page": page.split('data-light="')[1].split('"')[0],
        "banner": page.split('class="banner ')[1].split('"')[0],
        "markdown": {"✅": "good", "⚠": "unsure", "❌": "bad"}[markdown_summary(night)[0]],
        "junit": xml,
        "console": {"GOOD": "good", "NOT SURE": "unsure", "BAD": "bad"}[first],
        "prometheus": "good" if known["agent_gym_success"] else "not good",
        "status": "good" if known["agent_gym_run_statuspass"] else "not good",
    }


def test_a_good_night_is_green_everywhere():
    assert set(colours(good_night()).values()) == {"good"}
    assert headline(good_night()) == "Nothing got worse"
    assert troubles(good_night().run) == ()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_night_is_red_everywhere(name):
    found = colours(BAD[name])
    assert set(found.values()) <= {"bad", "not good"}
    assert "Nothing got worse" not in headline(BAD[name])


@pytest.mark.parametrize("name", UNSURE)
def test_a_night_that_was_not_judged_is_green_nowhere(name):
    found = colours(UNSURE[name])
    assert "good" not in found.values()
    assert found["diff"] == found["page"] == found["markdown"] == "unsure"


def test_quarantine_alone_does_not_spoil_a_night():
    night = with_word("quarantined")
    assert light(night) == "good"
    assert gauges(night)["agent_gym_quarantined"] == 1.0


def test_an_improvement_is_good():
    assert headline(with_word("improvement")) == "Nothing got worse, 1 improvement"


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(odd.results())
def test_no_odd_night_is_green_in_one_place_and_not_in_another(result):
    found = colours(result)
    if light(result) == "good":
        quarantined = found.pop("junit") == "unsure"  # skipped there, although it spoils nothing
        assert set(found.values()) == {"good"}
        assert quarantined == any(each.word == "quarantined" for each in result.diff.findings)
        assert not troubles(result.run)
        assert {word_of(each) for each in result.diff.findings}.isdisjoint({*BROKEN, *UNJUDGED})
    else:
        assert "good" not in found.values()


def test_what_failed_is_named_everywhere():
    night = BAD["timed out seed"]
    name = night.run.samples.scenarios[0].name
    screen = io.StringIO()
    Console(file=screen, width=120).print(summary_view(night))
    assert "too slow" in screen.getvalue()
    assert "too slow" in html_page(night)
    assert "too slow" in markdown_summary(night)
    assert "too slow" in junit_xml(night)
    assert "too slow" in diff_document(night)["failed_scenarios"][0]["why"]
    scenario = next(s for s in report_document(night.run)["scenarios"] if s["name"] == name)
    assert scenario["status"] == "error"
    text = prometheus_text(night)
    assert f'agent_gym_scenario_up{{scenario="{name}"}} 0.0' in text
    assert "agent_gym_errors 1.0" in text


def test_the_last_success_is_kept_when_a_night_fails():
    bad = bad_night()
    known = gauges(bad)
    assert known["agent_gym_last_success_timestamp_seconds"] == 1_794_706_265.0
    assert known["agent_gym_last_run_timestamp_seconds"] == 1_794_792_672.0
    never = gauges(like(bad, last_success_at=None))
    assert "agent_gym_last_success_timestamp_seconds" not in never
    good = gauges(good_night())
    assert good["agent_gym_last_success_timestamp_seconds"] == 1_794_792_672.0
