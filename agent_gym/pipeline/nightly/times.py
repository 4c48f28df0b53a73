"""Moments as the files of the nightly write them: ISO 8601, UTC, to the second."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import ConfigError


def iso(now_ns: int) -> str:
    """Return a moment as text.

    Example:
        >>> iso(1_763_256_600 * SECOND_NS)
        '2025-11-16T01:30:00Z'
    """
    return _moment(now_ns).strftime("%Y-%m-%dT%H:%M:%SZ")


def compact(now_ns: int) -> str:
    """Return a moment as the beginning of a file name.

    Example:
        >>> compact(1_763_256_600 * SECOND_NS)
        '20251116T013000Z'
    """
    return _moment(now_ns).strftime("%Y%m%dT%H%M%SZ")


def run_date(now_ns: int, asked: str | None) -> str:
    """Return the date that chooses the fresh seeds: the one asked for, or today (UTC)."""
    if asked is None:
        return _moment(now_ns).date().isoformat()
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", asked):
            raise ValueError(asked)
        return date.fromisoformat(asked).isoformat()
    except ValueError as error:
        raise ConfigError(
            "this is not a date", where="--date", found=repr(asked), expected="such as 2026-11-16"
        ) from error


def _moment(now_ns: int) -> datetime:
    return datetime.fromtimestamp(now_ns // SECOND_NS, UTC)


def nanoseconds(moment: str) -> int:
    """Return a moment that ``iso`` has written.

    Example:
        >>> nanoseconds("2025-11-16T01:30:00Z") == 1_763_256_600 * SECOND_NS
        True
    """
    return int(datetime.fromisoformat(moment).timestamp()) * SECOND_NS
