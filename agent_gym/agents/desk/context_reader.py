"""What may be asked of the desk's memory, as it is now or as it was at an earlier moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from agent_gym.agents.desk.context_db import ContextDb
from agent_gym.agents.desk.context_index import ContextIndex, Result
from agent_gym.agents.desk.context_ring import MODULUS, Ring, Times
from agent_gym.agents.desk.schemas import (
    AgentResponse,
    Decision,
    FilterResult,
    Outcome,
    PnLSnapshot,
    Rejection,
    Signal,
    SignalFeatures,
)

S = TypeVar("S", bound=Struct)
KINDS: Mapping[str, type[Struct]] = {
    "signal": Signal,
    "features": SignalFeatures,
    "result": FilterResult,
    "rejection": Rejection,
    "decision": Decision,
    "response": AgentResponse,
    "pnl": PnLSnapshot,
    "outcome": Outcome,
}
_NO_TIMES = Times()


class Rings(NamedTuple):
    """One ring a kind; the names are those of KINDS."""

    signal: Ring[Signal]
    features: Ring[SignalFeatures]
    result: Ring[FilterResult]
    rejection: Ring[Rejection]
    decision: Ring[Decision]
    response: Ring[AgentResponse]
    pnl: Ring[PnLSnapshot]
    outcome: Ring[Outcome]


class ContextReader:
    """Read-only look at the rings up to a moment; ``until`` None is everything that is known.

    Lists come oldest first; ``n`` keeps the last so many, ``since`` those known from then on.
    """

    def __init__(
        self,
        rings: Rings,
        index: ContextIndex,
        until: float | None,
        db: ContextDb | None = None,
    ) -> None:
        self._rings = rings
        self._index = index
        self._until = until
        self._db = db

    def get_recent_signals(
        self, n: int | None = None, since: float | None = None, strategy: str | None = None
    ) -> list[Signal]:
        """Return signals that came in, accepted or not."""
        found = self._rings.signal.shown(since, self._until)
        if strategy is not None:
            found = [signal for signal in found if signal.strategy == strategy]
        return _last(found, n)

    def get_recent_rejections(
        self, n: int | None = None, since: float | None = None, strategy: str | None = None
    ) -> list[Rejection]:
        """Return why signals were not traded."""
        found = self._rings.rejection.shown(since, self._until)
        if strategy is not None:
            found = [rejection for rejection in found if rejection.strategy == strategy]
        return _last(found, n)

    def get_features(
        self, n: int | None = None, since: float | None = None
    ) -> list[SignalFeatures]:
        """Return the features that signals had when they came in."""
        return _last(self._rings.features.shown(since, self._until), n)

    def get_filter_results(
        self, n: int | None = None, since: float | None = None
    ) -> list[FilterResult]:
        """Return what the filter said."""
        return _last(self._rings.result.shown(since, self._until), n)

    def get_decisions(self, n: int | None = None, since: float | None = None) -> list[Decision]:
        """Return what the rule table decided."""
        return _last(self._rings.decision.shown(since, self._until), n)

    def get_responses(
        self, n: int | None = None, since: float | None = None
    ) -> list[AgentResponse]:
        """Return what the agents answered."""
        return _last(self._rings.response.shown(since, self._until), n)

    def get_pnl_snapshots(
        self, n: int | None = None, since: float | None = None
    ) -> list[PnLSnapshot]:
        """Return the account over time."""
        return _last(self._rings.pnl.shown(since, self._until), n)

    def get_outcomes(self, n: int | None = None, since: float | None = None) -> list[Outcome]:
        """Return what came of signals, as far as it was known."""
        return _last(self._rings.outcome.shown(since, self._until), n)

    def known(self, kind: str) -> list[tuple[float, Any]]:
        """Return the records of a kind with the time at which each became known."""
        ring: Ring[Any] = getattr(self._rings, kind)
        records = ring.shown(None, self._until)
        return list(zip(ring.times[ring.low : ring.low + len(records)], records, strict=True))

    def first_known(self, signal_id: str) -> float | None:
        """Return when a signal of this id came in first, be it long ago if there is a file."""
        known_at = self._index.first_known.get(signal_id)
        if known_at is None and self._db is not None:
            known_at = self._db.first_known(signal_id)
        if known_at is None or self._until is None or known_at <= self._until:
            return known_at
        return None

    def has_seen(self, signal_id: str) -> bool:
        """Return whether a signal of this id came in."""
        return self.first_known(signal_id) is not None

    def signal(self, signal_id: str) -> Signal | None:
        """Return the signal of an id, None if the ring does not hold it."""
        found = self._index.signals.get(signal_id)
        return found if found is not None and self.has_seen(signal_id) else None

    def digest(self) -> str:
        """Return a fingerprint of all that is shown; equal content, equal digest."""
        total = sum(ring.digest_sum(self._until) for ring in self._rings) % MODULUS
        return f"{total:032x}"

    def arrivals(self, strategy: str, after: float, until: float) -> int:
        """Return how many signals of a strategy came in after one moment and up to another."""
        times = self._index.arrivals.get(strategy, _NO_TIMES)
        return times.count(after, self._bound(until))

    def refusals(self, strategy: str, after: float, until: float) -> int:
        """Return how many signals of a strategy were refused in the same way."""
        times = self._index.refusals.get(strategy, _NO_TIMES)
        return times.count(after, self._bound(until))

    def last_arrival(self, strategy: str, until: float) -> float | None:
        """Return when the last signal of a strategy came in, up to a moment."""
        return self._index.arrivals.get(strategy, _NO_TIMES).last(self._bound(until))

    def last_results(self, strategy: str, n: int, until: float) -> list[Result]:
        """Return the last results of a strategy that were known at a moment."""
        found = self._index.results.get(strategy, [])
        high = bisect_right(found, self._bound(until), key=_when)
        return found[max(0, high - n) : high]

    def _bound(self, until: float) -> float:
        return until if self._until is None else min(until, self._until)


def _last(found: list[S], n: int | None) -> list[S]:
    if n is None:
        return found
    return found[-n:] if n > 0 else []


def _when(result: Result) -> float:
    return result.known_at
