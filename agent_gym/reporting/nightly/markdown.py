"""The night as a comment on a pull request: the answer first, the rest folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent_gym.evaluation.gate.diff import Finding
from agent_gym.reporting.nightly.documents import all_notes
from agent_gym.reporting.nightly.pairs import Pairs
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.verdict import (
    BROKEN,
    SAME_WORDS,
    UNJUDGED,
    WORDS,
    by_severity,
    counts,
    explanation,
    headline,
    light,
    severity,
    troubles,
    word_of,
)
from agent_gym.reporting.text import (
    SAME,
    chance,
    difference,
    interval,
    many,
    one_line,
    two_numbers,
)

MAX_CHARS = 60_000  # a comment may have 65,536
MAX_BROKEN, MAX_FOLDED, MAX_BETTER = 40, 150, 5
SIGNS = {"good": "✅", "unsure": "⚠️", "bad": "❌"}
HEADS = ("metric", "", "base", "new", "delta", "95 % interval of the loss", "p", "n")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:+-]*")
_SPECIAL = re.compile(r"[&<>|`*_\[\]()!@#~\\${}=\"']|://|www\.")


def markdown_summary(result: NightlyResult) -> str:
    """Return the comment; longer ones than a comment may be are cut and say so."""
    pairs = Pairs(result)
    findings = by_severity(result.diff.findings if result.diff else ())
    blocks = [_first(result), _second(result), *_failed(result)]
    broken = [each for each in findings if word_of(each) in BROKEN]
    if broken:
        blocks += [_table(broken[:MAX_BROKEN]), _left_out(len(broken) - MAX_BROKEN)]
        first, *more = _replays(broken[:MAX_BROKEN], pairs) or ("",)
        blocks.append(f"Play the worst seed again:\n\n{_shell([first])}" if first else "")
        blocks.append(_fold("Other bad seeds", _shell(more)))
    blocks.append(_better(findings))
    for title, words in (
        ("improvements", ("improvement",)),
        ("not judged", (*UNJUDGED, "quarantined")),
        ("without a difference", SAME_WORDS),
    ):
        found = [each for each in findings if word_of(each) in words]
        if found:
            rows = _table(found[:MAX_FOLDED]), _left_out(len(found) - MAX_FOLDED)
            blocks.append(_fold(f"{len(found)} {title}", "\n\n".join(filter(None, rows))))
    if result.diff and result.diff.notices:
        lines = (
            f"- {code(notice.id)} {notice.kind.replace('_', ' ')}: {cell(notice.why)}"
            for notice in result.diff.notices[:MAX_BROKEN]
        )
        blocks.append(_fold(many(len(result.diff.notices), "notice"), "\n".join(lines)))
    told = all_notes(result.run)
    noted = [f"- {code(name)}: {cell(note)}" for name, note in told[:MAX_FOLDED]]
    noted += [f"- {len(told) - MAX_FOLDED} more are in `latest.json`"] * (len(told) > MAX_FOLDED)
    blocks.append(_fold(f"{many(len(told), 'note')} of the scenarios", "\n".join(noted)))
    blocks.append(_fold("Where this comes from", _provenance(result)))
    return _fitting([block for block in blocks if block])


def cell(text: str, limit: int = 300) -> str:
    """Return outside text that Markdown and HTML take as text, in one line.

    Example:
        >>> cell("a|b <i>")
        'a&#124;b &#60;i&#62;'
    """
    return _SPECIAL.sub(_entities, one_line(text, limit))


def code(text: str) -> str:
    """Return a name as code where it is a plain one, else as text."""
    shown = one_line(text, 160)
    return f"`{shown}`" if _PLAIN.fullmatch(shown) else cell(shown)


def _entities(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(sign)};" for sign in found.group())


def _first(result: NightlyResult) -> str:
    plant = one_line(str(result.run.subject.get("plant") or ""), 64)
    said = f"self-test with the fault {plant}: {headline(result)}" if plant else headline(result)
    return f"{SIGNS[light(result)]} **Agent Gym: {cell(said, 400)}**"


def _second(result: NightlyResult) -> str:
    found = counts(result)
    same = found["unchanged"] + found["no_difference_seen"]
    figures = (
        many(found["improvement"], "improvement") if result.diff else "",
        f"{same} of {many(sum(found.values()), 'metric')} without a difference"
        if result.diff
        else "",
        f"suite {code(result.run.suite_id)} v{result.run.suite_version}",
        f"commit {code(result.run.code.commit[:12])}" if result.run.code.commit else "",
    )
    why = explanation(result)
    return " · ".join(filter(None, figures)) + (f"\n\n{cell(why, 600)}" if why else "")


def _failed(result: NightlyResult) -> Iterable[str]:
    wrong = troubles(result.run)
    if wrong:
        yield "\n".join(
            f"- **{trouble.kind}** {code(trouble.scenario)}: {cell(trouble.why)}"
            for trouble in wrong[:MAX_BROKEN]
        )
        yield _left_out(len(wrong) - MAX_BROKEN)


def _table(findings: Sequence[Finding]) -> str:
    rows = [_row(finding) for finding in findings]
    rule = "|---|---|--:|--:|--:|:-:|--:|--:|"
    return "\n".join((f"| {' | '.join(HEADS)} |", rule, *rows))


def _row(finding: Finding) -> str:
    base, cand = two_numbers(finding.base, finding.cand)
    unit = f" {cell(finding.unit, 40)}" if finding.unit else ""
    word = WORDS[word_of(finding)]
    cells = (
        code(finding.id),
        f"**{word}**, critical" if severity(finding) == "critical" else word,
        base + unit,
        cand + unit,
        change(finding),
        interval(finding.ci95),
        chance(finding.p_holm if finding.p_holm is not None else finding.p),
        str(finding.n),
    )
    return f"| {' | '.join(cells)} |"


def change(finding: Finding) -> str:
    """Return the change of a metric; ``~`` where no difference was seen."""
    if word_of(finding) in SAME_WORDS:
        return SAME
    return difference(finding.delta_rel, finding.delta_abs)


def _better(findings: Sequence[Finding]) -> str:
    """Return what got better in a line; the table of all is folded."""
    found = [each for each in findings if word_of(each) == "improvement"]
    said = [
        f"{code(each.id)} {change(each)}" + (f" {interval(each.ci95)}" if each.ci95 else "")
        for each in found[:MAX_BETTER]
    ]
    if len(found) > MAX_BETTER:
        said.append(f"and {len(found) - MAX_BETTER} more")
    return f"Better: {', '.join(said)}" if said else ""


def _replays(findings: Sequence[Finding], pairs: Pairs) -> list[str]:
    """Return the commands that play the worst seeds again, the worst metric's first."""
    return list(
        dict.fromkeys(worst.replay for finding in findings for worst in pairs.worst(finding))
    )


