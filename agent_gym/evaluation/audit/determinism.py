"""Check: does the same seed give the same decisions, whatever else is going on?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, zip_longest
from typing import Any

from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.clock import DAY_NS, HOUR_NS, SECOND_NS
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, Learner
from agent_gym.evaluation.audit.changed_bars import turned_round
from agent_gym.evaluation.audit.elsewhere import HASH_SEED, hashes, play_away
from agent_gym.evaluation.audit.finding import Finding, error, fine, unchecked
from agent_gym.evaluation.audit.generators import global_generators
from agent_gym.evaluation.audit.shifted_clock import shifted_clock
from agent_gym.evaluation.audit.stream import Stream, differing, replay, walk
from agent_gym.evaluation.audit.subject import Subject, weights_of

DRAW_FROM_SEEDS = "Draw from start.seeds in reset(), never from a generator that all share"
MAY_LEARN = "A second episode may differ: the agent learns, and may keep what it did."
DECIDE_BY_TS = "Decide by the time of the observation (obs.ts), never by the machine's clock"
HOUR_S, DAY_S = HOUR_NS // SECOND_NS, DAY_NS // SECOND_NS
CLOCKS = (  # seconds ahead, and seconds gained at every reading: all hours, weekdays and months
    *((hours * HOUR_S, 0) for hours in (1, 8, 16)),
    *((days * DAY_S, 0) for days in (1, 3, 45, 200, 400)),
    (0, HOUR_S + 61),
    (0, DAY_S + HOUR_S + 61),
)
AWAY_SHIFTS_S = (DAY_S + HOUR_S, 200 * DAY_S + 7 * HOUR_S)


class DeterminismConfig(Config):
    """How many other processes are asked."""

    processes: int = Field(default=2, ge=0, description="processes with other hash seeds")
    episodes: int = Field(default=2, ge=1, description="seeds that each of them plays, backwards")


@register("check", "determinism", DeterminismConfig)
class Determinism:
    """Plays again: with other generators and clocks, after a reset, side by side, elsewhere."""

    looks_for = "decisions that depend on more than the seed and what is seen"
    wants_agent = True

    def __init__(self, config: DeterminismConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Begin with what explains most; what cannot be repeated at all is not asked further."""
        first = list(_again(subject))
        yield from first
        if any(finding.severity == "error" for finding in first):
            return
        timed = list(_at_other_times(subject))
        yield from timed
        if any(finding.severity == "error" for finding in timed):
            return
        yield from _after_reset(subject)
        yield from _side_by_side(subject)
        yield from self._elsewhere(subject)

    def _elsewhere(self, subject: Subject) -> Iterator[Finding]:
        seeds = tuple(range(subject.seed, subject.seed + self._config.episodes))
        own = os.environ.get(HASH_SEED, "")
        others = [n for n in range(1, self._config.processes + 2) if str(n) != own]
        here: list[str] = []
        for hash_seed, shift_s in zip(
            others[: self._config.processes], cycle(AWAY_SHIFTS_S), strict=False
        ):
            row = play_away(subject, seeds[::-1], hash_seed, shift_s)
            if row is None:
                yield unchecked(
                    "Other processes were not asked: they could not find the agent, its config or "
                    "its world at the top level of a module."
                )
                return
            here = here or hashes(subject, seeds)
            if row["status"] != "ok":
                yield error(
                    f"It cannot be played in another process: {row['error']['what']}.",
                    "Make it from its config alone, without anything that this process has set up",
                )
                return
            if _changed(here, row):
                on_time = play_away(subject, seeds[::-1], hash_seed)
                yield _blamed(here, row, on_time, hash_seed, shift_s)
                return
        if here:
            yield fine(
                "Other processes, with other hash seeds, at another time and with the episodes in "
                "another order, decide the same.",
                processes=self._config.processes,
                episodes=len(seeds),
            )


def _changed(here: Sequence[str], row: dict[str, Any]) -> int:
    return sum(a != b for a, b in zip(here, row["hashes"][::-1], strict=True))


def _blamed(
    here: Sequence[str],
    row: dict[str, Any],
    on_time: dict[str, Any] | None,
    hash_seed: int,
    shift_s: int,
) -> Finding:
    """Return whose doing it is that another process differs: the clock's, if without it none do."""
    figures = {"episodes_that_differ": _changed(here, row), "of": len(here), "hash_seed": hash_seed}
    if on_time is not None and on_time["status"] == "ok" and not _changed(here, on_time):
        return error(
            "Another process whose clock is ahead decides differently: decisions depend on the "
            "clock of the machine, perhaps read when the module was imported.",
            DECIDE_BY_TS,
            hours_ahead=shift_s // HOUR_S,
            **figures,
        )
    return error(
        "Another process with another hash seed, playing the same seeds in another order, decides "
        "differently.",
        "Sort what comes out of a set before using its order, do not decide by hash(), and keep "
        "nothing between episodes",
        **figures,
    )


