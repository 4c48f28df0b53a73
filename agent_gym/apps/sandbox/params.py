"""What a client sends, read as strictly as the exchange reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from agent_gym.apps.sandbox.errors import ExchangeError, illegal, missing

SYMBOL = r"^[A-Z0-9-_.]{1,20}$"
DECIMAL = r"^([0-9]{1,20})(\.[0-9]{1,20})?$"
WHOLE = r"^[0-9]{1,20}$"
CLIENT_ID = r"^[\.A-Z\:/a-z0-9_-]{1,36}$"
MOST_DECIMALS = 8
LARGEST_WHOLE = 2**63 - 1


class Params:
    """Parameters by name; what is empty is not there.

    Args:
        given: What was sent.
        names: What a client calls a parameter, where that is another name.
    """

    def __init__(self, given: Mapping[str, str], names: Mapping[str, str] | None = None) -> None:
        self._given = {name: value for name, value in given.items() if value != ""}
        self._names = dict(names or {})

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def part(self, names: Mapping[str, str], **fixed: str) -> Params:
        """Return one order of a request for several, under the names that a single one has."""
        mine = {name: self._given.get(sent, "") for name, sent in names.items()}
        return Params(mine | fixed, names)

    def called(self, name: str) -> str:
        """Return what the client calls a parameter."""
        return self._names.get(name, name)

    def text(self, name: str, pattern: str | None = None) -> str | None:
        """Return a parameter, None if it was not sent."""
        value = self._given.get(name)
        if value is not None and pattern is not None and re.fullmatch(pattern, value) is None:
            raise illegal(self.called(name), pattern)
        return value

    def need(self, name: str, pattern: str | None = None) -> str:
        """Return a parameter that must be there."""
        value = self.text(name, pattern)
        if value is None:
            raise missing(self.called(name))
        return value

    def whole(self, name: str) -> int | None:
        """Return a whole number."""
        value = self.text(name, WHOLE)
        if value is None:
            return None
        if int(value) > LARGEST_WHOLE:
            raise illegal(self.called(name), WHOLE)
        return int(value)

    def limit(self, default: int, largest: int) -> int:
        """Return how many rows are wanted; more than there may be is the most there may be."""
        value = self.whole("limit")
        if value == 0:
            raise ExchangeError(-1130, "Data sent for parameter 'limit' is not valid.")
        return default if value is None else min(value, largest)

    def decimal(self, name: str) -> Decimal | None:
        """Return a number above 0."""
        value = self.text(name, DECIMAL)
        if value is None:
            return None
        _, _, behind = value.partition(".")
        if len(behind.rstrip("0")) > MOST_DECIMALS:
            called = self.called(name)
            raise ExchangeError(-1111, f"Parameter '{called}' has too much precision.")
        return Decimal(value)

    def need_decimal(self, name: str) -> Decimal:
        """Return a number that must be there."""
        value = self.decimal(name)
        if value is None:
            raise missing(self.called(name))
        return value
