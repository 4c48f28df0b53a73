"""The stage of protection_health: venue, desk and the hand that lets a bar go by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.core_agent import Filter
from agent_gym.agents.desk.execution import ExecutionOrder, RoutedExecution
from agent_gym.agents.desk.protection import DrawdownBreaker, ProtectionKeeper
from agent_gym.agents.desk.view import DeskView, Holdings, Quote
from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.desk_market import (
    SYMBOLS,
    Course,
    draw_bars,
    seconds,
)
from agent_gym.evaluation.scenarios.desk_subject import open_desk, sabotage_of
from agent_gym.evaluation.scenarios.protection_market import (
    N_SYMBOLS,
    Entry,
    ProtectionHealthConfig,
    draw_losses,
    draw_silences,
)
from agent_gym.evaluation.scenarios.protection_watch import ProtectionWatch, Standing
from agent_gym.evaluation.scenarios.sabotage import Sabotage
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.trace import Trace
from agent_gym.evaluation.scenarios.venue_route import VenueRoute
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.faults import FaultPlan, TimeoutRule
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.tape import known_sigma
from agent_gym.exchange.venue import Trade, Venue

CASH = 1_000_000.0
VOLUME_PER_HOUR = 30_000.0
SPREAD_BP = 4.0
SETTLE_BARS = 24  # after the time is over: everything is closed and guards are taken back
TAIL_Z = 2.326  # one of a hundred


@dataclass(slots=True)
class Scenery:
    """What is drawn before the first bar: prices, their volatility, silences and lost guards."""

    closes: dict[str, list[float]]
    sigmas: dict[str, list[float]]
    silent: list[bool]
    losses: list[list[bool]]
    last_bar: int


@dataclass(slots=True)
class Desk:
    """The desk's parts that are under test."""

    filter: Filter
    execution: RoutedExecution
    keeper: ProtectionKeeper
    breaker: DrawdownBreaker
    context: RecentContext = field(default_factory=RecentContext)


