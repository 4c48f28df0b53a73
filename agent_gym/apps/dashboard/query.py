"""The state of a view, as its address says it; a link made from it shows the same again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

LONGEST = 200
MOST = 50


@dataclass(frozen=True, slots=True)
class Query:
    """The path of a page and the pairs behind its question mark, in order.

    Example:
        >>> here = Query.of("/dashboard/runs", [("light", "bad"), ("page", "2")])
        >>> here.href(page=3)
        '/dashboard/runs?light=bad&page=3'
        >>> here.href(light=None, page=None)
        '/dashboard/runs'
    """

    path: str
    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, path: str, pairs: Iterable[tuple[str, str]]) -> Query:
        """Return the state; pairs that say nothing are left out, and so is what is too much."""
        kept = [(key[:LONGEST], value[:LONGEST]) for key, value in pairs if value]
        return cls(path, tuple(kept[:MOST]))

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name."""
        return next((value for key, value in self.pairs if key == name), default)

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a name, each once."""
        return tuple(dict.fromkeys(value for key, value in self.pairs if key == name))

    def flag(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.get(name) == "1"

    def choice(self, name: str, known: Iterable[str], default: str = "") -> str:
        """Return a value that is one of the known ones, else the default."""
        said = self.get(name)
        return said if said in set(known) else default

    def whole(self, name: str, default: int, least: int = 0, most: int = 2**31) -> int:
        """Return a whole number inside its limits."""
        said = self.get(name)
        number = int(said) if said.isascii() and said.isdecimal() and len(said) < 12 else default
        return min(max(number, least), most)

    def href(self, **changes: str | int | None) -> str:
        """Return the address with some values changed; None takes one away."""
        kept = [(key, value) for key, value in self.pairs if key not in changes]
        kept += [(key, str(value)) for key, value in changes.items() if value is not None]
        return place(self.path, kept)


def place(path: str, pairs: Iterable[tuple[str, str]] = ()) -> str:
    """Return an address."""
    said = urlencode(list(pairs))
    return f"{path}?{said}" if said else path
