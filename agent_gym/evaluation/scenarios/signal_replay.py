"""Signals of a recorded log as arrivals at the desk, at simulated time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.scenarios.desk_market import START_NS
from agent_gym.evaluation.scenarios.recorded import RecordedLog
from agent_gym.evaluation.scenarios.signal_stream import Arrival

UNJUDGED = "unjudged"
LONGEST_HOURS = 744.0
_CODES = {code.value: code for code in RejectCode}


def recorded_arrivals(log: RecordedLog) -> list[Arrival]:
    """Return the log's signals, moved so that the first minute is the market's first.

    What the log says of a signal is taken as the truth about it: accepted, or refused with a code.
    Where it says nothing (or a code that the desk does not know) the signal is played, but it
    counts neither as good nor as bad.
    """
    if not log.signals:
        return []
    first_ns = log.signals[0].time_ns // MINUTE_NS * MINUTE_NS
    shift_ns = START_NS - first_ns
    arrivals = []
    for row, signal in enumerate(log.signals):
        raw = dict(signal.raw)
        stamp = raw.get("timestamp")
        if isinstance(stamp, float | int) and not isinstance(stamp, bool):
            raw["timestamp"] = stamp + shift_ns / SECOND_NS
        expected = None if signal.accepted else _CODES.get(signal.code or "")
        judged = signal.accepted is True or expected is not None
        flaw = ("recorded" if expected else "") if judged else UNJUDGED
        arrivals.append(Arrival(signal.time_ns + shift_ns, row, raw, expected, flaw))
    return arrivals


def replay_hours(log: RecordedLog, where: str) -> float:
    """Return the simulated hours of a log: those of its window."""
    if log.hours > LONGEST_HOURS:
        raise ConfigError(
            "the window of a recorded log is too long to be played",
            where=where,
            found=f"{log.hours:,.0f} hours",
            expected=f"at most {LONGEST_HOURS:g} hours",
            remedy="Give 'hours' in the source, and 'until' where one row is far from the others",
        )
    return log.hours


def log_names(log: RecordedLog) -> dict[str, dict[str, Any]]:
    """Return what the desk is told to know: the strategies and markets of the log.

    A name that the log itself refused as unknown stays unknown.
    """
    no_market, no_strategy = RejectCode.SCHEMA_UNKNOWN_SYMBOL, RejectCode.SCHEMA_UNKNOWN_STRATEGY
    markets = {each.symbol for each in log.signals if each.code != no_market.value}
    strategies = {
        name
        for each in log.signals
        if each.code != no_strategy.value and isinstance(name := each.raw.get("strategy"), str)
    }
    known = {"symbols": sorted(markets), "strategies": sorted(strategies)}
    return {"filter": {part: names for part, names in known.items() if names}}


def first_prices(log: RecordedLog) -> dict[str, float]:
    """Return the first price that the log tells of each market, by signals or by orders."""
    told = [(each.time_ns, each.symbol, each.raw["params"].get("price")) for each in log.signals]
    told += [(each.time_ns, each.symbol, each.price) for each in log.orders if each.symbol]
    found: dict[str, float] = {}
    for _, symbol, price in sorted(told, key=lambda row: row[0]):
        if price is not None and price > 0.0:
            found.setdefault(symbol, float(price))
    return found


def refusal_notes(codes: Sequence[RejectCode | None]) -> tuple[str, ...]:
    """Return a note if most signals were refused; None stands for one that was not.

    Example:
        >>> refusal_notes([RejectCode.RISK_MIN_NOTIONAL, None, RejectCode.RISK_MIN_NOTIONAL])
        ('2 of 3 recorded signals were refused: risk.min_notional 2',)
    """
    refused = Counter(code.value for code in codes if code is not None)
    if 2 * refused.total() <= len(codes):
        return ()
    most = sorted(refused.items(), key=lambda each: (-each[1], each[0]))
    listed = ", ".join(f"{code} {count}" for code, count in most)
    return (f"{refused.total()} of {len(codes)} recorded signals were refused: {listed}",)