@dataclass(slots=True)
class ProtectionFloor:
    """Lets bars go by, hands the desk what it may know, and watches."""

    terms: ProtectionHealthConfig
    venue: Venue
    route: VenueRoute
    desk: Desk
    scenery: Scenery
    entries: list[Entry]
    sabotage: Sabotage
    watch: ProtectionWatch
    trace: Trace = field(default_factory=Trace)
    told: dict[str, tuple[float, float]] = field(default_factory=dict)
    heard_ns: int = 0
    peak: float = CASH
    orders: list[Placed] = field(default_factory=list)
    changes: tuple[int, int, int] = (0, 0, 0)
    n_lost: int = 0

    @classmethod
    def open(
        cls, terms: ProtectionHealthConfig, seeds: Seeds, subject: Subject, entries: list[Entry]
    ) -> ProtectionFloor:
        """Set the stage."""
        sabotage, bar_ns = sabotage_of(subject), round(terms.bar_s * SECOND_NS)
        last_bar = max(2, math.ceil(terms.hours * HOUR_NS / bar_ns))
        n_bars = last_bar + SETTLE_BARS
        per_hour = HOUR_NS / bar_ns
        jumps = tuple(
            (max(1, min(last_bar - 1, round(shock.t * last_bar))), math.log1p(shock.jump_pct))
            for shock in terms.shocks
        )
        course = Course(
            n_bars,
            bar_ns,
            terms.volatility / math.sqrt(per_hour),
            SPREAD_BP,
            VOLUME_PER_HOUR / per_hour,
            jumps,
            terms.gap_prob,
        )
        markets = draw_bars(course, SYMBOLS[:N_SYMBOLS], seeds.child("market"))
        venue = Venue(markets, sabotage.costs(Costs()), AccountRules(cash=CASH, max_leverage=10.0))
        faults = FaultPlan(
            bar_ns=bar_ns,
            rules=(TimeoutRule(rate=terms.cancel_fail_prob, on=("cancel",), reached_share=0.0),),
        )
        route = VenueRoute("primary", venue, faults, seeds.child("faults"))
        line = sabotage.route(route)
        plan = open_desk(subject, _prescribed(terms))
        keeper = plan.make_protection(line)
        desk = Desk(
            plan.make_filter(None, seeds.child("agent")),
            plan.make_execution([line], seeds.child("retries")),
            keeper,
            plan.make_breaker([keeper]),
        )
        scenery = Scenery(
            {each.instrument.symbol: each.close.tolist() for each in markets},
            {
                each.instrument.symbol: known_sigma(each.high, each.low, each.close).tolist()
                for each in markets
            },
            draw_silences(n_bars, bar_ns, terms.feed_gap_s, seeds),
            draw_losses(n_bars, terms.lost_prob, seeds).tolist(),
            last_bar,
        )
        watch = ProtectionWatch(
            terms.stop_loss_pct,
            terms.trailing,
            terms.dd_limit,
            terms.bar_s,
            venue.costs.latency_bars,
        )
        watch.market(markets)
        return cls(terms, venue, route, desk, scenery, list(reversed(entries)), sabotage, watch)

    @property
    def keeper(self) -> ProtectionKeeper:
        """Return the desk's keeper."""
        return self.desk.keeper

    def step(self) -> bool:
        """Play one bar; False after the last one."""
        trades = self.venue.advance()
        t, now_ns = self.venue.t, int(self.venue.now)
        self._note(trades)
        self.route.expire(now_ns)
        standing = self._standing(trades)
        at_risk = self._value_at_risk(standing)
        self.trace.note("bar", now_ns, standing.equity, at_risk)
        self.watch.see(standing, at_risk, len(self.route.sent))
        self._lose_stops(standing)
        quotes = self._quotes(now_ns)
        self._work(now_ns, quotes)
        if not self.scenery.silent[t]:
            self._mark(standing, now_ns)
        if t < self.scenery.last_bar:
            while self.entries and self.entries[-1].time_ns <= now_ns:
                self._enter(self.entries.pop(), standing, at_risk, quotes)
        elif t == self.scenery.last_bar:
            self.watch.over = True
            self.keeper.flatten(now_ns)
        return not self.venue.finished

    def finish(self) -> int:
        """Write down all that was sent, and return how many orders still stand at the venue."""
        self.route.note(self.trace)
        orphans = len(self.venue.open_orders())
        self.trace.note("open", int(self.venue.now), orphans)
        return orphans

    def _note(self, trades: list[Trade]) -> None:
        for trade in trades:
            self.trace.note(
                "trade", trade.ts, trade.order, trade.symbol, trade.qty, trade.price, trade.fee
            )

    def _standing(self, trades: list[Trade]) -> Standing:
        account = self.venue.account()
        mids = {symbol: closes[self.venue.t] for symbol, closes in self.scenery.closes.items()}
        return Standing(
            bar=self.venue.t,
            now_ns=int(self.venue.now),
            equity=account.equity,
            cash=account.cash,
            positions=dict(account.positions),
            entries=dict(account.average_prices),
            mids=mids,
            orders=self._open_orders(bool(trades)),
            trades=[(trade, self.venue.order(trade.order)) for trade in trades if trade.order],
            believed=self.keeper.positions,
            silent=self.scenery.silent[self.venue.t],
        )

    def _open_orders(self, traded: bool) -> list[Placed]:
        """Return the open orders; asking anew is dear, so only when something can have changed."""
        asked = self.route.injector.requests
        now = (len(self.route.sent), asked.get("cancel", 0), self.n_lost)
        if traded or now != self.changes:
            self.changes = now
            self.orders = self.venue.open_orders()
        return self.orders

    def _value_at_risk(self, standing: Standing) -> float:
        """Return what one bar in a hundred may cost, in quote units, as the desk is told."""
        t = min(self.venue.t + 1, len(self.venue) - 1)
        square = sum(
            (held * standing.mids[symbol] * self.scenery.sigmas[symbol][t]) ** 2
            for symbol, held in standing.positions.items()
        )
        return self.sabotage.value_at_risk(TAIL_Z * math.sqrt(square))

    def _lose_stops(self, standing: Standing) -> None:
        lost = self.scenery.losses[standing.bar]
        for placed in standing.orders:
            if placed.order.kind is OrderKind.STOP and lost[SYMBOLS.index(placed.order.symbol)]:
                self.venue.cancel(placed.id)
                self.n_lost += 1

    def _quotes(self, now_ns: int) -> dict[str, Quote]:
        """Return the last prices that the feed has told; in a silence they grow old."""
        t = self.venue.t
        if self.scenery.silent[t] != self.scenery.silent[t - 1]:
            self.trace.note("feed", now_ns, not self.scenery.silent[t])
        if not self.scenery.silent[t]:
            self.heard_ns = now_ns
        while t > 0 and self.scenery.silent[t]:
            t -= 1
        half = 0.5e-4 * SPREAD_BP
        return {
            symbol: Quote(
                seconds(self.heard_ns),
                closes[t] * (1.0 - half),
                closes[t] * (1.0 + half),
                VOLUME_PER_HOUR,
                self.terms.volatility,
            )
            for symbol, closes in self.scenery.closes.items()
        }

    def _work(self, now_ns: int, quotes: dict[str, Quote]) -> None:
        """Let the desk look after its guards, work its orders and take in their fills."""
        # Guards were there before the desk's newest orders, so what they traded is told first.
        heard = {} if self.scenery.silent[self.venue.t] else quotes
        for fill in self.keeper.on_bar(now_ns, heard):
            self.trace.note("guard", now_ns, fill.symbol, fill.role, fill.quantity, fill.price)
        execution = self.desk.execution
        working = execution.working
        ended = execution.poll(now_ns, quotes)
        for name in working:
            report = execution.report(name)
            assert report is not None
            self._take(name, report.filled, report.average_price, now_ns)
        for report in ended:
            code = None if report.code is None else report.code.value
            self.trace.note("report", now_ns, report.signal_id, report.status, code, report.filled)

    def _take(self, name: str, filled: float, price: float | None, now_ns: int) -> None:
        known, worth = self.told.get(name, (0.0, 0.0))
        new = filled - known
        if new == 0.0 or price is None:
            return
        self.told[name] = (filled, filled * price)
        paid = (filled * price - worth) / new
        self.keeper.on_fill(self.watch.symbols[name], new, paid, now_ns)

    def _mark(self, standing: Standing, now_ns: int) -> None:
        """Tell the breaker the equity, and let people reset it after its rest."""
        breaker = self.desk.breaker
        was = breaker.is_tripped
        breaker.on_bar(standing.bar, standing.equity, now_ns)
        self.peak = max(self.peak, standing.equity)
        if breaker.is_tripped and not was:
            self.trace.note("breaker", now_ns, standing.bar)
        if self.watch.draw_down(standing, self.route.sent):
            breaker.reset()
            self.peak = standing.equity

    def _enter(
        self, entry: Entry, standing: Standing, at_risk: float, quotes: dict[str, Quote]
    ) -> None:
        held, price = standing.positions[entry.symbol], quotes[entry.symbol].mid
        size = self.terms.position_share * CASH / price
        if held == 0.0:
            quantity = entry.side * size
        elif entry.draw < 0.5:
            quantity = math.copysign(0.5 * size, held)
        else:
            quantity = -0.5 * held
        result = self.desk.filter.check(
            _signal(entry, quantity, standing),
            self._view(standing, at_risk, quotes),
            self.desk.context,
        )
        code = None if result.code is None else result.code.value
        self.trace.note("entry", standing.now_ns, entry.name, quantity, result.accepted, code)
        self.watch.judged(result.accepted, standing)
        if not result.accepted or self.desk.breaker.is_tripped:
            return
        self.watch.symbols[entry.name] = entry.symbol
        order = ExecutionOrder(
            entry.name,
            entry.symbol,
            quantity,
            reference_price=price,
            reduce_only=quantity * held < 0.0,
        )
        self.desk.execution.start(order, standing.now_ns, quotes)

    def _view(self, standing: Standing, at_risk: float, quotes: dict[str, Quote]) -> DeskView:
        equity = standing.equity
        gross = sum(abs(held) * standing.mids[name] for name, held in standing.positions.items())
        a_day = math.sqrt(24 * HOUR_NS / self.venue.period_ns)
        holdings = Holdings(
            equity=equity,
            cash=standing.cash,
            positions=standing.positions,
            exposure=gross / equity,
            drawdown=max(0.0, 1.0 - equity / self.peak),
            value_at_risk=at_risk * a_day / equity,
        )
        return self.sabotage.view(DeskView(seconds(standing.now_ns), quotes, holdings))


def _prescribed(terms: ProtectionHealthConfig) -> dict[str, dict[str, Any]]:
    return {
        "protection": {
            "stop_loss_pct": terms.stop_loss_pct,
            "take_profit_pct": terms.take_profit_pct,
            "trailing": terms.trailing,
            "drawdown_limit": terms.dd_limit,
        },
        "filter": {"max_var": terms.var_limit, "max_drawdown": terms.dd_limit},
    }


def _signal(entry: Entry, quantity: float, standing: Standing) -> dict[str, Any]:
    base, _, quote = entry.symbol.partition("/")
    return {
        "signal_id": entry.name,
        "strategy": "guarded",
        "params": {
            "amount": abs(quantity),
            "base": base,
            "quote": quote,
            "side": "buy" if quantity > 0.0 else "sell",
            "confidence": 0.6,
        },
        "timestamp": seconds(standing.now_ns),
    }
