"""The page of a run: the answer first, then the evidence, then where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent_gym.evaluation.page import (
    Answer,
    Origin,
    Page,
    chip,
    section,
    table,
    tiles,
    whole_page,
)
from agent_gym.reporting.canvas import plot
from agent_gym.reporting.loop.plots import duel, rounds_curve
from agent_gym.reporting.loop.report import Asked, LoopReport
from agent_gym.reporting.text import number, one_line

SHORT = 12
HEADLINES = {
    "promoted": "A better model serves now",
    "not promoted": "The model that served goes on serving",
    "rolled back": "A new model was taken back",
    "control passed": "A control that knows nothing passed the gate; it does not serve",
    "skipped": "There was not enough to train on",
    "unchanged": "Training changed nothing",
    "not learnable": "What was recorded cannot be learned from",
    "not trained": "Agents played; training was not asked for",
}


def html_page(report: LoopReport) -> str:
    """Return the page; equal reports give equal text."""
    headline = HEADLINES.get(report.verdict, report.verdict)
    sections = (
        section("Champion against challenger", _duel(report)),
        section("The gate", _asked(report.checks)),
        section("How it learned", _curve(report), _rounds(report)),
        section(
            "Readiness",
            _compared("before playing", report.readiness_before),
            _compared("after playing", report.readiness_after),
        ),
        section("Who answers now", _answers(report)),
        section("What happened to models", _history(report)),
    )
    figures = tiles([(value, text) for text, value in report.figures])
    page = Page(
        kind="Harness",
        about=report.run_id,
        title=f"{headline} - {report.run_id}",
        answer=Answer(report.light, report.verdict, headline, (report.reason,), figures),
        sections=sections,
        origin=Origin(
            (report.command,),
            {"Champion before": report.champion, "Challenger": report.challenger or "none"},
            report.manifest,
        ),
    )
    return whole_page(page)


def _duel(report: LoopReport) -> str:
    found = report.pairs
    won = sum(pair.challenger > pair.champion for pair in found)
    caption = (
        f"Each line is one of {len(found)} sealed snapshots, played by both with their best "
        f"actions. The challenger is ahead on {won}."
    )
    label = "Returns of champion and challenger on every sealed snapshot"
    return plot("duel", label, lambda width: duel(found, width=width), caption)


def _curve(report: LoopReport) -> str:
    caption = (
        "Drawn actions on the training snapshots; the duel above has the best actions on sealed "
        "ones."
    )
    label = "Mean return of the recorded trajectories of each round"
    return plot("rounds", label, lambda width: rounds_curve(report.rounds, width=width), caption)


def _rounds(report: LoopReport) -> str:
    if not report.rounds:
        return ""
    rows = [
        [
            str(at),
            f"{one.trajectories:,}",
            number(one.mean_return),
            f"{one.groups_kept:,} / {one.groups_dropped:,}",
            f"{one.steps:,}",
            f"<code>{escape(one.model[:SHORT])}</code>",
        ]
        for at, one in enumerate(report.rounds, 1)
    ]
    heads = (
        "Round",
        "Trajectories",
        "Mean return",
        "Groups learned from / all equal",
        "Steps of the optimiser",
        "Model",
    )
    return table(heads, rows)


def _asked(checks: Sequence[Asked]) -> str:
    if not checks:
        return ""
    rows = [
        [escape(one_line(one.name.replace("_", " "), 80)), _chip(one), _words(one)]
        for one in checks
    ]
    return table(("Question", "Passed", "Found"), rows, words={1, 2})


def _compared(when: str, checks: Sequence[Asked]) -> str:
    if not checks:
        return ""
    return f"<h3>{escape(when.capitalize())}</h3>{_asked(checks)}"


def _chip(one: Asked) -> str:
    return chip("good", "yes") if one.passed else chip("bad", "no")


def _words(one: Asked) -> str:
    return escape(one_line(one.words, 600))


def _answers(report: LoopReport) -> str:
    rows = [
        [escape(one_line(agent, 80)), f"<code>{escape(model[:SHORT])}</code>"]
        for agent, model in sorted(report.answers.items())
    ]
    return table(("Agent", "Model that answered"), rows, words={1}) if rows else ""


def _history(report: LoopReport) -> str:
    rows = [
        [escape(one_line(what, 80)), escape(one_line(who, 200))] for what, who in report.history
    ]
    return table(("What", "Of"), rows, words={1}) if rows else ""
