"""Watches positions and their guards from the venue's side, bar by bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_gym.agents.desk.routes import RouteOrder
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.venue import Trade
from agent_gym.markets.bars import Bars

WHOLE = 1e-9  # relative; a difference below it is rounding
PRICE_SLACK = 1e-7  # relative; entry prices are averaged in another order here and there
PATIENCE_BARS = 4  # a flaw that lasts so long while nothing trades is a flaw, not a delay
NOTHING = -1  # there was nothing to close
RESET_BARS = 6  # a breaker rests so long before people let the desk trade again


@dataclass(slots=True)
class Standing:
    """The account, the market and the open orders at a bar's close; ``trades`` are of this bar."""

    bar: int
    now_ns: int
    equity: float
    cash: float
    positions: dict[str, float]
    entries: dict[str, float]
    mids: dict[str, float]
    orders: list[Placed]
    trades: list[tuple[Trade, Placed]]
    believed: dict[str, float]
    silent: bool


@dataclass(slots=True)
class _Held:
    """One position from the bar in which it was opened."""

    position: float = 0.0
    entry: float = 0.0
    best: float = 0.0
    quiet_bars: int = 0
    bare_s: float = 0.0
    stale_bars: int = 0
    uncovered_bars: int = 0
    mismatch_bars: int = 0


