"""What a planted fault is: something broken on purpose, to see whether the gate finds it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Room: TypeAlias = Literal["desk", "venue", "market"]


class Plant(Struct, frozen=True):
    """One fault: where it sits, what it does, and the figures (``type/metric``) it must move."""

    name: str
    what: str
    room: Room
    blamed: tuple[str, ...]
