"""What happened in an episode, event by event, and the one hash that stands for all of it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

import msgspec

from agent_gym.core.errors import DataError

Value: TypeAlias = str | int | float | bool | None
_encoder = msgspec.msgpack.Encoder()
_PLAIN = frozenset((str, int, float, bool, type(None)))


class Trace:
    """The events of one episode in the order in which they were noted.

    The hash is over kind, time and values of every event, floats by their bits, so any change of
    behaviour changes it; it is the same in every process. Values are plain Python: a set or a
    dict has no order that could be trusted, and a NumPy number may change its width.

    Example:
        >>> one, other = Trace(), Trace()
        >>> one.note("fill", 5, "s1", 0.1)
        >>> other.note("fill", 5, "s1", 0.2)
        >>> one.digest() == other.digest(), len(one)
        (False, 1)
    """

    def __init__(self) -> None:
        self.events: list[tuple[Value, ...]] = []

    def note(self, kind: str, time_ns: int, *values: Value) -> None:
        """Write down one event."""
        self.events.append((kind, time_ns, *values))

    def digest(self) -> str:
        """Return the hash of all events so far."""
        for event in self.events:
            if not _PLAIN.issuperset(map(type, event)):
                raise DataError(
                    "an event holds a value that has no fixed form",
                    where=f"event {event[0]}",
                    found=[type(value).__name__ for value in event],
                    expected="str, int, float, bool or None",
                )
        return blake2b(_encoder.encode(self.events), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self.events)
