"""Parts that rules with a window share; they take scalars only and dissolve into their caller."""

from __future__ import annotations

from agent_gym.agents.rules.memory import count, number, set_count, set_number
from agent_gym.core.kernels import inlined

SUM_SLOTS = 3
TOTAL, FRESH, AGE = range(SUM_SLOTS)


@inlined
def slid(
    total: float, fresh: float, age: int, entering: float, leaving: float, length: int
) -> tuple[float, float, int]:
    """Return a running sum moved by one bar, and the two numbers that keep it clean."""
    total += entering - leaving
    fresh += entering
    age += 1
    if age == length:
        return fresh, 0.0, 0
    return total, fresh, age


@inlined
def slide(state: int, slot: int, entering: float, leaving: float, length: int) -> float:
    """Move a running sum by one bar and return it; it starts at ``slot`` and takes SUM_SLOTS.

    Rounding errors of a running sum pile up for ever. Here a second sum starts afresh every
    ``length`` bars, and when it covers the window it replaces the first. So an error lives for at
    most two windows, at a cost that does not depend on the length.
    """
    total, fresh, age = slid(
        number(state, slot + TOTAL),
        number(state, slot + FRESH),
        count(state, slot + AGE),
        entering,
        leaving,
        length,
    )
    set_number(state, slot + TOTAL, total)
    set_number(state, slot + FRESH, fresh)
    set_count(state, slot + AGE, age)
    return total


@inlined
def behind(cursor: int, bars: int, length: int) -> int:
    """Return the place in a ring of ``length`` that is ``bars`` before the cursor."""
    place = cursor - bars
    if place < 0:
        place += length
    return place


@inlined
def ahead(cursor: int, length: int) -> int:
    """Return the place in a ring that follows the cursor."""
    place = cursor + 1
    if place == length:
        place = 0
    return place