@dataclass(slots=True)
class ProtectionWatch:
    """Counts what stood guard and what did not.

    Everything is read from the venue at the close of a bar, before the desk can act on it.
    """

    stop_loss_pct: float
    trailing: bool
    dd_limit: float
    bar_s: float
    latency_bars: int = 0
    symbols: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    held_s: float = 0.0
    covered_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    overshoots_bp: list[float] = field(default_factory=list)
    breaker_bars: list[float] = field(default_factory=list)
    max_drawdown: float = 0.0
    over: bool = False
    _held: dict[str, _Held] = field(default_factory=dict)
    _bars: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)
    _fired: set[int] = field(default_factory=set)
    _targets: dict[int, float] = field(default_factory=dict)
    _equity: float | None = None
    _peak: float = 0.0
    _run_peak: float = 0.0
    _at_risk: float = 0.0
    _sent: int = 0
    _crossed: tuple[int, int, int] | None = None

    def market(self, markets: Sequence[Bars]) -> None:
        """Take in the prices, to know which stops had to fire."""
        for bars in markets:
            self._bars[bars.instrument.symbol] = (bars.low.tolist(), bars.high.tolist())

    def see(self, standing: Standing, at_risk: float, n_sent: int) -> None:
        """Take in a bar's close; ``n_sent`` is the number of orders sent before the desk acts."""
        self._sent = n_sent
        self._see_equity(standing, at_risk)
        cover = dict.fromkeys(standing.positions, 0.0)
        for placed in standing.orders:
            order = placed.order
            seen = self._seen.setdefault(placed.id, standing.bar)
            if standing.bar < seen + self.latency_bars:
                continue  # it is still on its way
            if order.kind is OrderKind.STOP and standing.positions[order.symbol] * order.qty < 0.0:
                cover[order.symbol] += abs(order.qty) - placed.filled
            elif order.kind is OrderKind.LIMIT and placed.id not in self._targets:
                self._targets[placed.id] = standing.entries[order.symbol]
        for symbol, position in standing.positions.items():
            known = self._held.setdefault(symbol, _Held())
            self._see_stops(symbol, known, standing)
            quiet = known.position == position
            known.quiet_bars = known.quiet_bars + 1 if quiet else 0
            if not self.over:
                self._see_cover(known, position, cover[symbol])
                self._see_belief(known, position, standing.believed.get(symbol, 0.0))
            self._follow(symbol, known, position, standing)

    def draw_down(self, standing: Standing, sent: Sequence[tuple[int, RouteOrder]]) -> bool:
        """Compare the breaker with the equity that it was told; True once it may be reset."""
        self._run_peak = max(self._run_peak, standing.equity)
        if self._crossed is None:
            # What is closing already needs no second order to close it.
            closing = any(placed.order.kind is OrderKind.MARKET for placed in standing.orders)
            open_now = any(standing.positions.values()) and not closing
            if standing.equity <= self._run_peak * (1.0 - self.dd_limit):
                self._crossed = (standing.bar, standing.now_ns, self._sent if open_now else NOTHING)
            return False
        bar, now_ns, mark = self._crossed
        if standing.bar - bar < RESET_BARS:
            return False
        late_s = 0.0
        if mark != NOTHING:
            exits = [ts for ts, order in sent[mark:] if _is_exit(order)]
            late_s = (exits[0] - now_ns) / 1e9 if exits else RESET_BARS * self.bar_s
        self.breaker_bars.append(late_s / self.bar_s)
        self._crossed, self._run_peak = None, 0.0
        return True

    def judged(self, accepted: bool, standing: Standing) -> None:
        """Take in the desk's word on an entry."""
        self.counts["entries"] += 1
        self.counts["accepted"] += accepted
        self.counts["blind"] += accepted and standing.silent

    def _see_equity(self, standing: Standing, at_risk: float) -> None:
        self._peak = max(self._peak, standing.equity)
        self.max_drawdown = max(self.max_drawdown, 1.0 - standing.equity / self._peak)
        if self._equity is not None and self._at_risk > 0.0:
            self.counts["risk_bars"] += 1
            self.counts["exceedances"] += self._equity - standing.equity > self._at_risk
        self._equity, self._at_risk = standing.equity, at_risk

    def _see_stops(self, symbol: str, known: _Held, standing: Standing) -> None:
        """Say which stops had to fire in this bar, which did, and at which price."""
        lows, highs = self._bars[symbol]
        side = 1.0 if known.position > 0.0 else -1.0
        worst = lows[standing.bar] if side > 0.0 else highs[standing.bar]
        loss = 1.0 - side * self.stop_loss_pct
        must = side * (worst - known.entry * loss * (1.0 - side * PRICE_SLACK)) <= 0.0
        if known.position and known.quiet_bars > 0 and must and not self.over:
            self.counts["must_fire"] += 1
            self.counts["fired"] += abs(standing.positions[symbol]) < abs(known.position)
        highest = (known.best if self.trailing else known.entry) * loss
        may = side * (worst - highest * (1.0 + side * PRICE_SLACK)) <= 0.0
        for trade, placed in standing.trades:
            if trade.symbol != symbol:
                continue
            if placed.order.kind is OrderKind.STOP and placed.order.price is not None:
                # Only the first trade of a stop is a decision; the rest waits for volume.
                if placed.id not in self._fired:
                    self._fired.add(placed.id)
                    self.counts["stops_fired"] += 1
                    self.counts["false_fires"] += known.position != 0.0 and not may
                way = 1.0 if trade.qty < 0.0 else -1.0
                short = way * (placed.order.price - trade.price) / placed.order.price
                self.overshoots_bp.append(1e4 * short)
            elif placed.order.kind is OrderKind.LIMIT and placed.order.reduce_only:
                # One that outlived its position may meet another; it was right when it was placed.
                entry = self._targets.get(placed.id, known.entry)
                won = (1.0 if trade.qty < 0.0 else -1.0) * (trade.price - entry)
                self.counts["losing_targets"] += won < -PRICE_SLACK * entry

    def _see_cover(self, known: _Held, position: float, cover: float) -> None:
        size = abs(position)
        if size == 0.0:
            self._close_gap(known)
            known.stale_bars = known.uncovered_bars = 0
            return
        self.held_s += self.bar_s
        self.covered_s += self.bar_s * min(1.0, cover / size)
        short = cover < size * (1.0 - WHOLE)
        if short:
            known.bare_s += self.bar_s
        else:
            self._close_gap(known)
        fits = abs(cover - size) <= WHOLE * size
        known.stale_bars = 0 if fits or known.quiet_bars == 0 else known.stale_bars + 1
        known.uncovered_bars = known.uncovered_bars + 1 if short and known.quiet_bars else 0
        self.counts["stale"] += known.stale_bars == PATIENCE_BARS
        self.counts["bare"] += known.uncovered_bars == PATIENCE_BARS

    def _close_gap(self, known: _Held) -> None:
        if known.bare_s:
            self.gaps_s.append(known.bare_s)
            known.bare_s = 0.0

    def _see_belief(self, known: _Held, position: float, believed: float) -> None:
        differs = abs(believed - position) > WHOLE * max(1.0, abs(position))
        known.mismatch_bars = known.mismatch_bars + 1 if differs and known.quiet_bars else 0
        self.counts["mismatches"] += known.mismatch_bars == PATIENCE_BARS

    def _follow(self, symbol: str, known: _Held, position: float, standing: Standing) -> None:
        if position * known.position <= 0.0:
            known.best = standing.entries[symbol]
        known.position, known.entry = position, standing.entries[symbol]
        if position and not standing.silent:
            best = max if position > 0.0 else min
            known.best = best(known.best, standing.mids[symbol])


def _is_exit(order: RouteOrder) -> bool:
    return order.kind == "market" and order.reduce_only
