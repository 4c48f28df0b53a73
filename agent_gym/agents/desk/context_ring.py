"""Records in the order in which they became known, and sorted times that are counted by halving."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from hashlib import blake2b
from numbers import Integral, Real
from typing import Generic, TypeVar

import msgspec

from agent_gym.core.errors import AgentError

R = TypeVar("R", bound=msgspec.Struct)
MODULUS = 1 << 128


def _number(value: object) -> int | float:
    """Write the numbers of other libraries as plain ones."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_number, order="deterministic")


def encoded(record: msgspec.Struct) -> bytes:
    """Return a record as JSON, keys sorted; what JSON cannot say is the sender's error."""
    try:
        return _ENCODER.encode(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(
            "a record cannot be written as JSON",
            where=type(record).__name__,
            found=str(error),
            remedy="Put text, numbers, lists and mappings into it",
        ) from error


def fingerprint(kind: str, known_at: float, body: bytes) -> bytes:
    """Return 16 bytes that stand for one record in JSON, the same in every process."""
    return blake2b(f"{kind}|{known_at!r}|".encode() + body, digest_size=16).digest()


class Ring(Generic[R]):
    """The last ``maxlen`` records of one kind, ordered by when they became known.

    A record that is told late, though it was known early, takes its place in that order; so the
    content never depends on the order of telling. Records that became known at the same time
    keep the order in which they were told.
    """

    def __init__(self, kind: str, maxlen: int) -> None:
        self.kind = kind
        self.maxlen = maxlen
        self.told = 0
        self.times: list[float] = []
        self.records: list[R] = []
        self._marks: list[int | None] = []
        # The sum of the marks from _sum_low up to _sum_high; what lies beyond is not summed yet.
        self._sum, self._sum_low, self._sum_high = 0, 0, 0

    def __len__(self) -> int:
        return min(len(self.times), self.maxlen)

    @property
    def low(self) -> int:
        """Return where the ring begins in the lists, which may hold a few more."""
        return max(0, len(self.times) - self.maxlen)

    @property
    def has_dropped(self) -> bool:
        """Return whether something was told that the ring no longer shows."""
        return self.told > len(self)

    def add(self, known_at: float, record: R) -> bool:
        """Take in a record; True if older ones were just cleared away."""
        self.told += 1
        times = self.times
        if not times or known_at >= times[-1]:
            times.append(known_at)
            self.records.append(record)
            self._marks.append(None)
        else:
            place = bisect_right(times, known_at)
            times.insert(place, known_at)
            self.records.insert(place, record)
            self._marks.insert(place, None)
            self._shift(place)
        if len(times) < 2 * self.maxlen:
            return False
        self._clear()
        return True

    def _shift(self, place: int) -> None:
        """Keep the sum right after a record was put in at a place."""
        if place >= self._sum_high:
            return
        self._sum_high += 1
        if place < self._sum_low:
            self._sum_low += 1
        else:
            self._sum += self._mark(place)

    def _clear(self) -> None:
        low = self.low
        self._forget(low)
        self._sum_high = max(0, self._sum_high - low)
        self._sum_low = max(0, self._sum_low - low)
        del self.times[:low], self.records[:low], self._marks[:low]

    def _forget(self, low: int) -> None:
        """Take the records before a place out of the sum."""
        for place in range(self._sum_low, min(low, self._sum_high)):
            self._sum -= self._mark(place)
        self._sum_low = min(max(self._sum_low, low), self._sum_high)

    def shown(self, since: float | None = None, until: float | None = None) -> list[R]:
        """Return the records known from ``since`` to ``until``, both included, oldest first."""
        low, high = self.low, len(self.times)
        if since is not None:
            low = max(low, bisect_left(self.times, since))
        if until is not None:
            high = bisect_right(self.times, until)
        return self.records[low:high]

    def digest_sum(self, until: float | None = None) -> int:
        """Return the sum of the shown records' fingerprints; only new ones are computed."""
        times = self.times
        high = len(times)
        if until is not None and high and until < times[-1]:
            high = bisect_right(times, until)
            return sum(self._mark(place) for place in range(self.low, high))
        low = high - self.maxlen if high > self.maxlen else 0
        if high != self._sum_high or low != self._sum_low:
            self._forget(low)
            for place in range(max(low, self._sum_high), high):
                self._sum += self._mark(place)
            self._sum_low, self._sum_high = low, high
        return self._sum

    def _mark(self, place: int) -> int:
        mark = self._marks[place]
        if mark is None:
            body = encoded(self.records[place])
            mark = int.from_bytes(fingerprint(self.kind, self.times[place], body), "big")
            self._marks[place] = mark
        return mark


class Times:
    """Moments in order; counting those in a window costs two halvings, not a walk.

    Example:
        >>> times = Times()
        >>> for moment in (3.0, 1.0, 2.0):
        ...     times.add(moment)
        >>> times.count(1.0, 3.0), times.nearest(2.4)
        (2, 2.0)
    """

    __slots__ = ("_moments",)

    def __init__(self) -> None:
        self._moments: list[float] = []

    def __len__(self) -> int:
        return len(self._moments)

    def add(self, moment: float) -> None:
        """Take in a moment; late ones find their place."""
        moments = self._moments
        if not moments or moment >= moments[-1]:
            moments.append(moment)
        else:
            moments.insert(bisect_right(moments, moment), moment)

    def remove(self, moment: float) -> None:
        """Take out one entry of a moment, if there is one."""
        place = bisect_left(self._moments, moment)
        if place < len(self._moments) and self._moments[place] == moment:
            del self._moments[place]

    def count(self, after: float, until: float) -> int:
        """Return how many lie after ``after`` and not after ``until``."""
        moments = self._moments
        return max(0, bisect_right(moments, until) - bisect_right(moments, after))

    def last(self, until: float) -> float | None:
        """Return the latest moment that is not after ``until``."""
        place = bisect_right(self._moments, until)
        return self._moments[place - 1] if place else None

    def nearest(self, moment: float) -> float | None:
        """Return the moment that lies nearest to the given one."""
        moments = self._moments
        place = bisect_left(moments, moment)
        if place == len(moments):
            return moments[-1] if moments else None
        if place and moment - moments[place - 1] <= moments[place] - moment:
            return moments[place - 1]
        return moments[place]
