"""The parts of the page that speak of the night as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from agent_gym.core.files import to_json
from agent_gym.reporting.nightly.documents import plain, report_document, scenario_notes
from agent_gym.reporting.nightly.rows import MARKS, MOST_ROWS, Rows, colour_of, command
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


def banner(result: NightlyResult) -> str:
    """Return the answer, why, and the counts."""
    colour, found = light(result), counts(result)
    run, wrong = result.run, troubles(result.run)
    last, plant = result.last_success_at, planted(result)
    facts = [
        many(len(run.samples.scenarios), "scenario"),
        _metrics(result),
        f"commit {one_line(run.code.commit or 'none')[:12]}"
        + (" + changes" if run.code.dirty else ""),
        f"against {one_line(result.baseline.id, 64)}" if result.baseline else "no baseline",
        span(max(0.0, epoch_s(run.finished_at) - epoch_s(run.created_at))),
        f"last good night {minute(last)}" if last and colour != "good" else "",
    ]
    said = escape(" \N{MIDDLE DOT} ".join(fact for fact in facts if fact))
    failed = sum(found[word] for word in ("error", "missing_in_new", "incomparable"))
    unjudged = sum(found[word] for word in (*UNJUDGED, "quarantined"))
    tiles = (
        ("bad", found["regression"], "worse", "#broke"),
        ("bad", max(failed, len(wrong)), "failed or missing", "#failed" if wrong else "#broke"),
        ("unsure", unjudged, "not judged", "#all"),
        ("good", found["improvement"], "better", "#all"),
        ("same", sum(found[word] for word in SAME_WORDS), "no difference", "#all"),
    )
    cards = "".join(_tile(*tile) for tile in tiles)
    listed = f'\n<ul class="tiles">{cards}</ul>' if result.diff else ""
    why, answer = explanation(result), f"{ANSWERS[colour]} tonight"
    return (
        f'<section class="banner {colour}" id="verdict"><div class="answer">'
        f'<span class="sign" aria-hidden="true">{MARKS[colour]}</span>'
        f'<div><p class="word">{f"Self-test: {ANSWERS[colour]}" if plant else answer}</p>'
        f"<h1>{escape(headline(result))}</h1>{_planted_text(plant)}"
        f"{f'<p>{escape(why)}</p>' if why else ''}"
        f'<p class="faint small">{said}</p></div></div>{listed}</section>'
    )


def planted(result: NightlyResult) -> str:
    """Return the fault that was put in on purpose, or nothing."""
    return one_line(str(result.run.subject.get("plant") or ""), 64)


def _planted_text(plant: str) -> str:
    if not plant:
        return ""
    said = f"The fault {plant} was planted to test the gate; this run says nothing of the code"
    return f"<p><b>{escape(said)}.</b></p>"


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
            f'<article class="card bad"><header><span class="chip bad"><i>{MARKS["bad"]}</i>'
            f"{trouble.kind}</span><h3>{escape(one_line(trouble.scenario, 120))}</h3></header>"
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
    lines: list[str] = []
    for scenario in report_document(result.run)["scenarios"]:
        for name, figures in scenario["metrics"].items():
            if len(lines) < MOST_ROWS:
                shown = (number(figures["mean"]), number(figures["sd"], 3), str(figures["n"]))
                cells = "".join(f"<td>{cell}</td>" for cell in shown)
                title = f'<span class="of">{escape(scenario["name"][:120])}</span> '
                unit = escape(figures["unit"][:24])
                lines.append(
                    f'<tr><th scope="row">{title}{escape(name)}</th>{cells}'
                    f'<td class="text">{unit}</td></tr>'
                )
    heads = "".join(
        f'<th scope="col"{kind}>{text}</th>'
        for text, kind in (
            ("Metric", ""),
            ("Mean", ' class="num"'),
            ("Standard deviation", ' class="num"'),
            ("n", ' class="num"'),
            ("Unit", ""),
        )
    )
    return (
        '<section id="measured"><h2>What was measured</h2><div class="wide"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></section>"
    )


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
        kind = escape(one_line(found.identity.get("type", ""), 60)) if found else ""
        state = wrong[name].kind if name in wrong else "ok" if found else "missing"
        took = span(run.durations[name]) if name in run.durations else "-"
        colour = "good" if state == "ok" else "bad"
        lines.append(
            f'<tr><th scope="row">{escape(one_line(name, 120))}</th><td class="text">{kind}</td>'
            f'<td class="text"><span class="chip {colour}"><i>{MARKS[colour]}</i>'
            f"{state}</span></td>"
            f"<td>{len(found.samples) if found else 0}</td><td>{took}</td>"
            f'<td class="text squares">{"".join(squares.get(name, ()))}</td></tr>'
        )
    if not lines:
        return ""
    heads = "".join(
        f'<th scope="col"{" class=num" if text in ("Seeds", "Took") else ""}>{text}</th>'
        for text in ("Scenario", "Type", "Played", "Seeds", "Took", "Metrics")
    )
    body = "\n".join(lines)
    return (
        '<section id="scenarios"><h2>Scenarios</h2><div class="wide"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def notes(result: NightlyResult) -> str:
    """Return what the scenarios say of themselves."""
    lines = [
        f"<li><b>{escape(one_line(each.name, 120))}</b> {escape(note)}</li>"
        for each in sorted(result.run.samples.scenarios, key=lambda found: found.name)
        for note in scenario_notes(each.samples)
    ]
    if not lines:
        return ""
    left = len(lines) - MOST_NOTED
    more = f'<p class="faint">{left} more are in latest.json.</p>' if left > 0 else ""
    return (
        '<section id="said"><h2>What the scenarios say</h2>'
        f'<ul class="notices">{"".join(lines[:MOST_NOTED])}</ul>{more}</section>'
    )


def provenance(result: NightlyResult) -> str:
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
    lines = "".join(
        f'<tr><th scope="row">{name}</th><td class="text">{escape(one_line(value, 600))}</td></tr>'
        for name, value in facts.items()
        if value
    )
    manifest = escape(visible(to_json(plain(run.manifest)), 15_000)) if run.manifest else ""
    folded = (
        f"<details><summary>Manifest</summary><pre>{manifest}</pre></details>" if manifest else ""
    )
    return (
        '<section id="provenance"><h2>Where this comes from</h2><div class="box">'
        f"<p>{command(visible(run.command, 2_000))}</p>"
        f'<div class="wide"><table>{lines}</table></div>{folded}</div></section>'
    )


def _short(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {item}" for key, item in sorted(plain(value).items()))


def _seeds(result: NightlyResult) -> str:
    fixed = sum(map(len, result.run.seeds.fixed.values()))
    fresh = sum(map(len, result.run.seeds.fresh.values()))
    return f"{fixed} fixed, {fresh} fresh (all listed in latest.json)" if fixed or fresh else ""
