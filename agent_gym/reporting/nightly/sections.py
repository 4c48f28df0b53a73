"""The parts of the page that speak of the night as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from agent_gym.evaluation.page import Answer, Origin, chip, command, section, table
from agent_gym.reporting.nightly.documents import all_notes, plain, report_document
from agent_gym.reporting.nightly.rows import MOST_ROWS, Rows, colour_of
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.verdict import (
    SAME_WORDS,
    UNJUDGED,
    WORDS,
    Light,
    counts,
    explanation,
    headline,
    light,
    troubles,
    word_of,
)
from agent_gym.reporting.text import (
    epoch_s,
    many,
    minute,
    number,
    one_line,
    replay_command,
    span,
    visible,
)

MOST_SQUARES, MOST_TROUBLES, MOST_SEEDS, MOST_NOTED = 30, 50, 12, 200
ANSWERS: dict[Light, str] = {"good": "Good", "unsure": "Not sure", "bad": "Bad"}


def past_light(verdict: str) -> Light:
    """Return the colour of an earlier night's verdict."""
    if verdict == "pass":
        return "good"
    return "unsure" if verdict in ("underpowered", "degraded", "no_baseline") else "bad"


def nights(result: NightlyResult) -> str:
    """Return the last nights as squares, tonight at the end."""
    squares = []
    for night in result.past.nights[-MOST_SQUARES:]:
        said = escape(f"{minute(night.created_at)} {one_line(night.verdict, 40)}")
        squares.append(f'<i class="{past_light(night.verdict)}" title="{said}"></i>')
    if not squares:
        return ""
    squares.append(f'<i class="{light(result)} now" title="tonight"></i>')
    label = f"Verdicts of the last {many(len(squares), 'night')}, tonight at the end"
    return f'<span class="nights" role="img" aria-label="{label}">{"".join(squares)}</span>'


def answer(result: NightlyResult) -> Answer:
    """Return the answer, why, and the counts."""
    colour, plant = light(result), planted(result)
    run, last = result.run, result.last_success_at
    facts = [
        many(len(run.samples.scenarios), "scenario"),
        _metrics(result),
        f"commit {one_line(run.code.commit or 'none')[:12]}"
        + (" + changes" if run.code.dirty else ""),
        f"against {one_line(result.baseline.id, 64)}" if result.baseline else "no baseline",
        span(max(0.0, epoch_s(run.finished_at) - epoch_s(run.created_at))),
        f"last good night {minute(last)}" if last and colour != "good" else "",
    ]
    said = " \N{MIDDLE DOT} ".join(fact for fact in facts if fact)
    word = f"Self-test: {ANSWERS[colour]}" if plant else f"{ANSWERS[colour]} tonight"
    why = (_planted_text(plant), explanation(result), said)
    return Answer(colour, word, headline(result), why, _counts(result) if result.diff else "")


def _counts(result: NightlyResult) -> str:
    found, wrong = counts(result), troubles(result.run)
    failed = sum(found[word] for word in ("error", "missing_in_new", "incomparable"))
    unjudged = sum(found[word] for word in (*UNJUDGED, "quarantined"))
    cells = (
        ("bad", found["regression"], "worse", "#broke"),
        ("bad", max(failed, len(wrong)), "failed or missing", "#failed" if wrong else "#broke"),
        ("unsure", unjudged, "not judged", "#all"),
        ("good", found["improvement"], "better", "#all"),
        ("same", sum(found[word] for word in SAME_WORDS), "no difference", "#all"),
    )
    return f'<ul class="tiles counts">{"".join(_tile(*cell) for cell in cells)}</ul>'


def planted(result: NightlyResult) -> str:
    """Return the fault that was put in on purpose, or nothing."""
    return one_line(str(result.run.subject.get("plant") or ""), 64)


def _planted_text(plant: str) -> str:
    if not plant:
        return ""
    return f"The fault {plant} was planted to test the gate; this run says nothing of the code."


def _metrics(result: NightlyResult) -> str:
    """Return how many metrics there are, and how many of them are judged."""
    found = [metric for each in result.run.samples.scenarios for metric in each.metrics]
    gating = sum(metric.gates for metric in found)
    shown = many(len(found), "metric")
    return shown if gating == len(found) else f"{gating} gating of {shown}"


def _tile(colour: str, count: int, text: str, target: str) -> str:
    kind = colour if count else "zero"
    inner = f"<b>{count}</b> {text}"
    linked = f'<a href="{target}">{inner}</a>' if count else f"<span>{inner}</span>"
    return f'<li class="{kind}">{linked}</li>'


