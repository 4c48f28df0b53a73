"""Rounds in which every contestant runs once, so that a busy moment hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers import Fleet, PeerFailure

LIMIT, OURS = "limit", "ours"


@dataclass
class Standing:
    """What a contestant reached: a rate for every time it ran, and what a peer answered."""

    rates: list[float] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def best(self) -> float:
        """Return the highest rate, the one least disturbed by other work on the machine."""
        return max(self.rates)

    def as_dict(self) -> dict[str, float]:
        """Return best and median for the report."""
        return {"best": self.best, "median": statistics.median(self.rates), "n": len(self.rates)}


@dataclass(frozen=True)
class Entry:
    """One of our own contestants: a call that does ``units`` of work, repeated in each round.

    ``after`` takes what the call returned, outside the time that is measured.
    """

    run: Callable[[], Any]
    units: int
    repeats: int = 1
    after: Callable[[Any], None] = lambda result: None


@dataclass(frozen=True)
class PeerEntry:
    """What a peer is asked: the work, how much of it and how often, and how much to warm up."""

    work: str
    size: int
    warm_size: int
    repeats: int = 1
    rounds: int | None = None


def contest(
    own: dict[str, Entry], peers: dict[str, PeerEntry], fleet: Fleet, rounds: int
) -> dict[str, Standing]:
    """Warm everybody up, then run round after round; return the standings by name."""
    standings = {name: Standing() for name in own}
    for entry in own.values():
        entry.after(entry.run())
    for name, entry in peers.items():
        if ask(fleet, name, entry.work, entry.warm_size) is not None:
            standings[name] = Standing()
    for k in range(rounds):
        for name, entry in own.items():
            standings[name].rates += [_timed(entry) for _ in range(entry.repeats)]
        for name, entry in peers.items():
            for _ in range(entry.repeats if entry.rounds is None or k < entry.rounds else 0):
                answer = ask(fleet, name, entry.work, entry.size)
                if answer is not None:
                    standings[name].rates.append(answer["units"] / answer["seconds"])
                    standings[name].answers.append(answer)
    return {name: standing for name, standing in standings.items() if standing.rates}


def _timed(entry: Entry) -> float:
    start = time.perf_counter()
    result = entry.run()
    seconds = time.perf_counter() - start
    entry.after(result)
    return entry.units / seconds


def ask(fleet: Fleet, name: str, work: str, size: int) -> dict[str, Any] | None:
    """Ask a peer to run once; a peer that fails leaves the contest and the answer is None."""
    if name not in fleet.workers:
        return None
    try:
        return fleet.workers[name].ask(work, size)
    except PeerFailure as failure:
        fleet.drop(name, f"failed in {work}: {failure}")
        return None
