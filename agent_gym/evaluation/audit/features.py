"""Check: does every column that is read carry something, and are masks honoured?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from pydantic import Field

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, FloatArray, Learner, Nanos, SeriesAgent
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, unchecked, warning
from agent_gym.evaluation.audit.stream import Dice, Stream, differing, replay
from agent_gym.evaluation.audit.subject import Subject, teach
from agent_gym.markets.features.table import KNOWN_SUFFIX

WILD = 7.0
FAR, NEAR, MOVED = 0.5, 0.01, 0.05  # of the logarithm, or of ten standard deviations
REACH = 10.0


class FeaturesConfig(Config):
    """How much of an episode is shown again for each column."""

    moments: int = Field(default=300, ge=50, description="moments that are shown for each column")


@register("check", "features", FeaturesConfig)
class Features:
    """Looks for columns that never change, columns that are not read, and masks not honoured."""

    looks_for = "constant or all-zero columns, declared needs that are not read, ignored masks"
    wants_agent = False

    def __init__(self, config: FeaturesConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Throw dice to move the account's columns too, then see what the agent makes of them."""
        shown = subject.play(agent=Dice(reach=0.5))
        names = [n for n in shown.start.feature_names if not n.endswith(KNOWN_SUFFIX)]
        empty = [name for name in names if not _carries(shown, name)]
        if subject.factory is None:
            yield from _columns(shown, names, empty, names)
            return
        agent = subject.agent()
        if isinstance(agent, SeriesAgent | Learner):
            read = _read(subject, subject.stream, agent.needs)
            yield from _columns(shown, agent.needs, empty, agent.needs)
            yield from _unread(agent.needs, read)
        else:
            part = subject.stream.first(self._config.moments)
            yield from _columns(shown, names, empty, _read(subject, part, empty))
            yield from _blind(subject, part)
        yield from _masks(subject, subject.stream.first(self._config.moments))


def _carries(shown: Stream, name: str) -> bool:
    values = shown.column(name)[_known(shown, name)]
    return bool(values.size) and bool(np.ptp(values) > 0.0)


def _columns(
    shown: Stream, names: Sequence[str], empty: Sequence[str], read: Sequence[str]
) -> Iterator[Finding]:
    """Judge the columns that carry nothing: by mask, and by whether anybody reads them."""
    for name in empty:
        values = shown.column(name)[_known(shown, name)]
        if not values.size:
            if name in read:
                yield note(f"The column {name} is never known in this market.")
            continue
        what = "all zero" if not values.any() else f"constant at {values[0]:g}"
        if name in read:
            yield error(
                f"The column {name} is {what} over {len(values)} moments and says that it is "
                "known. It carries nothing, and hides that something is missing.",
                "Compute it, or take it out; if the value is missing, say so in a mask",
                moments=len(values),
                value=float(values[0]),
            )
        else:
            yield note(f"The column {name} is {what}; nobody reads it.", moments=len(values))
    sound = len(set(names) - set(empty))
    if sound:
        yield fine("Columns change over time, or say that they are unknown.", columns=sound)


