"""Single values of a foreign log: each is read, or refused with a reason."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from agent_gym.core.clock import SECOND_NS
from agent_gym.evaluation.scenarios.recorded.source import TimeUnit

MAX_TEXT = 256
EARLIEST_NS = 100_000_000 * SECOND_NS  # 1973: below it a number of seconds is no time of a log
LATEST_NS = 4_102_444_800 * SECOND_NS  # the year 2100
_UNIT_NS = {"s": SECOND_NS, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_QUOTES = ("USDT", "USDC", "FDUSD", "BUSD", "TUSD", "USD", "EUR", "GBP", "DAI", "BTC", "ETH")
_NAME = re.compile(r"[A-Z0-9]{1,20}")


class UnreadableError(Exception):
    """A cell cannot be read: the column and the reason."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(f"{column}: {why}")
        self.column, self.why = column, why


def read_text(column: str, value: Any) -> str:
    """Return a short text; whole numbers count, as ids are often numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise UnreadableError(column, f"not a text but {_kind(value)}")
    text: str = value.strip()
    if not text or len(text) > MAX_TEXT or not text.isprintable():
        raise UnreadableError(column, f"a text of 1 to {MAX_TEXT} printable characters is needed")
    return text


def read_number(column: str, value: Any) -> float:
    """Return a finite number; a text that holds one counts.

    Example:
        >>> read_number("price", " 1e3 ")
        1000.0
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError(column, f"not a number but {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnreadableError(column, "not a finite number")
    return number


def read_time(column: str, value: Any, unit: TimeUnit) -> int:
    """Return UTC nanoseconds from a number or an ISO text; a text without a zone is UTC.

    Example:
        >>> read_time("timestamp", 1_700_000_000.5, "auto")
        1700000000500000000
        >>> read_time("timestamp", "2023-11-14T22:13:20.5Z", "auto")
        1700000000500000000
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        nanos = _from_iso(column, value)
    elif isinstance(value, int) and not isinstance(value, bool):
        nanos = value * _UNIT_NS[_unit(abs(value)) if unit == "auto" else unit]
    else:
        number = read_number(column, value)
        factor = _UNIT_NS[_unit(abs(number)) if unit == "auto" else unit]
        # Seconds as floats are good to a microsecond; more digits would be noise.
        nanos = round(number * (factor / 1_000.0)) * 1_000
    if not EARLIEST_NS <= nanos <= LATEST_NS:
        raise UnreadableError(column, f"no time between 1973 and 2100: {str(value)[:40]}")
    return nanos


def _unit(size: float) -> str:
    for unit, limit in (("s", 1e11), ("ms", 1e14), ("us", 1e17)):
        if size < limit:
            return unit
    return "ns"


def _from_iso(column: str, value: str) -> int:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise UnreadableError(column, f"not a time: {value[:40]!r}") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


def read_flag(column: str, value: Any) -> bool:
    """Return yes or no."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "accepted"}:
        return True
    if word in {"0", "false", "no", "rejected"}:
        return False
    raise UnreadableError(column, f"neither yes nor no: {word[:40]!r}")


def read_symbol(column: str, value: Any) -> str:
    """Return a market as base and quote.

    Example:
        >>> read_symbol("symbol", "btc-usdt"), read_symbol("symbol", "ETHUSDT")
        ('BTC/USDT', 'ETH/USDT')
    """
    return _market(column, read_text(column, value))


@lru_cache(maxsize=4_096)
def _market(column: str, name: str) -> str:
    text = name.upper().split(":")[0]
    base, mark, quote = text.replace("-", "/").replace("_", "/").partition("/")
    if not mark:
        quote = next((name for name in _QUOTES if text.endswith(name) and text != name), "")
        base = text.removesuffix(quote)
    if not _NAME.fullmatch(base) or not _NAME.fullmatch(quote):
        raise UnreadableError(column, f"not a market such as BTC/USDT: {text[:40]!r}")
    return f"{base}/{quote}"


def _kind(value: Any) -> str:
    return "missing" if value is None else type(value).__name__
