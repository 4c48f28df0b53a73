"""The error tree, by whose fault it is; every message says what, where, found, expected, remedy."""

from __future__ import annotations

from typing import Any

from typing_extensions import override


class AgentGymError(Exception):
    """Root of all errors this package raises on purpose.

    Args:
        what: The problem in one sentence.
        where: File, row, field or order that has it.
        found: The value that was met.
        expected: What would have been right.
        remedy: What the user can do about it.

    Example:
        >>> print(DataError("a price is not a number", where="btc.csv row 7", found="NaN"))
        a price is not a number (at btc.csv row 7; found NaN)
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: object = None,
        expected: object = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.remedy = remedy

    @override
    def __str__(self) -> str:
        details = [
            text
            for text in (
                f"at {self.where}" if self.where is not None else "",
                f"found {self.found}" if self.found is not None else "",
                f"expected {self.expected}" if self.expected is not None else "",
            )
            if text
        ]
        message = f"{self.what} ({'; '.join(details)})" if details else self.what
        return f"{message}. {self.remedy}" if self.remedy else message

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the keyword fields when the error crosses a process border."""
        return (_rebuild, (type(self), self.what, self.as_dict()))

    def as_dict(self) -> dict[str, str | None]:
        """Return the fields as plain text, for ``--json`` and recorded failures."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "found": None if self.found is None else str(self.found),
            "expected": None if self.expected is None else str(self.expected),
            "remedy": self.remedy,
        }


def _rebuild(kind: type[AgentGymError], what: str, fields: dict[str, str | None]) -> AgentGymError:
    return kind(
        what,
        where=fields["where"],
        found=fields["found"],
        expected=fields["expected"],
        remedy=fields["remedy"],
    )


class ConfigError(AgentGymError):
    """The user asked for something that does not exist or does not fit together."""


class DataError(AgentGymError):
    """Market data or a file is wrong, missing or not what was asked for."""


class VenueError(AgentGymError):
    """The simulated venue was used wrongly or broke one of its own laws."""


class AgentError(AgentGymError):
    """An agent did something that its contract forbids."""


class StoreError(AgentGymError):
    """A result could not be written or read back."""
