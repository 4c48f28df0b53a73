"""Check: does anything that is shown or decided know what comes later?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import EpisodeStart, FloatArray, SeriesAgent
from agent_gym.evaluation.audit.changed_bars import other_future
from agent_gym.evaluation.audit.finding import Finding, error, fine
from agent_gym.evaluation.audit.stream import Stream, bits, target_of
from agent_gym.evaluation.audit.subject import Subject
from agent_gym.evaluation.causality import CUTS, MIDDLE, MILD, STRONG, drawn_cuts, with_future

SHOWN_COLUMNS = 6


class LookAheadConfig(Config):
    """At how many places the future is changed."""

    cuts: int = Field(default=3, ge=1, description="places at which an episode is cut")
    series_cuts: int = Field(default=CUTS, ge=1, description="places at which a series is cut")
    tail_bars: int = Field(default=48, ge=1, description="bars of another future after a cut")


@register("check", "look-ahead", LookAheadConfig)
class LookAhead:
    """Gives the same past with another future, or none, and compares what is shown and decided."""

    looks_for = "decisions or features that know later bars"
    wants_agent = False

    def __init__(self, config: LookAheadConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Change the bars after each cut: nothing before it may change."""
        found = list(self._worlds(subject))
        yield from found
        agent = subject.player()
        if isinstance(agent, SeriesAgent) and not any(f.severity == "error" for f in found):
            yield from self._series(subject, agent)

    def _cuts(self, n: int) -> list[int]:
        parts = self._config.cuts + 1
        return sorted({max(1, n * part // parts) for part in range(1, parts)})

    def _worlds(self, subject: Subject) -> Iterator[Finding]:
        clean, moments, compared = subject.stream, 0, 0
        for cut in self._cuts(len(subject.bars) - 2):
            last = int(subject.bars.ts[cut]) + subject.bars.period_ns
            known = _until(clean, last)
            for factor in (*STRONG, None):
                tail = 1 if factor is None else self._config.tail_bars
                bars = other_future(subject.bars, cut, factor or 1.0, tail)
                if factor is None:
                    bars = subject.bars.rows(0, cut + 2)
                agent = None if subject.factory is None else subject.ready(bars=subject.bars)
                other = _until(subject.play(bars, agent), last)
                moments, compared = moments + len(known.steps), compared + 1
                wrong = _compare(known, other, factor)
                if wrong is not None:
                    yield wrong
                    return
        yield fine(
            "What is shown and decided stays the same when the bars that follow are changed or "
            "taken away.",
            futures=compared,
            moments=moments,
        )

    def _series(self, subject: Subject, agent: SeriesAgent) -> Iterator[Finding]:
        stream = subject.stream
        columns = stream.columns(agent.needs)
        whole = _targets(agent, stream.start, columns)
        compared = 0
        rng = Seeds(subject.seed).child("audit", "look-ahead").rng()
        cuts = drawn_cuts(whole, self._config.series_cuts, rng)
        for cut in cuts:
            for factor in (None, *STRONG, *MIDDLE, *MILD):
                other = with_future(columns, cut, factor, self._config.tail_bars)
                past = np.asarray(agent.targets(stream.start, other), dtype=np.float64)[:cut]
                wrong = np.flatnonzero(past != whole[:cut])
                compared += cut
                if wrong.size:
                    row = int(wrong[0])
                    yield error(
                        "Targets of a series change when values that come after them change or "
                        "are taken away: the agent looks ahead, perhaps because it is fitted or "
                        "scaled on the whole series.",
                        "Compute everything from values up to the same moment; fit and scale on "
                        "the training span alone",
                        changed_targets=int(wrong.size),
                        of=cut,
                        first_at=row,
                        with_future=float(whole[row]),
                        with_another=float(past[row]),
                    )
                    return
        yield fine(
            "Targets of a series do not depend on later values.", cuts=len(cuts), targets=compared
        )
        yield from _doors(stream, whole)


def _until(stream: Stream, last_ns: int) -> Stream:
    return Stream(stream.start, tuple(s for s in stream.steps if s.before.ts <= last_ns))


def _compare(known: Stream, other: Stream, factor: float | None) -> Finding | None:
    future = "were taken away" if factor is None else f"were multiplied by {factor:g}"
    n = min(len(known.steps), len(other.steps))
    seen, then = known.first(n).matrix[:-1], other.first(n).matrix[:-1]
    changed = seen != then
    # The first row that differs is the world's doing; later ones may follow from a decision.
    rows = np.flatnonzero(changed.any(axis=1))
    decided = [
        t for t in range(n) if bits(known.steps[t].decision) != bits(other.steps[t].decision)
    ]
    if rows.size and (not decided or rows[0] <= decided[0]):
        columns = np.flatnonzero(changed[rows[0]])
        names = [known.start.feature_names[i] for i in columns[:SHOWN_COLUMNS]]
        return error(
            f"The world shows what it cannot know yet: {', '.join(names)} changed before the bars "
            f"that {future}.",
            "Compute the column from bars up to the moment it is shown; shift it, or drop it",
            changed_rows=int(rows.size),
            of=n,
            first_at=int(rows[0]),
            columns=int(changed.any(axis=0).sum()),
        )
    if decided or len(known.steps) != len(other.steps):
        return error(
            f"Decisions change although all that was seen is the same; the bars after {future}.",
            "Decide from observations alone; hold no way to the data beside them",
            changed_decisions=len(decided),
            of=n,
            first_at=decided[0] if decided else n,
        )
    return None


def _targets(agent: SeriesAgent, start: EpisodeStart, columns: dict[str, FloatArray]) -> FloatArray:
    copies = {name: column.copy() for name, column in columns.items()}
    return np.asarray(agent.targets(start, copies), dtype=np.float64)


def _doors(stream: Stream, whole: FloatArray) -> Iterator[Finding]:
    spec = stream.start.actions
    stepped = np.array([target_of(step.decision.action, spec) for step in stream.steps])
    wrong = np.flatnonzero(stepped != whole)
    if wrong.size:
        row = int(wrong[0])
        yield error(
            "targets() and act() decide differently on the same values; a backtest believes the "
            "first, a live run does the second.",
            "Give both doors one step function",
            different=int(wrong.size),
            of=len(whole),
            first_at=row,
            series=float(whole[row]),
            step=float(stepped[row]),
        )
    else:
        yield fine("targets() and act() decide the same.", decisions=len(whole))