def _at_other_times(subject: Subject) -> Iterator[Finding]:
    """Give the same episode at other times of the day and of the year."""
    stream = subject.stream
    with shifted_clock() as clock:
        base = replay(subject.ready(), stream)
    if not clock.readings:
        yield fine("It does not look at the clock of the machine.", decisions=len(base))
        return
    for shift_s, leap_s in CLOCKS:
        with shifted_clock(shift_s, leap_s):
            changed = differing(base, replay(subject.ready(), stream))
        if changed:
            yield error(
                "Decisions depend on the clock of the machine: at another time it decides "
                "differently on the same observations.",
                DECIDE_BY_TS,
                different=len(changed),
                of=len(base),
                first_at=changed[0],
                hours_ahead=shift_s / HOUR_S,
                hours_gained_each_reading=leap_s / HOUR_S,
            )
            return
    yield fine(
        "The clock of the machine is read, but changes no decision.",
        readings=clock.readings,
        clocks=len(CLOCKS),
    )


def _again(subject: Subject) -> Iterator[Finding]:
    runs = []
    for seed in (1, 2, 1):
        with global_generators(seed):
            runs.append(subject.play().decisions)
    moved, repeated = differing(runs[0], runs[1]), differing(runs[0], runs[2])
    if repeated:
        yield error(
            "Two runs with the same seed decide differently.",
            "Look for the clock, object addresses, threads, unordered sets or the system's "
            "randomness; " + DRAW_FROM_SEEDS.lower(),
            different=len(repeated),
            of=len(runs[0]),
            first_at=repeated[0],
        )
    elif moved:
        yield error(
            "Decisions change with the state of a global generator (Python's, NumPy's or torch's), "
            "though the seed is the same.",
            DRAW_FROM_SEEDS,
            different=len(moved),
            of=len(runs[0]),
            first_at=moved[0],
        )
    else:
        yield fine(
            "Runs with the same seed are the same, whatever the global generators hold.",
            runs=len(runs),
            decisions=len(runs[0]),
        )


def _after_reset(subject: Subject) -> Iterator[Finding]:
    agent = subject.ready()
    if isinstance(agent, Learner):
        yield unchecked(MAY_LEARN)
        return
    before = weights_of(agent)
    first = subject.play(agent=agent).decisions
    second = subject.play(agent=agent).decisions
    if _moved(before, weights_of(agent)):  # weights that rest, as a trained model's, are no excuse
        yield unchecked(MAY_LEARN)
        return
    changed = differing(first, second)
    if changed:
        yield error(
            "After reset() the same episode goes differently: something of the last one is left.",
            "Put everything back in reset(); if it is meant to learn, show its weights() "
            "(core.types.Inspectable)",
            different=len(changed),
            of=len(first),
            first_at=changed[0],
        )
    else:
        yield fine("reset() forgets the last episode.", decisions=len(first))


def _moved(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> bool:
    """Say whether any weight is another than it was."""
    same = before.keys() == after.keys()
    return not same or any(before[name].tobytes() != after[name].tobytes() for name in before)


def _side_by_side(subject: Subject) -> Iterator[Finding]:
    """Two agents in one process, turn by turn, must not know of each other."""
    stream = subject.stream
    other = subject.watch(turned_round(subject.bars))
    alone = replay(subject.ready(), stream)
    crowded = _turns(subject, stream, other)
    changed = differing(alone, crowded)
    if changed:
        yield error(
            "It decides differently when another agent of its kind plays beside it.",
            "Keep state in the instance: no class attributes, no module globals, no cache that "
            "two agents share",
            different=len(changed),
            of=len(alone),
            first_at=changed[0],
        )
    else:
        yield fine("Two of its kind side by side do not disturb each other.", decisions=len(alone))


def _turns(subject: Subject, stream: Stream, other: Stream) -> list[Decision]:
    one, two = subject.ready(), subject.ready()
    one.reset(stream.start)
    two.reset(other.start)
    turns = zip_longest(walk(one, stream), walk(two, other))
    return [mine for mine, _ in turns if mine is not None]