def _shell(lines: Sequence[str]) -> str:
    return "```sh\n" + "\n".join(lines) + "\n```" if lines else ""


def _provenance(result: NightlyResult) -> str:
    run, baseline = result.run, result.baseline
    facts = {
        "run": run.run_id,
        "commit": (run.code.commit or "none") + (" with changes" if run.code.dirty else ""),
        "code": run.code.code_hash,
        "baseline": f"{baseline.id} of {baseline.created_at[:10]}" if baseline else "none",
        "reason of the baseline": baseline.reason if baseline else "",
        "method": result.diff.method if result.diff else "",
        "command": run.command,
    }
    return "\n".join(f"- {name}: {code(value)}" for name, value in facts.items() if value)


def _fold(title: str, body: str) -> str:
    if not body:
        return ""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _left_out(count: int) -> str:
    return f"... and {count} more, see `nightly_diff.json`" if count > 0 else ""


def _fitting(blocks: list[str]) -> str:
    """Return as many whole blocks as fit: half a table or an open fold would hide the rest."""
    note = "... cut here, the rest is in `nightly_diff.json`"
    kept: list[str] = []
    room = MAX_CHARS - len(note) - 4
    for block in blocks:
        if len(block) + 2 > room:
            kept.append(note)
            break
        kept.append(block)
        room -= len(block) + 2
    return "\n\n".join(kept) + "\n"