def _known(shown: Stream, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return where a column is known: everywhere, if it has no mask."""
    mask = name + KNOWN_SUFFIX
    if mask not in shown.start.feature_names:
        return np.ones(len(shown.matrix), dtype=np.bool_)
    return np.asarray(shown.column(mask) != 0.0)


def _read(subject: Subject, stream: Stream, names: Sequence[str]) -> list[str]:
    """Return the columns that change a decision when they are shaken where shown or fitted."""
    base = replay(subject.ready(), stream)
    return [
        name
        for name in names
        if any(
            differing(base, replay(subject.ready(), stream.showing(other)))
            for other in _shaken(stream, name)
        )
        or _is_fitted(subject, stream, name, base)
    ]


def _is_fitted(subject: Subject, stream: Stream, name: str, base: Sequence[Decision]) -> bool:
    """Say whether a column matters in fit(), as those do from which labels are made."""
    agent = subject.ready()
    if not isinstance(agent, Learner):
        return False
    past = subject.watch(subject.bars.rows(0, max(2, len(subject.bars) // 2)))
    teach(agent, past.showing(next(_shaken(past, name))))
    return bool(differing(base, replay(agent, stream)))


def _shaken(stream: Stream, name: str) -> Iterator[FloatArray]:
    """Yield the features with one column changed: thrown about far and near, moved up and down.

    A channel of highs shows only when it is moved down, so one way of shaking is not enough. What
    was positive stays so.
    """
    place = stream.start.column(name)
    column = stream.matrix[:, place]
    rng = Seeds(0).child("audit", "shake", name).rng()
    throws = rng.normal(size=len(column))
    positive = bool((column > 0.0).all())
    reach = REACH * (float(column.std()) or 1.0)
    for change in (FAR * throws, NEAR * throws, -MOVED * _ones(column), MOVED * _ones(column)):
        matrix = stream.matrix.copy()
        matrix[:, place] = column * np.exp(change) if positive else column + reach * change
        yield matrix


def _ones(column: FloatArray) -> FloatArray:
    return np.ones(len(column))


def _unread(needs: Sequence[str], read: Sequence[str]) -> Iterator[Finding]:
    idle = [name for name in needs if name not in read]
    if idle and read:
        yield warning(
            f"It says that it needs {', '.join(idle)}, but no decision changes with it: a constant "
            "has taken its place, or it is lost on the way.",
            "Read it, or do not ask for it",
            not_read=len(idle),
            of=len(needs),
        )
    elif idle:
        yield note(f"Its decisions do not depend on what it asks for ({', '.join(idle)}).")
    else:
        yield fine("All that it asks for changes its decisions.", columns=len(needs))


def _blind(subject: Subject, stream: Stream) -> Iterator[Finding]:
    """Note if no decision changes with any column, nor with the time of the observations.

    Words are left alone, so of an agent that is shown words nothing is said.
    """
    if any(step.before.text is not None for step in stream.steps):
        return
    names = stream.start.feature_names
    base = replay(subject.ready(), stream)
    others = [stream.showing(matrix) for matrix in _all_shaken(stream)]
    others += [_later(stream, hours) for hours in (7, 24 * 3 + 11)]
    if any(differing(base, replay(subject.ready(), other)) for other in others):
        return
    if not _read(subject, stream, names):
        yield note(
            "It depends on nothing that it was shown: no column and no time changes a decision.",
            columns=len(names),
            decisions=len(base),
        )


def _all_shaken(stream: Stream) -> Iterator[FloatArray]:
    """Yield the features with all columns changed at once, which few agents do not notice."""
    ways = [list(_shaken(stream, name)) for name in stream.start.feature_names]
    for way in zip(*ways, strict=True):
        yield np.column_stack([matrix[:, place] for place, matrix in enumerate(way)])


def _later(stream: Stream, hours: int) -> Stream:
    """Return the same episode at another time."""
    steps = [
        replace(step, before=replace(step.before, ts=Nanos(step.before.ts + hours * HOUR_NS)))
        for step in stream.steps
    ]
    return Stream(stream.start, tuple(steps))


def _masks(subject: Subject, stream: Stream) -> Iterator[Finding]:
    names, matrix = stream.start.feature_names, stream.matrix.copy()
    masked = 0
    for name in names:
        if name + KNOWN_SUFFIX in names:
            hidden = ~_known(stream, name)
            matrix[hidden, stream.start.column(name)] = WILD
            masked += int(hidden.sum())
    if not masked:
        yield unchecked("Nothing is masked in this market, so no mask can be ignored.")
        return
    base, other = replay(subject.ready(), stream), replay(subject.ready(), stream.showing(matrix))
    changed = differing(base, other)
    if changed:
        yield warning(
            "Decisions change with values that are masked as unknown.",
            f"Multiply a value by its {KNOWN_SUFFIX} column, or leave it out where that is 0",
            changed=len(changed),
            of=len(base),
            masked_values=masked,
        )
    else:
        yield fine("Values that are masked as unknown change nothing.", masked_values=masked)
