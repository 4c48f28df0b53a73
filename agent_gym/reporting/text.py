"""Words and numbers as outputs show them; ``one_line`` and ``visible`` make text harmless."""

from __future__ import annotations

import math
import shlex
from datetime import UTC, datetime

from agent_gym.evaluation.page.text import one_line, visible

DASH = "-"
SAME = "~"

__all__ = [
    "DASH",
    "SAME",
    "chance",
    "difference",
    "epoch_s",
    "finite",
    "interval",
    "many",
    "minute",
    "number",
    "one_line",
    "percent",
    "replay_command",
    "span",
    "two_numbers",
    "visible",
]


def finite(value: float | None) -> float | None:
    """Return the value, None where it is not a finite number."""
    return float(value) if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int = 4) -> str:
    """Return a number of so many digits, a dash where there is none.

    Example:
        >>> number(12345.678), number(0.00071234), number(0.0), number(None)
        ('12,346', '0.0007123', '0', '-')
    """
    if value is None or not math.isfinite(value):
        return DASH
    size = abs(value)
    if size == 0.0:
        return "0"
    if not 1e-5 <= size < 1e9:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def two_numbers(base: float | None, cand: float | None) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to tell them apart, nine at most.

    Example:
        >>> two_numbers(0.99991, 0.99992)
        ('0.99991', '0.99992')
    """
    for digits in range(4, 9):
        shown = number(base, digits), number(cand, digits)
        if base == cand or shown[0] != shown[1]:
            return shown
    return number(base, 9), number(cand, 9)


def percent(value: float | None) -> str:
    """Return a relative change with its sign.

    Example:
        >>> percent(-0.17204), percent(3.0), percent(0.0004)
        ('-17.20 %', '+300.0 %', '+0.04 %')
    """
    if value is None or not math.isfinite(value):
        return DASH
    hundredfold = 100.0 * value
    if abs(hundredfold) >= 1e6:
        return f"{hundredfold:+.2e} %"
    return f"{hundredfold:+.{2 if abs(hundredfold) < 100.0 else 1}f} %"


def difference(relative: float | None, absolute: float | None) -> str:
    """Return a change in percent, or as it is where there is nothing to divide by.

    Example:
        >>> difference(0.5, 2.0), difference(None, 0.02815), difference(None, None)
        ('+50.00 %', '+0.02815', '-')
    """
    if relative is not None:
        return percent(relative)
    shown = number(absolute)
    return f"+{shown}" if absolute is not None and absolute > 0.0 else shown


def chance(value: float | None) -> str:
    """Return a p-value as benchmark tools print it.

    Example:
        >>> chance(0.0000001), chance(0.0421), chance(None)
        ('<0.0001', '0.0421', '-')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return "<0.0001" if value < 1e-4 else f"{value:.2g}" if value < 0.001 else f"{value:.3g}"


def interval(ends: tuple[float, float] | None) -> str:
    """Return both ends of an interval.

    Example:
        >>> interval((-0.5, 1.25))
        '[-0.5, 1.25]'
    """
    return DASH if ends is None else "[{}, {}]".format(*(number(end, 3) for end in ends))


def span(seconds: float) -> str:
    """Return a duration as people say it.

    Example:
        >>> span(0.25), span(42.0), span(192.0), span(90_000.0)
        ('0.2 s', '42 s', '3 min 12 s', '25 h 0 min')
    """
    if seconds < 10.0:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def many(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    Example:
        >>> many(1, "regression"), many(2, "regression")
        ('1 regression', '2 regressions')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def epoch_s(iso: str) -> float:
    """Return the seconds since 1970 of an ISO time; one without a zone is UTC."""
    moment = datetime.fromisoformat(iso)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def minute(iso: str) -> str:
    """Return an ISO time to the minute.

    Example:
        >>> minute("2026-11-16T01:30:12.5Z")
        '2026-11-16 01:30'
    """
    return visible(iso, 64)[:16].replace("T", " ")


def replay_command(run_id: str, scenario: str, seed: int) -> str:
    """Return the command that plays one seed of a run again.

    Example:
        >>> replay_command("n1", "thin_book", 7)
        'agent-gym replay n1 thin_book 7'
    """
    return shlex.join(("agent-gym", "replay", one_line(run_id), one_line(scenario), str(seed)))
