"""When the primary route fails, is the order completed safely by another one?

Orders go to a venue over lines that time out, refuse, take orders in part and break down. The
desk's execution works them; afterwards its book is held against the venue's own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.desk.execution import ExecutionOrder, ExecutionReport, RoutedExecution
from agent_gym.agents.desk.view import Quote
from agent_gym.core.clock import SECOND_NS, SystemClock
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.desk_market import (
    START_NS,
    SYMBOLS,
    Course,
    draw_bars,
    seconds,
)
from agent_gym.evaluation.scenarios.desk_subject import open_desk, sabotage_of
from agent_gym.evaluation.scenarios.execution_figures import METRICS, Ledger, measure
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.recorded import (
    RecordedLog,
    RecordedSource,
    read_log,
    recorded_metrics,
    with_recorded,
)
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.trace import Trace
from agent_gym.evaluation.scenarios.venue_route import VenueRoute
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.faults import (
    DisconnectRule,
    FaultPlan,
    PartialRule,
    RateLimitRule,
    RejectRule,
    TimeoutRule,
)
from agent_gym.exchange.venue import Venue

TYPE = "execution_fallback"
SETTLE_BARS = 400  # at the end, for orders on their way; most need a few
QUIET_BARS = 4  # after the last order, for cancels on their way
VOLUME = 2_000.0
UNITS = (5.0, 50.0)
RULES = AccountRules(cash=1_000_000.0, max_leverage=20.0)


class FailModes(Config):
    """How often a request to a line fails; ``disconnect`` is a share of bars, not of requests."""

    timeout: float = Field(default=0.10, ge=0.0, le=1.0)
    reject: float = Field(default=0.05, ge=0.0, le=1.0)
    partial: float = Field(default=0.10, ge=0.0, le=1.0)
    disconnect: float = Field(default=0.02, ge=0.0, le=1.0)
    rate_limit: float = Field(default=0.05, ge=0.0, le=1.0)


class Outage(Config):
    """A time in which the primary line is down."""

    start_s: float = Field(ge=0.0, description="after the first bar")
    duration_s: float = Field(gt=0.0)


class LineConfig(Config):
    """One line to the venue; ``badness`` multiplies the rates of the fail modes."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    badness: float = Field(default=1.0, ge=0.0, le=10.0)


class ExecutionFallbackConfig(Config):
    """How many orders, over which lines, and what goes wrong on them."""

    orders: int = Field(default=500, ge=1, le=100_000, description="orders that are wanted")
    interval_s: float = Field(default=20.0, gt=0.0, description="mean time between orders")
    limit_share: float = Field(default=0.8, ge=0.0, le=1.0, description="the rest is market orders")
    limit_offset_bp: float = Field(
        default=0.0, ge=-1_000.0, le=1_000.0, description="a limit stands so far from the mid"
    )
    fail_modes: FailModes = Field(default=FailModes(), description="rates of the primary line")
    outages: tuple[Outage, ...] = Field(
        default=(Outage(start_s=1_200.0, duration_s=120.0),),
        description="windows in which the primary line is down",
    )
    routes: tuple[LineConfig, ...] = Field(
        default=(LineConfig(name="primary"), LineConfig(name="secondary", badness=0.2)),
        min_length=1,
        description="lines to the venue, the primary first",
    )
    retry: dict[str, Any] = Field(
        default_factory=dict, description="in place of the desk's own execution policy"
    )
    bar_s: float = Field(default=5.0, ge=1.0, le=3_600.0, description="length of a bar")
    sigma_bp: float = Field(default=3.0, ge=0.0, le=1_000.0, description="volatility of a bar")
    spread_bp: float = Field(default=4.0, ge=0.0, le=1_000.0, description="bid to ask")
    latency_bars: int = Field(default=0, ge=0, le=100, description="bars an order travels")
    hours: float | None = Field(
        default=None, gt=0.0, le=744.0, description="of the recorded log; null: all of it"
    )
    source: RecordedSource | None = Field(
        default=None, description="a recorded log whose orders are played instead"
    )


