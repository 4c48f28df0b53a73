"""Good, bad or unsure: one answer for all outputs, so that none can be greener than another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from agent_gym.evaluation.gate.diff import Finding, Word
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples
from agent_gym.reporting.nightly.run import NightlyResult, NightlyRun
from agent_gym.reporting.text import many, one_line

Light: TypeAlias = Literal["good", "unsure", "bad"]
Severity: TypeAlias = Literal["critical", "major", "none"]

BROKEN: tuple[Word, ...] = ("regression", "error", "missing_in_new", "incomparable")
UNJUDGED: tuple[Word, ...] = ("underpowered", "nondeterministic", "missing_in_baseline")
SAME_WORDS: tuple[Word, ...] = ("unchanged", "no_difference_seen")
NO_BASELINE, NOTHING_YET = "no_baseline", "there is no baseline yet"
FIRST_NIGHT = (
    "There is no baseline yet. Approve this run: agent-gym nightly --update-baseline --reason TEXT"
)
VERDICTS = ("pass", "regressed", "underpowered", "degraded", "incomparable", "error", NO_BASELINE)
WORDS: dict[Word, str] = {
    "error": "error",
    "missing_in_new": "missing",
    "regression": "regression",
    "incomparable": "incomparable",
    "nondeterministic": "not repeatable",
    "underpowered": "underpowered",
    "quarantined": "quarantined",
    "missing_in_baseline": "new",
    "improvement": "improvement",
    "no_difference_seen": "no difference seen",
    "unchanged": "unchanged",
}


class Trouble(Struct, frozen=True):
    """A scenario that did not give what the suite asks for."""

    scenario: str
    kind: Literal["missing", "error"]
    why: str
    seeds: tuple[int, ...] = ()


def troubles(run: NightlyRun) -> tuple[Trouble, ...]:
    """Return the scenarios of the run that are missing or have failed seeds, by name."""
    known = {scenario.name: scenario for scenario in run.samples.scenarios}
    found = []
    for name in sorted({*run.expected, *known}):
        if name not in known:
            found.append(Trouble(name, "missing", "it is in the suite and was not played"))
        elif not known[name].samples:
            found.append(Trouble(name, "missing", "no seed was played"))
        else:
            found.extend(_failed(known[name]))
    return tuple(found)


def _failed(scenario: ScenarioSamples) -> Iterable[Trouble]:
    failed = [(sample.seed, sample_problem(sample)) for sample in scenario.samples]
    wrong = [(seed, why) for seed, why in failed if why is not None]
    if wrong:
        text = (
            f"{len(wrong)} of {many(len(failed), 'seed')} failed; seed {wrong[0][0]}: {wrong[0][1]}"
        )
        yield Trouble(scenario.name, "error", text, tuple(seed for seed, _ in wrong))


def sample_problem(sample: Sample) -> str | None:
    """Return why a seed does not count, None if it does; a figure that is no number is a reason."""
    if sample.status != "ok":
        return f"{sample.status}: {sample.error}" if sample.error else sample.status
    broken = [
        name
        for name, value in sorted(sample.metrics.items())
        if value is not None and not math.isfinite(value)
    ]
    return f"{broken[0]} is not a finite number" if broken else None


def is_finite(finding: Finding) -> bool:
    """Return whether every figure of a finding is a number or absent."""
    figures = (
        finding.base,
        finding.cand,
        finding.loss,
        finding.delta_abs,
        finding.delta_rel,
        finding.p,
        finding.p_holm,
        finding.effect,
        finding.sd,
        finding.mde,
        finding.required,
        finding.tolerance_rel,
        finding.tolerance_abs,
        *(finding.ci95 or ()),
    )
    return all(figure is None or math.isfinite(figure) for figure in figures)


def word_of(finding: Finding) -> Word:
    """Return the finding's word; one with a figure that is no number is an error."""
    return finding.word if is_finite(finding) else "error"


def light(result: NightlyResult) -> Light:
    """Return whether the night was good; never so with an error, a gap or something missing."""
    if result.run.status != "complete" or troubles(result.run):
        return "bad"
    diff = result.diff
    if diff is None:
        return "unsure" if _is_first(result) else "bad"
    words = {word_of(finding) for finding in diff.findings}
    if diff.verdict in ("regressed", "incomparable", "error") or words & set(BROKEN):
        return "bad"
    unjudged = words & set(UNJUDGED) or result.contradicted or not diff.findings
    if diff.verdict != "pass" or unjudged:
        return "unsure"
    return "good"


