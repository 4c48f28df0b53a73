"""What execution_fallback measures, from the venue's own records wherever it can."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_gym.agents.desk.execution import ExecutionReport, RoutedExecution
from agent_gym.agents.desk.routes import RouteOrder
from agent_gym.core.clock import SECOND_NS
from agent_gym.evaluation.scenarios.figures import mean, metric, quantile, share, zero
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.venue_route import VenueRoute
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.venue import Venue

WHOLE = 1e-9  # relative; what is missing or over below it is rounding
MISMATCH_UNITS = 1e-6  # a book that sums floats in another order differs by less
BREAKER_WINDOW_NS = 60 * SECOND_NS

METRICS: tuple[Metric, ...] = (
    metric("fill_rate", "share", "up", "units filled of units asked for", (0.01, 0.005)),
    metric(
        "fallback_success_rate",
        "share",
        "up",
        "orders that met a failure and were filled whole all the same",
        (0.02, 0.01),
    ),
    metric(
        "recovery_time_p95_s",
        "s",
        "down",
        "95 % quantile of the time from an order's first failure to its end",
        (0.10, 0.5),
    ),
    metric(
        "time_to_fill_p50_s", "s", "down", "median time from the start to a whole fill", (0.10, 0.5)
    ),
    metric("time_to_fill_p95_s", "s", "down", "95 % quantile of the same", (0.10, 0.5)),
    metric(
        "slippage_bp_mean",
        "bp",
        "down",
        "mean price paid against the mid at the start, positive where it cost",
        (0.10, 0.2),
    ),
    metric("slippage_bp_p95", "bp", "down", "95 % quantile of the same", (0.10, 0.2)),
    metric("fees_bp_mean", "bp", "down", "fees of an order over its worth", (0.05, 0.1)),
    metric(
        "retries_per_order", "n", "down", "orders sent to a line beyond the first", (0.10, 0.05)
    ),
    metric("requests_per_order", "n", "down", "requests of every kind to lines", (0.10, 0.2)),
    metric("primary_fill_share", "share", "up", "units filled over the first line", (0.02, 0.01)),
    metric(
        "limit_fill_ratio",
        "share",
        "up",
        "limit orders at the venue that filled whole",
        (0.02, 0.01),
    ),
    metric(
        "market_fallback_ratio",
        "share",
        "down",
        "orders that began as a limit and needed a market order",
        (0.05, 0.01),
    ),
    metric(
        "limit_timeout",
        "orders",
        "down",
        "limit orders taken back because they did not fill in time",
        (0.05, 1.0),
    ),
    metric(
        "market_failed",
        "orders",
        "down",
        "market orders at the venue that traded nothing",
        (0.2, 1.0),
    ),
    metric(
        "circuit_breaker_false_open",
        "n",
        "down",
        "breakers that opened though the line was not down in the minute before",
        (0.2, 1.0),
    ),
    zero("double_fill_count", "n", "orders that traded more than was asked for"),
    zero("wrong_side_count", "n", "orders that traded against the side that was asked for"),
    zero("orphan_orders", "n", "orders open at the venue when the desk holds all for ended"),
    zero("unfinished_orders", "n", "orders that the desk never brought to an end"),
    zero(
        "exposure_mismatch_max",
        "units",
        "largest difference of the desk's book and the venue's while no order was on its way",
    ),
)


@dataclass(slots=True)
class Ledger:
    """What was wanted (units, mid at the start, whether as a limit) and what the desk reported."""

    wanted: dict[str, tuple[float, float, bool]] = field(default_factory=dict)
    reports: dict[str, ExecutionReport] = field(default_factory=dict)
    mismatch: float = 0.0


class Traded(NamedTuple):
    """What an order came to at the venue: signed units, worth and fees."""

    units: float
    worth: float
    fees: float


def measure(
    ledger: Ledger, execution: RoutedExecution, routes: Sequence[VenueRoute], venue: Venue
) -> dict[str, float | None]:
    """Return the figures of an episode that has come to its end."""
    orders = [(route, order, placed) for route in routes for order, placed in route.orders()]
    traded = _traded(ledger, [(order, placed) for _, order, placed in orders])
    n = len(ledger.wanted)
    sends = sum(route.injector.requests.get("submit", 0) for route in routes)
    asked = sum(sum(route.injector.requests.values()) for route in routes)
    units = sum(placed.filled for _, _, placed in orders)
    first = sum(placed.filled for route, _, placed in orders if route is routes[0])
    return {
        **_completion(ledger, traded),
        **_prices(ledger, traded),
        **_kinds(ledger, [(order, placed) for _, order, placed in orders]),
        "market_failed": float(sum(_failed_markets(route) for route in routes)),
        "retries_per_order": share(sends - n, n),
        "requests_per_order": share(asked, n),
        "primary_fill_share": share(first, units),
        "circuit_breaker_false_open": float(_false_opens(execution, routes)),
        "double_fill_count": float(
            sum(
                abs(traded[name].units) > abs(want) * (1.0 + WHOLE)
                for name, (want, _, _) in ledger.wanted.items()
            )
        ),
        "wrong_side_count": float(
            sum(traded[name].units * want < 0.0 for name, (want, _, _) in ledger.wanted.items())
        ),
        "orphan_orders": float(len(venue.open_orders())),
        "unfinished_orders": float(n - len(ledger.reports)),
        "exposure_mismatch_max": ledger.mismatch if ledger.mismatch > MISMATCH_UNITS else 0.0,
    }


def _traded(ledger: Ledger, orders: list[tuple[RouteOrder, Placed]]) -> dict[str, Traded]:
    """Return the venue's fills by the order they belong to: client ids begin with its name."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for order, placed in orders:
        total = sums[order.client_id.partition("-")[0]]
        sign = 1.0 if placed.order.qty > 0.0 else -1.0
        total[0] += sign * placed.filled
        total[1] += placed.filled * (placed.average_price or 0.0)
        total[2] += placed.fee
    return {name: Traded(*sums[name]) for name in ledger.wanted}


