"""Reading a signal: a mapping from outside becomes a Signal, or the exact field that is wrong.

Fields at the top that the schema does not know are left alone (senders keep their own notes
there). A name that ``params`` does not know is refused: it may be a misspelt price or side, and
without it another trade would be made than the one that was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import isfinite
from numbers import Real
from typing import Any

from typing_extensions import override

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import SCHEMA_VERSION, Signal, SignalParams
from agent_gym.core.errors import AgentError

MAX_NAME = 64
MAX_SYMBOL = 32
MAX_FEATURES = 256
LAST_SECOND = 253_402_300_799.0  # the year 9999; milliseconds sent as seconds lie beyond
_MISSING = RejectCode.SCHEMA_MISSING_FIELD
_TYPE = RejectCode.SCHEMA_BAD_TYPE
_RANGE = RejectCode.SCHEMA_OUT_OF_RANGE
_SIDES = frozenset({"buy", "sell"})
_TIFS = frozenset({"gtc", "ioc", "fok"})
_PARAMS = frozenset(SignalParams.__struct_fields__)


class BadSignal(AgentError):
    """A signal that cannot be read: ``code`` is why, ``field`` is where, ``detail`` is what."""

    def __init__(self, code: RejectCode, field: str, detail: str) -> None:
        super().__init__(code.text, where=field, found=detail)
        self.code = code
        self.field = field
        self.detail = detail

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return (BadSignal, (self.code, self.field, self.detail))


def parse_signal(raw: Mapping[str, Any] | Signal) -> Signal:
    """Return a signal whose every field is of its type and in its range.

    Raises:
        BadSignal: With the first field that is wrong.

    Example:
        >>> parse_signal({"signal_id": "signal1", "strategy": "momentum",
        ...               "params": {"amount": 0.1}, "timestamp": 1234567890.0}).symbol
        'BTC/USDT'
    """
    if isinstance(raw, Signal):
        return _checked(raw)
    if not isinstance(raw, Mapping):
        raise BadSignal(_TYPE, "signal", f"{_kind(raw)} instead of a mapping")
    _version(raw.get("schema_version", SCHEMA_VERSION))
    return Signal(
        signal_id=_name(_needed(raw, "signal_id"), "signal_id"),
        strategy=_name(_needed(raw, "strategy"), "strategy"),
        params=_params(_needed(raw, "params")),
        timestamp=_time(_needed(raw, "timestamp")),
        source=_name(raw.get("source", "api"), "source"),
        features=_features(raw.get("features")),
    )


def readable_id(raw: object) -> str:
    """Return the id of whatever came in, empty if it has none that may be written down."""
    value = raw.get("signal_id") if isinstance(raw, Mapping) else getattr(raw, "signal_id", None)
    return value if isinstance(value, str) and _is_name(value, MAX_NAME) else ""


def _checked(signal: Signal) -> Signal:
    """Check a signal that was built by hand; the same object comes back if nothing is wrong."""
    _version(signal.schema_version)
    _name(signal.signal_id, "signal_id")
    _name(signal.strategy, "strategy")
    params = signal.params
    if not isinstance(params, SignalParams):
        raise BadSignal(_TYPE, "params", f"{_kind(params)} instead of SignalParams")
    _positive(params.amount, "params.amount")
    _asset(params.base, "params.base")
    _asset(params.quote, "params.quote")
    _choice(params.side, "params.side", _SIDES)
    _choice(params.tif, "params.tif", _TIFS)
    _optional(params.price, "params.price", _positive)
    _optional(params.horizon_s, "params.horizon_s", _horizon)
    _optional(params.confidence, "params.confidence", _share)
    _time(signal.timestamp)
    _name(signal.source, "source")
    _features(signal.features)
    return signal


def _params(raw: object) -> SignalParams:
    if not isinstance(raw, Mapping):
        raise BadSignal(_TYPE, "params", f"{_kind(raw)} instead of a mapping")
    for key in raw:
        if key not in _PARAMS:
            raise BadSignal(_RANGE, f"params.{_shown(key)}", _unknown(key))
    get = raw.get
    return SignalParams(
        amount=_positive(_needed(raw, "amount", "params."), "params.amount"),
        base=_asset(get("base", "BTC"), "params.base"),
        quote=_asset(get("quote", "USDT"), "params.quote"),
        side=_choice(get("side", "buy"), "params.side", _SIDES),
        price=_optional(get("price"), "params.price", _positive),
        tif=_choice(get("tif", "gtc"), "params.tif", _TIFS),
        horizon_s=_optional(get("horizon_s"), "params.horizon_s", _horizon),
        confidence=_optional(get("confidence"), "params.confidence", _share),
    )


def _needed(raw: Mapping[str, Any], key: str, above: str = "") -> Any:
    value = raw.get(key)
    if value is None:
        raise BadSignal(_MISSING, above + key, "absent or null")
    return value


def _version(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadSignal(_TYPE, "schema_version", f"{_kind(value)} instead of a whole number")
    if value != SCHEMA_VERSION:
        code = RejectCode.SCHEMA_VERSION_UNSUPPORTED
        raise BadSignal(code, "schema_version", f"{_shown(value)}; known: {SCHEMA_VERSION}")


def _is_name(value: str, longest: int) -> bool:
    # Printable keeps line breaks out of logs and lone surrogates out of files.
    return 0 < len(value) <= longest and value.isprintable() and not value.isspace()


def _name(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise BadSignal(_TYPE, field, f"{_kind(value)} instead of text")
    if not _is_name(value, MAX_NAME):
        raise BadSignal(_RANGE, field, f"{_shown(value)}; 1 to {MAX_NAME} printable characters")
    return value


def _asset(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise BadSignal(_TYPE, field, f"{_kind(value)} instead of text")
    if not _is_name(value, MAX_SYMBOL) or "/" in value or " " in value:
        raise BadSignal(_RANGE, field, f"{_shown(value)}; 1 to {MAX_SYMBOL} characters, no slash")
    return value


def _choice(value: object, field: str, known: frozenset[str]) -> Any:
    if not isinstance(value, str):
        raise BadSignal(_TYPE, field, f"{_kind(value)} instead of text")
    if value not in known:
        raise BadSignal(_RANGE, field, f"{_shown(value)}; known: {', '.join(sorted(known))}")
    return value


def _optional(value: Any, field: str, read: Callable[[Any, str], Any]) -> Any:
    return None if value is None else read(value, field)


def _number(value: object, field: str) -> float:
    if type(value) is float:
        number = value
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise BadSignal(_TYPE, field, f"{_kind(value)} instead of a number")
    else:
        try:
            number = float(value)
        except OverflowError:
            raise BadSignal(_RANGE, field, "too large for a number") from None
    if not isfinite(number):
        raise BadSignal(_RANGE, field, f"{number}; must be finite")
    return number


def _positive(value: object, field: str) -> float:
    number = _number(value, field)
    if number <= 0.0:
        raise BadSignal(_RANGE, field, f"{number}; must be above 0")
    return number


def _share(value: object, field: str) -> float:
    number = _number(value, field)
    if not 0.0 <= number <= 1.0:
        raise BadSignal(_RANGE, field, f"{number}; must be from 0 to 1")
    return number


def _horizon(value: object, field: str) -> int:
    number = _number(value, field)
    if number != int(number):
        raise BadSignal(_TYPE, field, f"{number} instead of a whole number of seconds")
    if not 0.0 < number <= LAST_SECOND:
        raise BadSignal(_RANGE, field, f"{number}; must be above 0 seconds")
    return int(number)


def _time(value: object) -> float:
    number = _number(value, "timestamp")
    if not 0.0 <= number <= LAST_SECOND:
        hint = "; seconds since 1970 are meant, not milliseconds" if number > 0.0 else ""
        raise BadSignal(_RANGE, "timestamp", f"{number}{hint}")
    return number


def _features(value: object) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise BadSignal(_TYPE, "features", f"{_kind(value)} instead of a mapping")
    if len(value) > MAX_FEATURES:
        raise BadSignal(_RANGE, "features", f"{len(value)}; at most {MAX_FEATURES}")
    return {
        _name(key, "features"): _number(number, f"features.{_shown(key)}")
        for key, number in value.items()
    }


def _unknown(key: object) -> str:
    close = get_close_matches(key, _PARAMS, n=1) if isinstance(key, str) else []
    return f"no such parameter; did you mean {close[0]}?" if close else "no such parameter"


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _shown(value: object) -> str:
    """Return a value that is safe in a log: one line, short, no characters that do something."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LAST_SECOND:
        return "a huge number"
    if not isinstance(value, (str, int, float)):
        return _kind(value)
    text = str(value)[: MAX_SYMBOL + 1]
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= MAX_SYMBOL else f"{text[:MAX_SYMBOL]}..."
