"""Bar periods: the names people write (``1m``, ``4h``) and the nanoseconds the code uses."""

from __future__ import annotations

import re

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS
from agent_gym.core.errors import ConfigError

_UNITS = {"s": SECOND_NS, "m": MINUTE_NS, "h": HOUR_NS, "d": DAY_NS, "w": 7 * DAY_NS}
YEAR_NS = 365 * DAY_NS


def parse_period(text: str) -> int:
    """Return the nanoseconds of a period such as ``15m``.

    Example:
        >>> parse_period("1h") // 10**9
        3600
    """
    match = re.fullmatch(r"([1-9]\d*)([smhdw])", text.strip())
    if match is None:
        raise ConfigError(
            "not a bar period",
            found=repr(text),
            expected="a whole number and one of s, m, h, d, w",
            remedy="Write for example 1m, 15m, 1h or 1d",
        )
    return int(match[1]) * _UNITS[match[2]]


def format_period(period_ns: int) -> str:
    """Return the shortest name of a period.

    Example:
        >>> format_period(parse_period("60m"))
        '1h'
    """
    for unit in ("w", "d", "h", "m", "s"):
        if period_ns % _UNITS[unit] == 0:
            return f"{period_ns // _UNITS[unit]}{unit}"
    return f"{period_ns}ns"


def bars_per_year(period_ns: int) -> float:
    """Return how many bars a 365-day year holds (crypto trades every day)."""
    return YEAR_NS / period_ns
