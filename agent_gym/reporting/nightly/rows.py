"""The table of all metrics and the cards of what broke, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent_gym.evaluation.gate.diff import Finding, Word
from agent_gym.evaluation.page import Light, command
from agent_gym.evaluation.page import chip as label_of
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.reporting.nightly.documents import metric_means
from agent_gym.reporting.nightly.markdown import change
from agent_gym.reporting.nightly.pairs import Pairs, Worst
from agent_gym.reporting.nightly.plots import history, large_strip, points_of, strip
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.verdict import (
    BROKEN,
    SAME_WORDS,
    UNJUDGED,
    WORDS,
    by_severity,
    severity,
    word_of,
)
from agent_gym.reporting.text import (
    DASH,
    chance,
    finite,
    interval,
    minute,
    number,
    one_line,
    two_numbers,
    visible,
)

MOST_ROWS, MOST_PLOTS, MOST_CARDS, MOST_LISTED = 1_000, 220, 30, 100
HEADS = (
    ("name", "Metric"),
    ("rank", "Verdict"),
    ("base", "Baseline"),
    ("cand", "Tonight"),
    ("change", "Change"),
    ("loss", "Loss, 95 % interval"),
    ("p", "p"),
    ("n", "n"),
    ("", "Seed by seed"),
)
NUMERIC = ("base", "cand", "change", "loss", "p", "n")


def colour_of(word: Word) -> Light:
    """Return the class of a word: bad, unsure, good or same."""
    if word in BROKEN:
        return "bad"
    if word in UNJUDGED or word == "quarantined":
        return "unsure"
    return "same" if word in SAME_WORDS else "good"


def chip(word: Word, text: str = "") -> str:
    """Return a word as a coloured label that is not told by its colour alone."""
    return label_of(colour_of(word), text or WORDS[word])


class Rows:
    """Makes the parts of the page that speak of single metrics."""

    def __init__(self, result: NightlyResult) -> None:
        self._result = result
        self._pairs = Pairs(result)
        self.findings = by_severity(result.diff.findings if result.diff else ())
        self.broken = [each for each in self.findings if word_of(each) in BROKEN]
        self._metrics = {
            (scenario.name, metric.name): metric
            for scenario in result.run.samples.scenarios
            for metric in scenario.metrics
        }
        self._means = metric_means(result.run)
        self.anchors = {finding.id: f"m{at}" for at, finding in enumerate(self.findings)}

    def cards(self) -> str:
        """Return what broke, the worst first; what has nothing to show is only listed."""
        told = [each for each in self.broken if each.why or each.worst_seeds or _has_figures(each)]
        cards = "\n".join(self._card(finding) for finding in told[:MOST_CARDS])
        items = "".join(
            f'<li>{chip(word_of(each))} <a href="#{self.anchors[each.id]}">{_name(each)}</a></li>'
            for each in [each for each in self.broken if each not in told][:MOST_LISTED]
        )
        listed = f'<ul class="lost-list">{items}</ul>' if items else ""
        return f'<div class="broken">{cards}</div>{listed}'

    def _card(self, finding: Finding) -> str:
        base, cand = two_numbers(finding.base, finding.cand)
        word = word_of(finding)
        label = f"{WORDS[word]}, critical" if severity(finding) == "critical" else WORDS[word]
        unit = escape(visible(finding.unit, 40))
        figures = (
            ""
            if base == cand == DASH
            else (
                f'<p class="figures"><b class="{"lost" if word == "regression" else ""}">'
                f"{escape(change(finding))}</b> "
                f"<span>{base} \N{RIGHTWARDS ARROW} {cand} {unit}</span></p>"
            )
        )
        return "\n".join(
            (
                f'<article class="card {colour_of(word)}"><header>{chip(word, label)}',
                f"<h3>{_name(finding)}</h3></header>{figures}",
                f"<p>{escape(one_line(finding.why, 400))}</p>" if finding.why else "",
                f'<p class="faint small">{self._evidence(finding)}</p>',
                large_strip(finding, self._pairs.of(finding)),
                _worst(self._pairs.worst(finding)),
                "</article>",
            )
        )

    def _evidence(self, finding: Finding) -> str:
        parts = [
            f"decided by {finding.stage}",
            f"n = {finding.n}" if finding.n else "",
            f"loss {number(finding.loss)}, 95 % {interval(finding.ci95)}"
            if finding.ci95 is not None
            else "",
            f"p {chance(finding.p)}" if finding.p is not None else "",
            f"p {chance(finding.p_holm)} after Holm" if finding.p_holm is not None else "",
            f"baseline better on {number(100.0 * finding.effect, 3)} % of seeds"
            if finite(finding.effect) is not None and finding.effect is not None
            else "",
            _tolerated(finding),
        ]
        return escape(" \N{MIDDLE DOT} ".join(part for part in parts if part))

    def table(self) -> str:
        """Return the table of all metrics; each has a second row with its details."""
        heads = "".join(_head(key, text) for key, text in HEADS)
        shown = self.findings[:MOST_ROWS]
        bodies = "\n".join(self._body(at, finding) for at, finding in enumerate(shown))
        return (
            '<div class="wide" tabindex="0"><table id="metrics">\n'
            f"<thead><tr>{heads}</tr></thead>\n{bodies}\n</table></div>"
        )

    def _body(self, at: int, finding: Finding) -> str:
        word, plotted = word_of(finding), at < MOST_PLOTS
        pairs = self._pairs.of(finding) if plotted else []
        base, cand = two_numbers(finding.base, finding.cand)
        unit = escape(visible(finding.unit, 24))
        changed = word not in SAME_WORDS and word not in ("underpowered", "quarantined")
        anchor = self.anchors[finding.id]
        keys = _sort_keys(at, finding)
        cells = (
            f'<th scope="row"><button type="button" class="more" aria-expanded="false" '
            f'aria-controls="d{at}">{_name(finding)}</button></th>',
            f'<td class="text">{chip(word)}</td>',
            f'<td>{base}</td><td>{cand} <span class="faint">{unit}</span></td>',
            f'<td class="{_tone(finding)}">{escape(change(finding))}</td>',
            f"<td>{interval(finding.ci95)}</td>",
            f"<td>{chance(finding.p_holm if finding.p_holm is not None else finding.p)}</td>",
            f"<td>{finding.n}</td><td>{strip(finding, pairs)}</td>",
        )
        return (
            f'<tbody id="{anchor}" data-changed="{int(changed)}" data-kind="{colour_of(word)}" '
            f"{keys}><tr>{''.join(cells)}</tr>"
            f'<tr class="detail" id="d{at}" hidden><td colspan="{len(HEADS)}">'
            f"{self._detail(finding, plotted=plotted)}</td></tr></tbody>"
        )

    def _detail(self, finding: Finding, *, plotted: bool) -> str:
        metric = self._metrics.get((finding.scenario, finding.metric))
        drawn = ""
        if plotted and word_of(finding) not in BROKEN:  # broken ones are drawn on their cards
            drawn = large_strip(finding, self._pairs.of(finding))
        parts = (
            f"<p>{escape(_meaning(metric))}</p>" if metric else "",
            f"<p>{escape(one_line(finding.why, 400))}</p>" if finding.why else "",
            f'<p class="faint small">{self._evidence(finding)}{_mde(finding)}</p>',
            f'<div class="plots">{drawn}{self.history_of(finding) if plotted else ""}</div>',
            _worst(self._pairs.worst(finding)),
        )
        return "".join(parts)

    def history_of(self, finding: Finding) -> str:
        """Return the line of a metric's past nights, empty without a past."""
        mean = self._means.get((finding.scenario, finding.metric))
        run = self._result.run
        tonight = None if mean is None else (minute(run.created_at), mean)
        points = points_of(self._result.past, finding.id, tonight)
        return history(points, colour_of(word_of(finding)))