def failures(result: NightlyResult) -> str:
    """Return the scenarios that failed or are missing, with what they said."""
    wrong = troubles(result.run)
    parts = []
    if result.run.status != "complete":
        parts.append(
            '<article class="card bad"><h3>The run is incomplete</h3><p>It was stopped before its '
            "end. Start it again: it goes on where it stopped.</p></article>"
        )
    for trouble in wrong[:MOST_TROUBLES]:
        seeds = ", ".join(map(str, trouble.seeds[:MOST_SEEDS]))
        more = (
            f" and {len(trouble.seeds) - MOST_SEEDS} more"
            if len(trouble.seeds) > MOST_SEEDS
            else ""
        )
        first = ""
        if trouble.seeds:
            words = replay_command(result.run.run_id, trouble.scenario, trouble.seeds[0])
            line = f"<li><span>seed {trouble.seeds[0]}</span>{command(words)}</li>"
            first = f'<div class="worst"><ul>{line}</ul></div>'
        parts.append(
            f'<article class="card bad"><header>{chip("bad", trouble.kind)}'
            f"<h3>{escape(one_line(trouble.scenario, 120))}</h3></header>"
            f"<pre>{escape(visible(trouble.why, 1_500))}</pre>"
            f"{f'<p class=faint>Failed seeds: {seeds}{more}</p>' if seeds else ''}{first}</article>"
        )
    if not parts:
        return ""
    left = len(wrong) - MOST_TROUBLES
    more = f"<p>{left} more.</p>" if left > 0 else ""
    body = '<div class="broken">' + "\n".join(parts) + "</div>"
    return f'<section id="failed"><h2>What did not run</h2>{body}{more}</section>'


def measured(result: NightlyResult) -> str:
    """Return the plain figures of a run that was compared with nothing."""
    rows = [
        [
            f'<span class="of">{escape(scenario["name"][:120])}</span> {escape(name)}',
            number(figures["mean"]),
            number(figures["sd"], 3),
            str(figures["n"]),
            escape(figures["unit"][:24]),
        ]
        for scenario in report_document(result.run)["scenarios"]
        for name, figures in scenario["metrics"].items()
    ]
    heads = ("Metric", "Mean", "Standard deviation", "n", "Unit")
    return section("What was measured", table(heads, rows[:MOST_ROWS], words={4}), name="measured")


def scenarios(result: NightlyResult, rows: Rows) -> str:
    """Return one line a scenario with a square for each of its metrics."""
    run = result.run
    wrong = {trouble.scenario: trouble for trouble in troubles(run)}
    known = {scenario.name: scenario for scenario in run.samples.scenarios}
    squares: dict[str, list[str]] = {}
    for finding in rows.findings[:MOST_ROWS]:
        word = word_of(finding)
        said = escape(f"{one_line(finding.metric, 80)}: {WORDS[word]}")
        target = rows.anchors[finding.id]
        square = (
            f'<a class="{colour_of(word)}" href="#{target}" title="{said}" aria-label="{said}"></a>'
        )
        squares.setdefault(finding.scenario, []).append(square)
    lines = []
    for name in sorted({*known, *wrong, *squares, *run.expected}):
        found = known.get(name)
        state = wrong[name].kind if name in wrong else "ok" if found else "missing"
        lines.append(
            [
                escape(one_line(name, 120)),
                escape(one_line(found.identity.get("type", ""), 60)) if found else "",
                chip("good" if state == "ok" else "bad", state),
                str(len(found.samples) if found else 0),
                span(run.durations[name]) if name in run.durations else "-",
                f'<span class="squares">{"".join(squares.get(name, ()))}</span>',
            ]
        )
    heads = ("Scenario", "Type", "Played", "Seeds", "Took", "Metrics")
    listed = table(heads, lines, words={1, 2, 5}) if lines else ""
    return section("Scenarios", listed, name="scenarios")


def notes(result: NightlyResult) -> str:
    """Return what the scenarios say of themselves."""
    told = all_notes(result.run)
    lines = [
        f"<li><b>{escape(one_line(name, 120))}</b> {escape(note)}</li>"
        for name, note in told[:MOST_NOTED]
    ]
    left = len(told) - MOST_NOTED
    more = f'<p class="faint">{left} more are in latest.json.</p>' if left > 0 else ""
    listed = f'<ul class="notices">{"".join(lines)}</ul>{more}' if lines else ""
    return section("What the scenarios say", listed, name="said")


def origin(result: NightlyResult) -> Origin:
    """Return where all this comes from and how to make it again."""
    run, baseline, diff = result.run, result.baseline, result.diff
    facts: dict[str, str] = {
        "Run": f"{run.run_id} ({run.status})",
        "Suite": f"{run.suite_id} v{run.suite_version}",
        "Started, finished": f"{run.created_at} to {run.finished_at}",
        "Commit": (run.code.commit or "none") + (" with local changes" if run.code.dirty else ""),
        "Code hash": run.code.code_hash,
        "Subject": _short(run.subject),
        "Machine": _short(run.machine),
        "Seeds": _seeds(result),
    }
    if baseline is not None:
        facts |= {
            "Baseline": f"{baseline.id} from run {baseline.run_id}, {minute(baseline.created_at)}",
            "Approved": f"{baseline.approved_by}: {baseline.reason}",
            "Baseline hash": baseline.content_hash,
            "Accepted on purpose": ", ".join(baseline.accepted),
        }
    if diff is not None:
        facts["Method"] = (
            f"{diff.method}; {many(diff.n_tests, 'test')}, {diff.n_flagged} confirmed on fresh "
            f"seeds, alpha {diff.alpha:g}"
        )
    facts["Notes"] = "; ".join(run.notes)
    return Origin((run.command,), facts, plain(run.manifest))


def _short(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {item}" for key, item in sorted(plain(value).items()))


def _seeds(result: NightlyResult) -> str:
    fixed = sum(map(len, result.run.seeds.fixed.values()))
    fresh = sum(map(len, result.run.seeds.fresh.values()))
    return f"{fixed} fixed, {fresh} fresh (all listed in latest.json)" if fixed or fresh else ""
