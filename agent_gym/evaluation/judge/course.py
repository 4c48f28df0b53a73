"""From a trajectory to a record: the posts of the time, then what was done and said, tick by tick.

Posts come first because all members of a group met the same ones: they are the beginning that is
shown once.

Hindsight stays outside. Of what was seen, only named figures of open markets and the posts get in;
not the account, nor what a position earned, nor how a question was answered, nor the reward. Texts
that an agent was shown hold all of that, so only their posts are taken. A later price is in the
record, as it was there for the agent to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.core.types import FloatArray, Step
from agent_gym.evaluation.judge.prompt import shortened
from agent_gym.evaluation.judge.records import Candidate, Message, RecordConfig

POST = "- ["  # how the text of an observation begins a post
OPEN, NEWS = "open", "news"


@dataclass(frozen=True, slots=True)
class Course:
    """What is known of a trajectory; ``said`` and ``texts`` hold one entry a tick."""

    id: str
    feature_names: tuple[str, ...]
    observations: FloatArray | None
    actions: FloatArray
    texts: Sequence[str | None]
    said: Sequence[str | None]
    outcome: dict[str, Any] = field(default_factory=dict)


def candidate_of(course: Course, config: RecordConfig) -> Candidate:
    """Return a trajectory as a judge reads it."""
    markets = _markets(course)
    posts: list[Message] = []
    decisions: list[Message] = []
    before = np.zeros(course.actions.shape[1])
    for t, action in enumerate(course.actions):
        news = [*markets.news(t, config.news_figures), *_posts(course.texts[t])]
        if news:
            posts.append(_message("seen", t, "\n".join(news), config))
        moved = np.flatnonzero((action != before) & ~(np.isnan(action) & np.isnan(before)))
        before = action
        if moved.size:
            lines = [markets.move(t, int(m), float(action[m]), config.figures) for m in moved]
            decisions.append(_message("did", t, "\n".join(lines), config))
        if words := course.said[t]:
            decisions.append(_message("said", t, words, config))
    messages = [*_within(posts, config.longest_part), *_within(decisions, config.longest_part)]
    if config.hindsight:
        told = ", ".join(f"{name} {_figure(value)}" for name, value in course.outcome.items())
        messages.append(Message(kind="outcome", text=told))
    return Candidate(id=course.id, messages=tuple(messages))


def course_of_steps(
    name: str, feature_names: tuple[str, ...], steps: Sequence[Step], outcome: dict[str, Any]
) -> Course:
    """Return what was played just now."""
    return Course(
        id=name,
        feature_names=feature_names,
        observations=np.array([step.before.features for step in steps]),
        actions=np.array([np.atleast_1d(step.decision.action) for step in steps], dtype=float),
        texts=[step.before.text for step in steps],
        said=[step.decision.rationale for step in steps],
        outcome=outcome,
    )


@dataclass(frozen=True, slots=True)
class _Markets:
    """Where the figures of markets stand among the columns."""

    names: tuple[str, ...]
    columns: dict[str, dict[str, int]]
    observations: FloatArray | None

    def news(self, t: int, figures: tuple[str, ...]) -> list[str]:
        """Return a line for each open market with news."""
        return [
            f"{name}: {told}"
            for name in self.names
            if self._now(t, name, NEWS) and (told := self._told(t, name, figures))
        ]

    def move(self, t: int, m: int, target: float, figures: tuple[str, ...]) -> str:
        """Return a new target in words, and how the market stood."""
        told = self._told(t, self.names[m], figures)
        return f"{self.names[m]} {_figure(target)}" + (f" at {told}" if told else "")

    def _told(self, t: int, name: str, figures: tuple[str, ...]) -> str:
        """Return figures of a market; nothing once it is closed: they give its answer away."""
        if not self._now(t, name, OPEN):
            return ""
        known = [one for one in figures if one in self.columns[name]]
        return ", ".join(f"{one} {self._now(t, name, one):.3f}" for one in known)

    def _now(self, t: int, name: str, feature: str) -> float:
        place = self.columns.get(name, {}).get(feature)
        if place is None or self.observations is None:
            return 0.0
        return float(self.observations[t, place])


def _markets(course: Course) -> _Markets:
    """Find the markets: what comes before the stroke in the names of columns, in their order."""
    columns: dict[str, dict[str, int]] = {}
    for place, name in enumerate(course.feature_names):
        market, stroke, feature = name.rpartition("/")
        if stroke:
            columns.setdefault(market, {})[feature] = place
    width = course.actions.shape[1]
    traded = [name for name, at in columns.items() if OPEN in at]
    named = traded if len(traded) == width else [f"action {m + 1}" for m in range(width)]
    return _Markets(tuple(named), columns, course.observations)


def _posts(text: str | None) -> list[str]:
    return [line for line in (text or "").splitlines() if line.startswith(POST)]


def _message(kind: Any, t: int, text: str, config: RecordConfig) -> Message:
    return Message(kind=kind, text=shortened(f"[tick {t}] {text}", config.longest_text))


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return "invalid" if value != value else f"{value:+.4g}"
    return str(value)


def _within(messages: list[Message], most: int) -> list[Message]:
    """Return what fits: as much of the beginning as of the end, and how much is missing between."""
    if sum(len(one.text) for one in messages) <= most:
        return messages
    head: list[Message] = []
    tail: list[Message] = []
    left = most
    front, back = 0, len(messages)
    while front < back:
        at_front = len(head) <= len(tail)
        one = messages[front if at_front else back - 1]
        left -= len(one.text)
        if left < 0:
            break
        if at_front:
            head.append(one)
            front += 1
        else:
            tail.append(one)
            back -= 1
    gap = Message(kind="seen", text=f"[{back - front} messages left out]")
    return [*head, gap, *reversed(tail)]