@register("scenario", TYPE, ExecutionFallbackConfig)
class ExecutionFallback(Scenario):
    """Plays orders through the desk's execution on a faulty venue."""

    version = 1
    metrics = METRICS

    def __init__(self, config: ExecutionFallbackConfig) -> None:
        self.config = config

    @override
    def figures(self) -> tuple[Metric, ...]:
        return METRICS if self.config.source is None else with_recorded(TYPE, METRICS)

    @override
    def data_hash(self) -> str:
        log = self._log()
        return "" if log is None else log.data_hash

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        begun_s = SystemClock().monotonic_s()
        log = self._log()
        floor = _Floor.open(self.config, seeds, subject, _orders(self.config, seeds, log))
        while floor.step():
            pass
        metrics = measure(floor.ledger, floor.execution, floor.routes, floor.venue)
        floor.note_the_end(metrics)
        if log is not None:
            metrics |= recorded_metrics(TYPE, log)
        wall_s = SystemClock().monotonic_s() - begun_s
        return Episode(
            metrics,
            floor.trace.digest(),
            len(floor.trace),
            () if log is None else log.notes,
            {"wall_s": wall_s, "orders_per_s": len(floor.ledger.wanted) / wall_s},
        )

    def _log(self) -> RecordedLog | None:
        source = self.config.source
        return None if source is None else read_log(source, self.config.hours)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An order that somebody wants at a time; ``limit`` says how it begins."""

    time_ns: int
    signal_id: str
    symbol: str
    quantity: float
    limit: bool


def _orders(config: ExecutionFallbackConfig, seeds: Seeds, log: RecordedLog | None) -> list[Wanted]:
    if log is not None:
        return _recorded_orders(log)
    rng = seeds.child("signals").rng()
    gaps = rng.exponential(config.interval_s * SECOND_NS, config.orders)
    times = (START_NS + np.cumsum(gaps)).astype(np.int64).tolist()
    draws = rng.random((config.orders, 4)).tolist()
    low, high = UNITS
    return [
        Wanted(
            times[i],
            f"o{i:05d}",
            SYMBOLS[int(2 * symbol)],
            (low + (high - low) * size) * (1.0 if side < 0.5 else -1.0),
            kind < config.limit_share,
        )
        for i, (symbol, size, side, kind) in enumerate(draws)
    ]


def _recorded_orders(log: RecordedLog) -> list[Wanted]:
    """Return the orders that began something; sizes are scaled to what the market here holds."""
    begun = [order for order in log.orders if order.kind != "stop" and order.fallback_of is None]
    if not begun:
        return []
    scale = sum(UNITS) / 2.0 / float(np.median([abs(order.quantity) for order in begun]))
    first_ns = begun[0].time_ns - SECOND_NS
    return [
        Wanted(
            START_NS + order.time_ns - first_ns,
            f"o{i:05d}",
            SYMBOLS[i % 2],
            float(np.clip(scale * order.quantity, -10.0 * UNITS[1], 10.0 * UNITS[1])),
            order.kind == "limit",
        )
        for i, order in enumerate(begun)
    ]


def fault_plan(config: ExecutionFallbackConfig, line: LineConfig, bar_ns: int) -> FaultPlan:
    """Return the faults of a line; only the first line has the outages."""
    modes, bad = config.fail_modes, line.badness
    windows = tuple(
        (START_NS + round(out.start_s * SECOND_NS), START_NS + round(end_s * SECOND_NS))
        for out in config.outages
        if (end_s := out.start_s + out.duration_s) and line == config.routes[0]
    )
    return FaultPlan(
        bar_ns=bar_ns,
        rules=(
            DisconnectRule(rate=min(1.0, bad * modes.disconnect), bars=2, windows=windows),
            RateLimitRule(rate=min(1.0, bad * modes.rate_limit)),
            TimeoutRule(rate=min(1.0, bad * modes.timeout)),
            RejectRule(rate=min(1.0, bad * modes.reject), reasons=("price out of band",)),
            PartialRule(rate=min(1.0, bad * modes.partial)),
        ),
    )


@dataclass(slots=True)
class _Floor:
    """The venue, its lines, the desk's execution and the orders still to come."""

    config: ExecutionFallbackConfig
    venue: Venue
    routes: list[VenueRoute]
    execution: RoutedExecution
    wanted: list[Wanted]
    closes: dict[str, list[float]]
    ledger: Ledger = field(default_factory=Ledger)
    trace: Trace = field(default_factory=Trace)
    quiet: int = 0

    @classmethod
    def open(
        cls, config: ExecutionFallbackConfig, seeds: Seeds, subject: Subject, wanted: list[Wanted]
    ) -> _Floor:
        """Set the stage."""
        sabotage, bar_ns = sabotage_of(subject), round(config.bar_s * SECOND_NS)
        last_ns = wanted[-1].time_ns if wanted else START_NS
        n_bars = (last_ns - START_NS) // bar_ns + 2 + SETTLE_BARS
        course = Course(n_bars, bar_ns, 1e-4 * config.sigma_bp, config.spread_bp, VOLUME)
        markets = draw_bars(course, SYMBOLS[:2], seeds.child("market"))
        costs = sabotage.costs(Costs(latency_bars=config.latency_bars, limit_on_touch=True))
        venue = Venue(markets, costs, RULES)
        routes = [
            VenueRoute(line.name, venue, fault_plan(config, line, bar_ns), seeds.child("faults"))
            for line in config.routes
        ]
        desk = open_desk(subject, {"execution": config.retry} if config.retry else {})
        lines = [sabotage.route(route) for route in routes]
        execution = desk.make_execution(lines, seeds.child("retries"))
        closes = {each.instrument.symbol: each.close.tolist() for each in markets}
        return cls(config, venue, routes, execution, list(reversed(wanted)), closes)

    def step(self) -> bool:
        """Play one bar; False when everything has come to an end."""
        for trade in self.venue.advance():
            self.trace.note(
                "trade", trade.ts, trade.order, trade.symbol, trade.qty, trade.price, trade.fee
            )
        now_ns = int(self.venue.now)
        for route in self.routes:
            route.expire(now_ns)
        quotes = self._quotes(now_ns)
        for report in self.execution.poll(now_ns, quotes):
            self._take(report)
        while self.wanted and self.wanted[-1].time_ns <= now_ns:
            self._start(self.wanted.pop(), now_ns, quotes)
        if not self.execution.working:
            self._compare()
        self.quiet = 0 if self.wanted or self.execution.working else self.quiet + 1
        return self.quiet < QUIET_BARS and not self.venue.finished

    def _quotes(self, now_ns: int) -> dict[str, Quote]:
        half, now = 0.5e-4 * self.config.spread_bp, seconds(now_ns)
        volatility = 1e-4 * self.config.sigma_bp * (3_600.0 / self.config.bar_s) ** 0.5
        return {
            symbol: Quote(
                now,
                closes[self.venue.t] * (1.0 - half),
                closes[self.venue.t] * (1.0 + half),
                VOLUME * 3_600.0 / self.config.bar_s,
                volatility,
            )
            for symbol, closes in self.closes.items()
        }

    def _start(self, wanted: Wanted, now_ns: int, quotes: Mapping[str, Quote]) -> None:
        mid = quotes[wanted.symbol].mid
        self.ledger.wanted[wanted.signal_id] = (wanted.quantity, mid, wanted.limit)
        side = 1.0 if wanted.quantity > 0.0 else -1.0
        limit = mid * (1.0 - side * 1e-4 * self.config.limit_offset_bp)
        order = ExecutionOrder(
            signal_id=wanted.signal_id,
            symbol=wanted.symbol,
            quantity=wanted.quantity,
            limit_price=limit if wanted.limit else None,
            reference_price=mid,
        )
        report = self.execution.start(order, now_ns, quotes)
        if report is not None:
            self._take(report)

    def _take(self, report: ExecutionReport) -> None:
        self.ledger.reports[report.signal_id] = report
        self.trace.note(
            "report",
            report.done_ns or 0,
            report.signal_id,
            report.status,
            None if report.code is None else report.code.value,
            report.filled,
            report.average_price,
            report.fees,
            report.attempts,
            report.retries,
            report.first_failure_ns,
        )

    def _compare(self) -> None:
        held = self.venue.account().positions
        gap = max(abs(self.execution.book.position(symbol) - held[symbol]) for symbol in held)
        self.ledger.mismatch = max(self.ledger.mismatch, gap)

    def note_the_end(self, metrics: Mapping[str, float | None]) -> None:
        """Write down what was asked of the lines, and what is left open."""
        for route in self.routes:
            route.note(self.trace)
        for name, breaker in self.execution.breakers.items():
            for opened_ns in breaker.opened_ns:
                self.trace.note("breaker", opened_ns, name)
        self.trace.note("open", int(self.venue.now), metrics["orphan_orders"])
