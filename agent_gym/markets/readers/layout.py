"""Which columns a file must have, under which names they are known, and in which scale."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_gym.core.errors import DataError
from agent_gym.markets.bars import SIGNAL_PREFIX

TIME = "time"
_TIME_UNITS = re.compile(r"(ms|us|ns)$")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of one kind of file; names are compared without case and punctuation."""

    noun: str
    names: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]
    headerless: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    also: str | None = None  # a column that begins like this is wanted too, under its own name


@dataclass(frozen=True, slots=True)
class Column:
    """Where one wanted column stands in a file; a stored number is divided by ``divisor``."""

    name: str
    divisor: float = 1.0
    time_unit: str | None = None


_KLINE = ("open_time", "open", "high", "low", "close", "volume", "close_time", "quote_volume")
BARS = Layout(
    noun="bars",
    names={
        TIME: ("opentime", "timestamp", "datetime", "date", "time", "ts", "unix", "indexlevel0"),
        "open": ("open", "o"),
        "high": ("high", "h"),
        "low": ("low", "l"),
        "close": ("close", "c"),
        "volume": ("volume", "basevolume", "vol", "v"),
        "trades": ("trades", "count", "numberoftrades", "numtrades", "tradecount"),
        "taker_buy": (
            "takerbuy",
            "takerbuyvolume",
            "takerbuybasevolume",
            "takerbuybaseassetvolume",
        ),
        "spread": ("spread",),
        "funding": ("funding", "fundingrate"),
        "obi": ("obi",),
        "ofi": ("ofi",),
    },
    required=(TIME, "open", "high", "low", "close", "volume"),
    headerless={
        6: _KLINE[:6],
        12: (*_KLINE, "count", "taker_buy_volume", "taker_buy_quote_volume", "ignore"),
    },
    also=SIGNAL_PREFIX,
)
FUNDING = Layout(
    noun="funding rates",
    names={
        TIME: ("fundingtime", "calctime", "timestamp", "datetime", "date", "time", "ts"),
        "rate": ("fundingrate", "lastfundingrate", "funding", "rate"),
    },
    required=(TIME, "rate"),
)


def match(layout: Layout, header: Sequence[str], *, where: str) -> dict[str, Column]:
    """Return the place of every wanted column; a missing or doubtful one is an error."""
    plain: dict[str, str] = {}
    twice: list[str] = []
    for name in header:
        key = re.sub(r"[^a-z0-9]", "", name.lower())
        if key in plain:
            twice.append(f"{plain[key]!r} and {name!r}")
        plain[key] = name
    found = {wanted: _find(wanted, known, plain) for wanted, known in layout.names.items()}
    missing = [wanted for wanted in layout.required if found[wanted] is None]
    if missing:
        raise DataError(
            f"columns of {layout.noun} are missing: {', '.join(missing)}",
            where=where,
            found=", ".join(map(str, header))[:300],
            expected="; ".join(f"{name} as {' or '.join(layout.names[name])}" for name in missing),
            remedy="Give the columns these names; case, spaces and underscores do not matter",
        )
    if twice:
        raise DataError(
            "two columns have the same name",
            where=where,
            found=twice[0],
            expected="each name once; case, spaces and underscores do not matter",
            remedy="Rename or remove one of them",
        )
    own = [name for name in header if layout.also is not None and name.startswith(layout.also)]
    wanted = {name: column for name, column in found.items() if column is not None}
    return wanted | {name: Column(name) for name in own}


def _find(wanted: str, known: tuple[str, ...], plain: Mapping[str, str]) -> Column | None:
    for alias in known:
        if alias in plain:
            return Column(plain[alias])
        if wanted != TIME and f"{alias}milli" in plain:
            return Column(plain[f"{alias}milli"], divisor=1_000.0)
        for key, name in plain.items():
            unit = _TIME_UNITS.search(key)
            if wanted == TIME and unit is not None and key[: unit.start()] == alias:
                return Column(name, time_unit=unit[0])
    return None