def _completion(ledger: Ledger, traded: dict[str, Traded]) -> dict[str, float | None]:
    reports = ledger.reports.values()
    whole = {
        name: abs(traded[name].units) >= abs(want) * (1.0 - WHOLE)
        for name, (want, _, _) in ledger.wanted.items()
    }
    failed = [report for report in reports if report.first_failure_ns is not None]
    recovery = [_seconds(report.first_failure_ns, report.done_ns) for report in failed]
    filling = [_seconds(r.started_ns, r.done_ns) for r in reports if whole[r.signal_id]]
    asked = sum(abs(want) for want, _, _ in ledger.wanted.values())
    filled = sum(
        min(abs(traded[name].units), abs(want)) for name, (want, _, _) in ledger.wanted.items()
    )
    return {
        "fill_rate": share(filled, asked),
        "fallback_success_rate": share(sum(whole[r.signal_id] for r in failed), len(failed)),
        "recovery_time_p95_s": quantile(recovery, 0.95),
        "time_to_fill_p50_s": quantile(filling, 0.50),
        "time_to_fill_p95_s": quantile(filling, 0.95),
    }


def _seconds(start_ns: int | None, end_ns: int | None) -> float:
    return ((end_ns or 0) - (start_ns or 0)) / SECOND_NS


def _prices(ledger: Ledger, traded: dict[str, Traded]) -> dict[str, float | None]:
    slips, fees = [], []
    for name, (want, mid, _) in ledger.wanted.items():
        units, worth, paid = traded[name]
        if units == 0.0 or worth == 0.0:
            continue
        side = 1.0 if want > 0.0 else -1.0
        slips.append(side * 1e4 * (worth / abs(units) - mid) / mid)
        fees.append(1e4 * paid / worth)
    return {
        "slippage_bp_mean": mean(slips),
        "slippage_bp_p95": quantile(slips, 0.95),
        "fees_bp_mean": mean(fees),
    }


def _kinds(ledger: Ledger, orders: list[tuple[RouteOrder, Placed]]) -> dict[str, float | None]:
    limits = [(o, p) for o, p in orders if o.kind == "limit"]
    markets = [(o, p) for o, p in orders if o.kind == "market"]
    begun = {name for name, (_, _, limit) in ledger.wanted.items() if limit}
    fallen = {order.client_id.partition("-")[0] for order, _ in markets} & begun
    whole = [p.filled >= abs(o.quantity) * (1.0 - WHOLE) for o, p in limits]
    missed = [
        p.status.value == "cancelled" and not w for (_, p), w in zip(limits, whole, strict=True)
    ]
    return {
        "limit_fill_ratio": share(sum(whole), len(limits)),
        "market_fallback_ratio": share(len(fallen), len(begun)),
        "limit_timeout": float(sum(missed)),
    }


def _failed_markets(route: VenueRoute) -> int:
    names = {order.client_id for _, order in route.sent if order.kind == "market"}
    known = [route.placed(name) for name in names]
    return sum(placed is None or placed.filled == 0.0 for placed in known)


def _false_opens(execution: RoutedExecution, routes: Sequence[VenueRoute]) -> int:
    count = 0
    for route in routes:
        breaker = execution.breakers.get(route.name)
        downs = [fault.ts for fault in route.injector.log if fault.kind == "disconnect"]
        for opened_ns in () if breaker is None else breaker.opened_ns:
            count += not any(opened_ns - BREAKER_WINDOW_NS < ts <= opened_ns for ts in downs)
    return count
