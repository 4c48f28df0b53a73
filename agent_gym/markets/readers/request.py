"""What a reader is asked for; every default is the strict one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.periods import YEAR_NS, parse_period
from agent_gym.markets.quality import Expected, format_time
from agent_gym.markets.repair import RepairPolicy

_LONGEST_PERIOD_NS = 100 * YEAR_NS

# A file seldom says what it holds; who does not say it either gets this honest name.
UNKNOWN_INSTRUMENT = Instrument(symbol="UNKNOWN", exchange="unknown")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_NS, _LATEST_NS = -(9_214 * 10**15), 9_214 * 10**15  # what int64 nanoseconds can say


class ReadRequest(Config):
    """Which bars are wanted from a file and how it is to be understood."""

    instrument: Instrument | None = Field(
        default=None, description="what the file holds; None takes what the file says"
    )
    period: str | None = Field(
        default=None, description="bar period such as 1m; otherwise the most common spacing"
    )
    start: str | int | None = Field(
        default=None, description="first open time wanted, ISO (a date is its midnight UTC)"
    )
    end: str | int | None = Field(
        default=None, description="last open time wanted, ISO (a date is its midnight UTC)"
    )
    as_of: str | int | None = Field(
        default=None, description="bars that close after this time are unfinished"
    )
    naive: str = Field(
        default="utc",
        description="zone of times without one: utc, refuse, or a name such as Europe/Berlin",
    )
    time_unit: Literal["auto", "s", "ms", "us", "ns", "mixed"] = Field(
        default="auto", description="unit of times that are numbers; mixed decides row by row"
    )
    price_divisor: float | None = Field(
        default=None, gt=0.0, description="stored price / divisor = price; None takes the file's"
    )
    repair: RepairPolicy = Field(default_factory=RepairPolicy)

    def expected(self) -> Expected:
        """Return the asked span in nanoseconds."""
        span = Expected(
            *(
                None if time is None else parse_time(time, where=f"option --{name}")
                for name, time in (("start", self.start), ("end", self.end), ("as-of", self.as_of))
            )
        )
        if span.start_ns is not None and span.end_ns is not None and span.start_ns > span.end_ns:
            raise ConfigError(
                "the start is after the end",
                where="options --start and --end",
                found=f"{format_time(span.start_ns)} to {format_time(span.end_ns)}",
                expected="a start before the end",
                remedy="Exchange the two",
            )
        return span


def period_nanos(text: str, *, where: str = "option --period") -> int:
    """Return the nanoseconds of a period that bars can have: at most a hundred years."""
    period_ns = parse_period(text)
    if period_ns > _LONGEST_PERIOD_NS:
        raise ConfigError(
            "a bar period is too long",
            where=where,
            found=repr(text),
            expected="at most a hundred years",
            remedy="Write for example 1m, 15m, 1h or 1d",
        )
    return period_ns


def parse_time(text: str | int, *, where: str | None = None) -> int:
    """Return UTC nanoseconds of an ISO time; without a zone it is UTC, a date is its midnight.

    Args:
        text: The time; a number is taken as nanoseconds.
        where: What it is the time of, for the error.

    Example:
        >>> parse_time("2024-01-01T01:00+01:00") // 10**9
        1704067200
    """
    nanos = text if isinstance(text, int) else _nanos(text, where)
    if not _EARLIEST_NS <= nanos <= _LATEST_NS:
        raise ConfigError(
            "a time is too far away",
            where=where,
            found=repr(text),
            expected="a time from 1678 to 2261",
            remedy="Write another time, or leave it out to take all there is",
        )
    return nanos


def _nanos(text: str, where: str | None) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(
            "not a time",
            where=where,
            found=repr(text),
            expected="ISO 8601, such as 2024-01-31 or 2024-01-31T08:00Z",
            remedy="Write the year first, then month and day",
        ) from error
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1_000
