"""Bars: the columnar market series that every room above reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.periods import format_period

PRICE_COLUMNS = ("open", "high", "low", "close", "volume")
EXTRA_COLUMNS = {
    "trades": "number of trades in the bar",
    "taker_buy": "base volume bought by takers",
    "spread": "best ask less best bid, quote units",
    "funding": "funding rate that falls due at this bar's open, 0 where none does",
    "obi": "five-level order-book imbalance at the close, -1 to 1",
    "ofi": "order-flow imbalance summed over the bar, base units",
}
SIGNAL_PREFIX = "signal_"  # a column of any name behind it is shown to agents as it is


class Provenance(Config):
    """Where a series came from; it goes into the manifest of every result made from it."""

    source: Literal["exchange", "file", "synthetic", "memory"] = "memory"
    origin: str = Field(default="", description="file name, exchange id or generator name")
    sandbox: bool = Field(default=False, description="true if a test network served the data")
    repairs: dict[str, int] = Field(default_factory=dict, description="repair -> rows touched")
    details: dict[str, Any] = Field(default_factory=dict)


def source_words(facts: Mapping[str, Any]) -> str:
    """Return where bars come from, as ``Bars.describe`` tells it; an origin may name its source.

    Example:
        >>> source_words({"source": "synthetic", "origin": "synthetic/btc-1h", "sandbox": False})
        'synthetic/btc-1h'
        >>> source_words({"source": "exchange", "origin": "binance", "sandbox": True})
        'exchange binance (sandbox)'
    """
    source, origin = str(facts["source"]), str(facts["origin"])
    named = origin if origin.startswith(f"{source}/") else f"{source} {origin}"
    return f"{named} (sandbox)" if facts.get("sandbox") else named


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A series of bars: ``ts`` is the open time in UTC nanoseconds, prices are float64.

    Columns are equally long and read-only. ``extra`` holds any of EXTRA_COLUMNS, and signals of any
    name behind SIGNAL_PREFIX; NaN there means missing. The price columns are checked by
    ``markets.quality`` at the border, not here.
    """

    instrument: Instrument
    period_ns: int
    ts: NDArray[np.int64]
    open: FloatArray
    high: FloatArray
    low: FloatArray
    close: FloatArray
    volume: FloatArray
    extra: Mapping[str, FloatArray] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ts", _frozen(self.ts, np.int64))
        for name in PRICE_COLUMNS:
            object.__setattr__(self, name, _frozen(getattr(self, name), np.float64))
        extra = {name: _frozen(column, np.float64) for name, column in self.extra.items()}
        object.__setattr__(self, "extra", extra)
        self._check_shape()

    def _check_shape(self) -> None:
        for name, column in self.columns().items():
            if column.shape != self.ts.shape or column.ndim != 1:
                raise DataError(
                    "columns of a series differ in length",
                    where=f"column {name}",
                    found=column.shape,
                    expected=self.ts.shape,
                )
        unknown = set(self.extra) - set(extra_names(self.extra))
        if unknown:
            raise DataError(
                "unknown extra column",
                found=sorted(unknown),
                expected=[*sorted(EXTRA_COLUMNS), SIGNAL_PREFIX + "..."],
            )

    def __len__(self) -> int:
        return int(self.ts.size)

    def columns(self) -> dict[str, FloatArray]:
        """Return price and extra columns by name, in a fixed order."""
        named = {name: getattr(self, name) for name in PRICE_COLUMNS}
        return named | {name: self.extra[name] for name in extra_names(self.extra)}

    def rows(self, start: int, stop: int) -> Bars:
        """Return a part of the series; the columns are views, not copies."""
        cut = slice(start, stop)
        prices = {name: getattr(self, name)[cut] for name in PRICE_COLUMNS}
        extra = {name: column[cut] for name, column in self.extra.items()}
        return replace(self, ts=self.ts[cut], extra=extra, **prices)

    def shifted(self, delta_ns: int) -> Bars:
        """Return the same bars at other times, as the provenance says."""
        details = self.provenance.details | {"shifted_ns": delta_ns}
        provenance = self.provenance.model_copy(update={"details": details})
        return replace(self, ts=self.ts + delta_ns, provenance=provenance)

    def between(self, start_ns: int | None, end_ns: int | None) -> Bars:
        """Return the bars that open in [start, end]; None leaves that side open."""
        low = 0 if start_ns is None else int(np.searchsorted(self.ts, start_ns, side="left"))
        high = len(self) if end_ns is None else int(np.searchsorted(self.ts, end_ns, side="right"))
        return self.rows(low, max(low, high))

    @property
    def fingerprint(self) -> str:
        """Return a hash of the content: instrument, period and every byte of every column."""
        digest = blake2b(digest_size=16)
        digest.update(f"{self.instrument.model_dump_json()}|{self.period_ns}".encode())
        digest.update(np.ascontiguousarray(self.ts).tobytes())
        for name, column in self.columns().items():
            digest.update(name.encode() + np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return the provenance as plain values, for manifests and reports."""
        return {
            **self.provenance.model_dump(),
            "instrument": self.instrument.model_dump(),
            "period": format_period(self.period_ns),
            "rows": len(self),
            "first_ns": int(self.ts[0]) if len(self) else None,
            "last_ns": int(self.ts[-1]) if len(self) else None,
            "fingerprint": self.fingerprint,
        }


def extra_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that an extra column may have, in their fixed order.

    Example:
        >>> extra_names(["signal_b", "close", "signal_a", "obi"])
        ('obi', 'signal_a', 'signal_b')
    """
    given = set(names)
    signals = sorted(name for name in given if name.startswith(SIGNAL_PREFIX))
    return (*(name for name in EXTRA_COLUMNS if name in given), *signals)


def _frozen(column: Any, dtype: type[np.generic]) -> Any:
    array = np.ascontiguousarray(column, dtype=dtype).view()
    array.setflags(write=False)
    return array
