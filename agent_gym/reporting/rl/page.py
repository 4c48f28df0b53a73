"""The page of a training: how good it is, how it learned, and its videos inside the page."""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.core.errors import DataError
from agent_gym.evaluation.page import Own, Page, section, whole_page
from agent_gym.reporting.canvas import plot, steps_text
from agent_gym.reporting.rl.compare_plots import comparison, distributions, profiles, survival
from agent_gym.reporting.rl.curves import score_of
from agent_gym.reporting.rl.plots import Mark, final_distribution, learning_curves, losses
from agent_gym.reporting.rl.published import SOLVED
from agent_gym.reporting.rl.runs import Arm
from agent_gym.reporting.rl.sections import (
    Shown,
    answer,
    arms_table,
    origin,
    reached_note,
    seeds_table,
    settings,
    videos,
)
from agent_gym.reporting.rl.verdict import published_for, verdict_of
from agent_gym.reporting.text import many, one_line

BAND = "Line: interquartile mean over seeds. Shade: 95 % bootstrap interval of it. "
MOST_ARMS = 12


def html_page(arms: Sequence[Arm], shown: Sequence[Shown] = ()) -> str:
    """Return the page; equal runs give equal text, and it stays below 5 MB.

    Args:
        arms: What was trained, one or several configs.
        shown: Videos and where they lie.
    """
    if not arms:
        raise DataError("there is nothing to report", expected="at least one arm")
    best = best_arm(arms)
    found = verdict_of(best)
    drawn = list(arms[:MOST_ARMS])  # more lines cannot be told apart; the tables have them all
    sections = (
        section("Arms", arms_table(arms) if len(arms) > 1 else ""),
        _curve(drawn),
        section("What it looks like", videos(shown), note=_VIDEO_NOTE),
        _compared(drawn) if len(drawn) > 1 else "",
        section("Seeds", seeds_table(arms), note=reached_note(best)),
        _final(drawn) if len(drawn) == 1 else "",
        section("Inside the learner", _losses(drawn)),
        section("Settings", settings(arms)),
    )
    seeds = many(sum(len(arm.runs) for arm in arms), "seed")
    page = Page(
        kind="Training",
        about=f"{_subject(arms)}, {seeds}, {steps_text(arms[0].steps)} steps",
        title=f"{found.headline} - {_subject(arms)}",
        answer=answer(best, found, len(arms) - 1),
        sections=sections,
        origin=origin(arms),
    )
    return whole_page(page, Own(sources=("media-src data:",)))


def best_arm(arms: Sequence[Arm]) -> Arm:
    """Return the arm with the highest score, the first of equal ones."""
    scores = [score_of(arm) for arm in arms]
    return arms[max(range(len(arms)), key=lambda at: _height(scores[at]))]


def marks_for(arms: Sequence[Arm]) -> list[Mark]:
    """Return the levels that are drawn: what was published, and what counts as solved."""
    known = {published_for(arm) for arm in arms}
    marks = []
    if len(known) == 1 and None not in known:
        figure = next(iter(known))
        if figure is not None:
            marks.append(
                Mark(
                    figure.mean, f"published: {figure.mean:.0f} at {steps_text(figure.steps)} steps"
                )
            )
    if all(arm.is_lander for arm in arms):
        marks.append(Mark(SOLVED, f"solved: {SOLVED:g}"))
    return marks


_VIDEO_NOTE = (
    "The best, the median and the worst final episode of all seeds, each played by the kept model "
    "of its seed."
)


def _height(score: object) -> float:
    value = getattr(score, "iqm", None)
    return float("-inf") if value is None else float(value)


def _subject(arms: Sequence[Arm]) -> str:
    first = arms[0]
    if len(arms) > 1:
        return f"{many(len(arms), 'arm')} on {one_line(first.env, 60)}"
    return f"{first.algo.upper()} on {one_line(first.env, 60)}"


def _curve(arms: Sequence[Arm]) -> str:
    marks, several = marks_for(arms), len(arms) > 1
    thin = "" if several else "Thin lines: each seed. "
    caption = f"{BAND}{thin}Greedy episodes in an environment apart from training."
    label = "Return of greedy episodes against steps of training"
    drawn = plot("curve", label, lambda w: learning_curves(arms, width=w, marks=marks), caption)
    return section("How it learned", drawn)


def _losses(arms: Sequence[Arm]) -> str:
    label = "Losses and other figures of the learner against steps of training"
    caption = "Line: median of the seeds. Shade: from the lowest to the highest seed."
    return plot("losses", label, lambda w: losses(arms, width=w), caption)


def _final(arms: Sequence[Arm]) -> str:
    arm, marks = arms[0], marks_for(arms)
    if not arm.finished:
        return ""
    label = "Histogram of the returns of the final episodes"
    caption = "Fresh episodes after training, all seeds together, greedy."
    drawn = plot("final", label, lambda w: final_distribution(arm, width=w, marks=marks), caption)
    return section("Final episodes", drawn)


def _compared(arms: Sequence[Arm]) -> str:
    marks = marks_for(arms)
    ready = [arm for arm in arms if arm.finished]
    if not ready:
        return ""
    parts = [
        plot(
            "scores",
            "Interquartile mean of each arm with its interval",
            lambda w: comparison(arms, width=w, marks=marks),
            "Diamond: interquartile mean. Bar: 95 % interval. Dots: seeds.",
        ),
        plot(
            "finals",
            "Final episodes of each arm",
            lambda w: distributions(arms, width=w, marks=marks),
        ),
        plot(
            "profiles",
            "Share of final episodes above each return",
            lambda w: profiles(arms, width=w),
            "Higher is better. Shade: 95 % over seeds.",
        ),
    ]
    if all(arm.is_lander for arm in arms):
        parts.append(
            plot(
                "reached",
                f"Share of seeds that have reached {SOLVED:g} by each step",
                lambda w: survival(arms, SOLVED, width=w),
                "Kaplan-Meier. A cross is a seed whose training ended before it got there.",
            )
        )
    return section("Arms beside each other", *parts)
