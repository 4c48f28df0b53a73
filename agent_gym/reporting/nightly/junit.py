"""The night as JUnit XML: a test suite for each scenario, a test case for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from agent_gym.evaluation.gate.diff import Finding
from agent_gym.reporting.nightly.documents import scenario_notes
from agent_gym.reporting.nightly.markdown import change
from agent_gym.reporting.nightly.pairs import Pairs
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.verdict import (
    BROKEN,
    UNJUDGED,
    WORDS,
    Trouble,
    explanation,
    headline,
    light,
    severity,
    troubles,
    verdict,
    word_of,
)
from agent_gym.reporting.text import (
    chance,
    interval,
    number,
    one_line,
    two_numbers,
    visible,
)

NIGHT = "agent_gym.night"
SKIPPED = (*UNJUDGED, "quarantined")


def junit_xml(result: NightlyResult) -> str:
    """Return the XML; the suite of the night itself fails whenever the night is not good."""
    pairs = Pairs(result)
    wrong = {trouble.scenario: trouble for trouble in troubles(result.run)}
    found: dict[str, list[Finding]] = {}
    for finding in result.diff.findings if result.diff else ():
        found.setdefault(finding.scenario, []).append(finding)
    played = {scenario.name: scenario for scenario in result.run.samples.scenarios}
    root = Element("testsuites", name="agent_gym")
    _night(root, result)
    for name in sorted({*found, *wrong, *played}):
        _scenario(root, result, name, wrong.get(name))
        _notes(root[-1], scenario_notes(played[name].samples) if name in played else ())
        for finding in sorted(found.get(name, ()), key=lambda each: each.metric):
            _metric(root[-1], finding, pairs)
    for suite in root:
        _count(suite)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _night(root: Element, result: NightlyResult) -> None:
    suite = SubElement(root, "testsuite", name=NIGHT, timestamp=_stamp(result.run.created_at))
    facts = SubElement(suite, "properties")
    for name, value in _facts(result).items():
        SubElement(facts, "property", name=name, value=one_line(value))
    case = _case(suite, "verdict", NIGHT)
    shown, colour = f"{verdict(result)}: {headline(result)}", light(result)
    if colour == "bad":
        _outcome(case, "failure", verdict(result), shown, explanation(result))
    elif colour == "unsure":
        tag = "error" if result.diff is None else "skipped"
        _outcome(case, tag, verdict(result), shown, explanation(result))


def _facts(result: NightlyResult) -> dict[str, str]:
    run = result.run
    return {
        "run_id": run.run_id,
        "suite": f"{run.suite_id} {run.suite_version}",
        "commit": run.code.commit or "none",
        "code_hash": run.code.code_hash,
        "baseline": result.baseline.id if result.baseline else "none",
        "command": run.command,
    }


def _scenario(root: Element, result: NightlyResult, name: str, trouble: Trouble | None) -> None:
    suite = SubElement(
        root,
        "testsuite",
        name=one_line(name),
        time=f"{max(0.0, result.run.durations.get(name, 0.0)):.3f}",
        timestamp=_stamp(result.run.created_at),
    )
    case = _case(suite, "played", name)
    if trouble is not None:
        _outcome(case, "error", trouble.kind, trouble.why, trouble.why)


def _notes(suite: Element, notes: Sequence[str]) -> None:
    """Put what a scenario says of itself under the case that says whether it was played."""
    if notes:
        SubElement(suite[0], "system-out").text = visible("\n".join(notes), 20_000)


def _metric(suite: Element, finding: Finding, pairs: Pairs) -> None:
    case, word = _case(suite, finding.metric, finding.scenario), word_of(finding)
    if word not in BROKEN and word not in SKIPPED:
        return
    base, cand = two_numbers(finding.base, finding.cand)
    message = f"{WORDS[word]}: {base} -> {cand} {finding.unit} ({change(finding)})"
    lines = [
        finding.why,
        f"severity {severity(finding)}, decided by {finding.stage}, n {finding.n}",
        f"loss {number(finding.loss)}, 95 % {interval(finding.ci95)}",
        f"p {chance(finding.p)}, after Holm {chance(finding.p_holm)}",
        *(f"replay: {worst.replay}" for worst in pairs.worst(finding)),
    ]
    tag = "skipped" if word in SKIPPED else "failure" if word == "regression" else "error"
    _outcome(case, tag, word, message, "\n".join(lines))


def _case(suite: Element, name: str, scenario: str) -> Element:
    return SubElement(
        suite, "testcase", name=one_line(name), classname=one_line(scenario), time="0.000"
    )


def _outcome(case: Element, tag: str, kind: str, message: str, text: str) -> None:
    made = SubElement(case, tag, message=one_line(message))
    if tag != "skipped":  # the common schema gives skipped no type
        made.set("type", kind)
    made.text = visible(text)


def _count(suite: Element) -> None:
    cases: Sequence[Element] = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _stamp(iso: str) -> str:
    """Return a time as the common schema has it, without fractions and zone."""
    return visible(iso, 64)[:19]
