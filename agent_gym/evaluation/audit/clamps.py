"""Check: what sits on a bound most of the time, and so says nothing?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.types import FloatArray, Inspectable, Learner
from agent_gym.evaluation.audit.changed_bars import lesson
from agent_gym.evaluation.audit.finding import Finding, fine, note, unchecked, warning
from agent_gym.evaluation.audit.stream import Stream, are_targets, record, targets_of
from agent_gym.evaluation.audit.subject import Subject, weights_of

LESSON_BARS = 240


class ClampsConfig(Config):
    """What counts as sitting on a bound."""

    share: float = Field(default=0.2, gt=0, lt=1, description="of the time at one extreme value")
    least_values: int = Field(
        default=8, ge=2, description="distinct values from which a number counts as continuous"
    )
    rest: float = Field(
        default=0.95, gt=0, lt=1, description="of the later half at one extreme: it has settled"
    )


@register("check", "clamps", ClampsConfig)
class Clamps:
    """Counts how often signals, weights and actions are exactly at their extreme."""

    looks_for = "signals and weights that sit on a bound, where they cannot confirm anything"
    wants_agent = True

    def __init__(self, config: ClampsConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at an episode of the market, and at the weights after a lesson."""
        yield from self._signals(subject.stream)
        yield from self._weights(subject)
        yield from _actions(subject.stream)

    def _signals(self, stream: Stream) -> Iterator[Finding]:
        signals = _signals_of(stream)
        if not signals:
            yield unchecked("It gives no signals with its decisions.")
            return
        sound = []
        for name, values in signals.items():
            wrong = self._stuck(name, values)
            if wrong is None:
                sound.append(name)
            else:
                yield wrong
        if sound:
            yield fine(f"These signals move freely: {', '.join(sound)}.", signals=len(sound))

    def _stuck(self, name: str, values: FloatArray) -> Finding | None:
        distinct = np.unique(values)
        if distinct.size == 1:
            return warning(
                f"The signal {name} is {values[0]:g} at every moment: it was never filled, or "
                "cannot move. No claim about it is confirmed.",
                "Compute it, or do not report it",
                value=float(values[0]),
                moments=len(values),
            )
        later = values[len(values) // 2 :]
        ends = {
            bound: (float((later == bound).mean()), float((values == bound).mean()))
            for bound in distinct[[0, -1]].tolist()
        }
        bound = max(ends, key=lambda end: max(ends[end]))
        of_later, of_all = ends[bound]
        figures = {"share_at_bound": of_all, "share_of_later_half": of_later, "bound": bound}
        told = (
            f"The signal {name} sits at {bound:g}, its extreme, {of_all:.0%} of the time and "
            f"{of_later:.0%} of the later half."
        )
        if distinct.size < self._config.least_values:
            if of_later < self._config.rest:
                return None
            return note(
                f"{told} It has only {distinct.size} values, so that may be a state that lasts or "
                "a bound that holds it: how it moves is not confirmed.",
                **figures,
                moments=len(values),
            )
        if max(of_all, of_later) < self._config.share:
            return None
        return warning(
            f"{told} That it stays within its bounds is the clamp's doing and confirms nothing.",
            "Widen the bound, or see why it is driven there; do not report it as confirmed",
            **figures,
            moments=len(values),
        )

    def _weights(self, subject: Subject) -> Iterator[Finding]:
        agent = subject.ready()
        if not isinstance(agent, Inspectable):
            yield unchecked("It shows no weights.")
            return
        if not isinstance(agent, Learner):
            agent = subject.agent()
            bars = lesson(subject.bars, LESSON_BARS, subject.seed)
            record(subject.world(bars), agent, subject.seed)
        weights = weights_of(agent)
        stuck = {
            name: share for name, v in weights.items() if (share := self._at_end(v)) is not None
        }
        for name, share in stuck.items():
            yield warning(
                f"{share:.0%} of the numbers in {name} are exactly at its largest size: they are "
                "clipped, and have stopped learning.",
                "Widen the clip, or regularise instead",
                share_at_bound=share,
                numbers=int(weights[name].size),
            )
        if not stuck:
            yield fine("No weight sits on a bound.", weights=len(weights))

    def _at_end(self, value: NDArray[Any]) -> float | None:
        sizes = np.abs(value)
        if np.unique(sizes).size < 2 or value.size < self._config.least_values:
            return None
        share = float((sizes == sizes.max()).mean())
        return share if share >= self._config.share else None


def _signals_of(stream: Stream) -> dict[str, FloatArray]:
    found: dict[str, list[float]] = {}
    for step in stream.steps:
        for name, value in (step.decision.signals or {}).items():
            found.setdefault(name, []).append(float(value))
    return {name: np.array(values) for name, values in found.items()}


def _actions(stream: Stream) -> Iterator[Finding]:
    spec = stream.start.actions
    if not are_targets(spec):
        return
    targets = targets_of(stream)
    ends = (spec.low, spec.high) if spec.levels is None else (min(spec.levels), max(spec.levels))
    yield note(
        "How often it asks for the least and for the most that it may hold.",
        share_at_low=float((targets == ends[0]).mean()),
        share_at_high=float((targets == ends[1]).mean()),
        share_of_changes=float((np.diff(targets) != 0.0).mean()) if len(targets) > 1 else 0.0,
    )