def verdict(result: NightlyResult) -> str:
    """Return the word of the night: the gate's, corrected by what the gate could not see."""
    if result.run.status != "complete" or troubles(result.run):
        return "error"
    if result.diff is None:
        return NO_BASELINE if _is_first(result) else "incomparable"
    given, words = result.diff.verdict, {word_of(finding) for finding in result.diff.findings}
    if given in ("pass", "underpowered", "degraded") and words & set(BROKEN):
        if words & {"error", "missing_in_new"}:
            return "error"
        return "regressed" if "regression" in words else "incomparable"
    if given == "pass" and light(result) == "unsure":
        return "underpowered" if "underpowered" in words else "degraded"
    return given


def _is_first(result: NightlyResult) -> bool:
    """Say whether there is no baseline at all, not one that could not be read or compared with."""
    known = result.problem and not result.problem.startswith(NOTHING_YET)
    return result.baseline is None and not known


def counts(result: NightlyResult) -> dict[Word, int]:
    """Return how many findings there are of each word, zeros included."""
    found = Counter(word_of(each) for each in (result.diff.findings if result.diff else ()))
    return {word: found[word] for word in WORDS}


def severity(finding: Finding) -> Severity:
    """Return how bad a finding is; what is not broken has no severity."""
    if word_of(finding) not in BROKEN:
        return "none"
    return "critical" if finding.critical or finding.must_be_zero else "major"


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, the worst first: by word, then critical ones, then by size."""
    order = {word: at for at, word in enumerate(WORDS)}
    order["regression"] = order["error"]  # a broken promise is as bad as a crash

    def key(finding: Finding) -> tuple[bool, int, float, str]:
        mild = severity(finding) != "critical"
        return mild, order[word_of(finding)], -_size(finding), finding.id

    return sorted(findings, key=key)


def _size(finding: Finding) -> float:
    """Return the loss in units of what is tolerated."""
    loss = finding.loss
    if loss is None or not math.isfinite(loss):
        return math.inf
    base = abs(finding.base) if finding.base is not None else 0.0
    allowed = max(finding.tolerance_abs or 0.0, (finding.tolerance_rel or 0.0) * base)
    if not 0.0 < allowed < math.inf:
        return math.inf if loss else 0.0
    return abs(loss) / allowed


def headline(result: NightlyResult) -> str:
    """Return the answer in a few words; the first line of every output."""
    found, wrong = counts(result), troubles(result.run)
    parts = [
        many(found["regression"], "regression") if found["regression"] else "",
        many(len(wrong), "failed scenario") if wrong else "",
        many(found["error"], "metric") + " with errors" if found["error"] and not wrong else "",
        many(found["missing_in_new"], "metric") + " missing" if found["missing_in_new"] else "",
        many(found["incomparable"], "metric") + " not comparable" if found["incomparable"] else "",
        "the run is incomplete" if result.run.status != "complete" else "",
    ]
    said = ", ".join(part for part in parts if part)
    if said:
        return said[0].upper() + said[1:]
    if result.diff is None:
        why = one_line(result.problem.partition(" (")[0], 200) or "nobody said why"
        first = _is_first(result)
        return "Nothing to compare with" if first else f"Could not be compared: {why}"
    if light(result) == "bad":
        return {"regressed": "Regressed", "incomparable": "Not comparable"}.get(
            verdict(result), "The comparison failed"
        )
    if light(result) == "unsure":
        return _unsure(found, verdict(result), result.contradicted)
    better = found["improvement"]
    return f"Nothing got worse, {many(better, 'improvement')}" if better else "Nothing got worse"


def contradictions(result: NightlyResult) -> tuple[str, ...]:
    """Return what to say of seeds that went differently under the same code; nothing if none."""
    if not result.contradicted:
        return ()
    return (
        f"{', '.join(result.contradicted)}: a seed went differently although the code's hash is "
        "the same, so something that decides figures is not in it (a library, a data file, the "
        "machine). This night is no pass; count it with --also or --import",
    )


def _unsure(found: dict[Word, int], word: str, contradicted: tuple[str, ...]) -> str:
    parts = [
        f"the same code gave other figures in {', '.join(contradicted)}" if contradicted else "",
        many(found["underpowered"], "metric") + " underpowered" if found["underpowered"] else "",
        many(found["nondeterministic"], "metric") + " not repeatable"
        if found["nondeterministic"]
        else "",
        many(found["missing_in_baseline"], "new metric") if found["missing_in_baseline"] else "",
    ]
    said = ", ".join(part for part in parts if part)
    if word == "degraded" and found["quarantined"]:
        said = ", ".join(filter(None, (f"{found['quarantined']} in quarantine", said)))
    return f"No regression seen, but no pass: {said or 'nothing was judged'}"


def explanation(result: NightlyResult) -> str:
    """Return the sentence below the headline."""
    if result.diff is None:
        return one_line(result.problem or FIRST_NIGHT, 500)
    return one_line(result.diff.why, 500)