def _has_figures(finding: Finding) -> bool:
    return finite(finding.base) is not None and finite(finding.cand) is not None


def _name(finding: Finding) -> str:
    """Return both names in signs that wrap, whatever they hold."""
    scenario, metric = one_line(finding.scenario, 120), one_line(finding.metric, 120)
    return (
        f'<span class="of">{escape(scenario)}</span> <span class="metric">{escape(metric)}</span>'
    )


def _head(key: str, text: str) -> str:
    if not key:
        return f'<th scope="col">{text}</th>'
    kind = "" if key in NUMERIC else ' class="text"'
    return f'<th scope="col"{kind}><button type="button" data-sort="{key}">{text}</button></th>'


def _sort_keys(at: int, finding: Finding) -> str:
    ratio = finding.delta_rel if finding.delta_rel is not None else finding.delta_abs
    values = {
        "rank": float(at),
        "base": finding.base,
        "cand": finding.cand,
        "change": ratio if word_of(finding) not in SAME_WORDS else 0.0,
        "loss": finding.loss,
        "p": finding.p_holm if finding.p_holm is not None else finding.p,
        "n": float(finding.n),
    }
    known = ((name, finite(value)) for name, value in values.items())
    said = [f'data-{name}="{value:.9g}"' for name, value in known if value is not None]
    names = one_line(f"{finding.scenario} {finding.metric}", 250)
    return " ".join((f'data-name="{escape(names)}"', *said))


def _tone(finding: Finding) -> str:
    word = word_of(finding)
    return "lost" if word == "regression" else "won" if word == "improvement" else ""


def _tolerated(finding: Finding) -> str:
    if finding.must_be_zero:
        return "must be zero"
    if finding.tolerance_rel is None and finding.tolerance_abs is None:
        return ""
    rel = 100.0 * (finite(finding.tolerance_rel) or 0.0)
    unit = visible(finding.unit, 24)
    return f"tolerated {number(rel)} % and {number(finding.tolerance_abs)} {unit}".rstrip()


def _mde(finding: Finding) -> str:
    if finite(finding.mde) is None:
        return ""
    ought = f", ought to see {number(finding.required)}" if finite(finding.required) else ""
    return f" \N{MIDDLE DOT} smallest loss it would see: {number(finding.mde)}{ought}"


def _meaning(metric: Metric) -> str:
    better = "more is better" if metric.direction == "up" else "less is better"
    gates = "" if metric.gates else "; it never fails the gate"
    return f"{one_line(metric.meaning)} ({one_line(metric.unit, 40)}, {better}{gates})"


def _worst(seeds: Sequence[Worst]) -> str:
    lost = [each for each in seeds if each.loss is None or each.loss > 0.0]
    lines = []
    for each in lost or seeds:
        figures = ""
        if each.base is not None and each.cand is not None:
            base, cand = two_numbers(each.base, each.cand)
            figures = f" <span>{base} \N{RIGHTWARDS ARROW} {cand}</span>"
        lines.append(f"<li><span>seed {each.seed}{figures}</span>{command(each.replay)}</li>")
    if not lines:
        return ""
    title = "Worst seeds" if len(lines) > 1 else "Worst seed"
    return f'<div class="worst"><p class="label">{title}</p><ul>{"".join(lines)}</ul></div>'
