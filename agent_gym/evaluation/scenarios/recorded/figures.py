"""The figures of a recorded log, with their formulas.

A figure is None where the log does not have the stream, or nothing to divide by. They never gate:
the same log gives the same figures, and another log is another situation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from agent_gym.core.registry import unknown
from agent_gym.evaluation.scenarios.metric import Direction, Metric
from agent_gym.evaluation.scenarios.recorded.records import (
    OrderStatus,
    RecordedLog,
    RecordedOrder,
)

WHOLE = 1.0 - 1e-9  # a sum of fills may miss the last digit
FAILED: frozenset[OrderStatus] = frozenset(("rejected", "failed", "cancelled", "timeout"))


def with_recorded(kind: str, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Return a scenario's own metrics and those of a log; of one name, the log's figure."""
    recorded = RECORDED_METRICS[kind]
    names = {metric.name for metric in recorded}
    return (*(metric for metric in metrics if metric.name not in names), *recorded)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def statuses(log: RecordedLog) -> dict[str, OrderStatus]:
    """Return how each order stands: as the log says, else from its fills."""
    filled: defaultdict[str, float] = defaultdict(float)
    for fill in log.fills:
        filled[fill.order_id] += abs(fill.quantity)

    def status(order: RecordedOrder) -> OrderStatus:
        if order.status is not None:
            return order.status
        share = filled[order.order_id] / abs(order.quantity)
        if share >= WHOLE:
            return "filled"
        return "partial" if share > 0.0 else "open"

    return {order.order_id: status(order) for order in log.orders}


def _ended_limits(log: RecordedLog) -> list[RecordedOrder]:
    standing = statuses(log)
    return [o for o in log.orders if o.kind == "limit" and standing[o.order_id] != "open"]


def _limit_fill_ratio(log: RecordedLog) -> float | None:
    standing, ended = statuses(log), _ended_limits(log)
    return _mean(float(standing[order.order_id] == "filled") for order in ended)


def _market_fallback_ratio(log: RecordedLog) -> float | None:
    markets = [order for order in log.orders if order.kind == "market"]
    named = {order.fallback_of for order in markets if order.fallback_of is not None}
    last: dict[str, int] = {}
    for order in markets:
        if order.fallback_of is None and order.signal_id is not None:
            last[order.signal_id] = order.time_ns

    def fell_back(limit: RecordedOrder) -> bool:
        later = last.get(limit.signal_id or "", -1) >= limit.time_ns
        return limit.order_id in named or later

    return _mean(float(fell_back(order)) for order in _ended_limits(log))


def _limit_timeout(log: RecordedLog) -> float:
    standing = statuses(log)
    return float(sum(o.kind == "limit" and standing[o.order_id] == "timeout" for o in log.orders))


def _market_failed(log: RecordedLog) -> float:
    standing = statuses(log)
    return float(sum(o.kind == "market" and standing[o.order_id] in FAILED for o in log.orders))


def _guards(kind: str, event: str) -> Callable[[RecordedLog], float]:
    def count(log: RecordedLog) -> float:
        return float(sum(row.kind == kind and row.event == event for row in log.protections))

    return count


def _metric(name: str, unit: str, direction: Direction, meaning: str) -> Metric:
    return Metric(name=name, unit=unit, direction=direction, meaning=meaning, gates=False)


_UNREAD = _metric("rows_unread", "rows", "down", "rows of the log that could not be read")
RECORDED_METRICS: Mapping[str, tuple[Metric, ...]] = {
    "signal_throughput": (
        _metric("signals_total", "signals", "up", "signals in the window"),
        _metric("unique_symbols", "markets", "up", "different markets among the signals"),
        _metric("avg_quality", "score", "up", "mean quality of the signals that state one"),
        _metric("avg_confidence", "share", "up", "mean confidence of the signals that state one"),
        _UNREAD,
    ),
    "execution_fallback": (
        _metric("limit_fill_ratio", "share", "up", "ended limit orders that filled whole"),
        _metric(
            "market_fallback_ratio",
            "share",
            "down",
            "ended limit orders that a market order took over",
        ),
        _metric("limit_timeout", "orders", "down", "limit orders that timed out"),
        _metric("market_failed", "orders", "down", "market orders that ended unfilled"),
        _UNREAD,
    ),
    "protection_health": (
        _metric("sl_created", "stops", "up", "stop losses that were placed"),
        _metric("tp_created", "targets", "up", "profit targets that were placed"),
        _metric("auto_fix_sl", "stops", "down", "stop losses that had to be put right"),
        _metric("auto_fix_tp", "targets", "down", "profit targets that had to be put right"),
        _UNREAD,
    ),
}
_STREAM = {
    "signal_throughput": "signals",
    "execution_fallback": "orders",
    "protection_health": "protections",
}
_FORMULAS: Mapping[str, Callable[[RecordedLog], float | None]] = {
    "signals_total": lambda log: float(len(log.signals)),
    "unique_symbols": lambda log: float(len({signal.symbol for signal in log.signals})),
    "avg_quality": lambda log: _mean(signal.quality for signal in log.signals),
    "avg_confidence": lambda log: _mean(signal.confidence for signal in log.signals),
    "limit_fill_ratio": _limit_fill_ratio,
    "market_fallback_ratio": _market_fallback_ratio,
    "limit_timeout": _limit_timeout,
    "market_failed": _market_failed,
    "sl_created": _guards("sl", "created"),
    "tp_created": _guards("tp", "created"),
    "auto_fix_sl": _guards("sl", "fixed"),
    "auto_fix_tp": _guards("tp", "fixed"),
}


def recorded_metrics(scenario: str, log: RecordedLog) -> dict[str, float | None]:
    """Return the figures of a log that belong to a scenario type."""
    if scenario not in RECORDED_METRICS:
        raise unknown("scenario with recorded figures", scenario, tuple(RECORDED_METRICS))
    has_stream = _STREAM[scenario] in log.present
    figures = {
        metric.name: _FORMULAS[metric.name](log) if has_stream else None
        for metric in RECORDED_METRICS[scenario]
        if metric is not _UNREAD
    }
    return figures | {_UNREAD.name: float(sum(log.unread.values()))}
