"""Keeping every position protected: one stop of its size, a take-profit, and a drawdown breaker.

A guard that no longer fits is replaced before the old one is taken back, so a position is never
bare while it changes; both may only reduce, so together they cannot turn it around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from pydantic import Field

from agent_gym.agents.desk.protection_guard import WHOLE, Guard, Role
from agent_gym.agents.desk.routes import OrderKind, Route, RouteOrder
from agent_gym.agents.desk.view import Quote
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config

_COUNTED: dict[Role, tuple[str, str]] = {
    "stop": ("sl_created", "auto_fix_sl"),
    "take_profit": ("tp_created", "auto_fix_tp"),
    "exit": ("exits_sent", "exits_again"),
}
_KIND: dict[Role, OrderKind] = {"stop": "stop", "take_profit": "limit", "exit": "market"}


class ProtectionPolicy(Config):
    """Where stops and take-profits stand, as shares of the entry price."""

    stop_loss_pct: float = Field(default=0.02, gt=0.0, lt=1.0)
    take_profit_pct: float | None = Field(default=0.04, gt=0.0)
    trailing: bool = Field(default=False, description="the stop follows the best price")
    trail_step_pct: float = Field(default=0.002, ge=0.0, description="smallest move of a stop")
    max_retries: int = Field(default=2, ge=0, le=10, description="sends again within one bar")
    drawdown_limit: float = Field(default=0.15, gt=0.0, le=1.0)


class ProtectionStatus(Struct, frozen=True):
    """How one symbol stands; quantities are signed, those of guards against the position."""

    position: float
    entry: float | None
    stop_quantity: float
    stop_price: float | None
    take_profit_quantity: float
    is_protected: bool
    retiring: int
    stop_id: str | None = None
    take_profit_id: str | None = None


class GuardFill(Struct, frozen=True):
    """A guard traded: units signed like the trade, price as the venue tells it."""

    symbol: str
    role: Role
    client_id: str
    quantity: float
    price: float | None
    guard_price: float | None
    at_ns: int


class _Book:
    """One symbol: the position and what guards it."""

    def __init__(self) -> None:
        self.position = 0.0
        self.entry = 0.0
        self.best = 0.0
        self.guards: dict[Role, Guard] = {}
        self.retiring: list[Guard] = []
        self.is_closing = False


class ProtectionKeeper:
    """Guards the positions of one route.

    Tell it of every fill of the desk's own orders by ``on_fill``; what its guards trade it finds
    out itself. Call ``on_bar`` for every bar, with quotes or without: it replaces what is lost,
    resizes what no longer fits, and tries failed cancels again. ``counts`` holds ``sl_created``,
    ``tp_created``, ``auto_fix_sl``, ``auto_fix_tp``, ``resized``, ``cancels_failed``,
    ``exits_sent`` and ``late_exits`` (the price had passed a stop that was not there).
    """

    def __init__(
        self, route: Route, policy: ProtectionPolicy | None = None, prefix: str = "guard"
    ) -> None:
        self.route = route
        self.policy = policy or ProtectionPolicy()
        self.counts: Counter[str] = Counter()
        self._prefix = prefix
        self._books: dict[str, _Book] = {}
        self._number = 0
        self._fills: list[GuardFill] = []

    def on_fill(self, symbol: str, quantity: float, price: float, now_ns: int) -> None:
        """Take in a fill of the desk's own order, signed, and guard what is held now."""
        if price <= 0.0:
            raise ConfigError("a fill has a price above 0", where=symbol, found=price)
        book = self._books.setdefault(symbol, _Book())
        held = book.position + quantity
        if abs(held) <= WHOLE * max(abs(quantity), abs(book.position)):
            held = 0.0
        if book.position * quantity >= 0.0:  # more of the same side: the mean entry moves
            cost = book.entry * abs(book.position) + price * abs(quantity)
            book.entry = cost / (abs(book.position) + abs(quantity))
            book.best = price if book.position == 0.0 else book.best
        elif book.position * held < 0.0:  # through zero to the other side
            book.entry = book.best = price
        book.position = held
        self._sync(symbol, book, now_ns)

    def on_bar(
        self, now_ns: int, quotes: Mapping[str, Quote] | None = None
    ) -> tuple[GuardFill, ...]:
        """Look after every symbol; return what guards have traded since the last call."""
        for symbol, book in self._books.items():
            quote = (quotes or {}).get(symbol)
            self._watch(symbol, book, now_ns)
            if quote is not None and book.position:
                self._follow(book, quote)
                self._exit_if_late(symbol, book, quote)
            self._sync(symbol, book, now_ns)
        fills, self._fills = tuple(self._fills), []
        return fills

    def flatten(self, now_ns: int) -> None:
        """Close every position at the market; guards stay until there is nothing left to guard."""
        for symbol, book in self._books.items():
            book.is_closing = book.position != 0.0
            self._sync(symbol, book, now_ns)

    def status(self, symbol: str) -> ProtectionStatus:
        """Return how a symbol is protected."""
        book = self._books.get(symbol) or _Book()
        stop, target = book.guards.get("stop"), book.guards.get("take_profit")
        stop_quantity = stop.rest if stop is not None and stop.phase == "live" else 0.0
        covered = abs(stop_quantity + book.position) <= WHOLE * abs(book.position)
        return ProtectionStatus(
            position=book.position,
            entry=book.entry if book.position else None,
            stop_quantity=stop_quantity,
            stop_price=None if stop is None else stop.order.price,
            take_profit_quantity=target.rest
            if target is not None and target.phase == "live"
            else 0.0,
            is_protected=covered,
            retiring=len(book.retiring),
            stop_id=None if stop is None else stop.order.client_id,
            take_profit_id=None if target is None else target.order.client_id,
        )

    @property
    def positions(self) -> dict[str, float]:
        """Return what is held by symbol, without what is flat."""
        return {symbol: book.position for symbol, book in self._books.items() if book.position}

    def _watch(self, symbol: str, book: _Book, now_ns: int) -> None:
        tries = 1 + self.policy.max_retries
        for role, guard in tuple(book.guards.items()):
            self._book_fill(symbol, book, guard, guard.watch(self.route, now_ns, tries), now_ns)
            if guard.phase == "ended":
                del book.guards[role]
                if guard.is_lost:
                    self.counts[_COUNTED[role][1]] += 1

    def _follow(self, book: _Book, quote: Quote) -> None:
        best = max if book.position > 0.0 else min
        book.best = best(book.best, quote.mid)

    def _exit_if_late(self, symbol: str, book: _Book, quote: Quote) -> None:
        """Close at the market when the price has passed a stop that is not there."""
        side = 1.0 if book.position > 0.0 else -1.0
        passed = side * (quote.mid - self._stop_price(book)) <= 0.0
        if passed and not self.status(symbol).is_protected and not book.is_closing:
            book.is_closing = True
            self.counts["late_exits"] += 1

    def _sync(self, symbol: str, book: _Book, now_ns: int) -> None:
        """Bring the guards in line with the position, then take back what is no longer wanted."""
        wanted: dict[Role, float | None] = {}
        if book.position:
            wanted["stop"] = self._stop_price(book)
            if self.policy.take_profit_pct is not None:
                side = 1.0 if book.position > 0.0 else -1.0
                wanted["take_profit"] = book.entry * (1.0 + side * self.policy.take_profit_pct)
            if book.is_closing:
                wanted["exit"] = None
        else:
            book.is_closing = False
        for role, price in wanted.items():
            self._guard(symbol, book, (role, price), now_ns)
        for role in tuple(book.guards):
            if role not in wanted or not book.position:
                book.retiring.append(book.guards.pop(role))
        self._retire(symbol, book, now_ns)

    def _guard(
        self, symbol: str, book: _Book, wanted: tuple[Role, float | None], now_ns: int
    ) -> None:
        role, price = wanted
        for _ in range(1 + self.policy.max_retries):
            old = book.guards.get(role)
            if not book.position or (old is not None and old.fits(-book.position, price)):
                return
            guard = self._new(symbol, role, -book.position, price)
            traded = guard.place(self.route, now_ns, 1 + self.policy.max_retries)
            if guard.phase == "unsent":
                return  # no line: the old one stays as long as there is no new one
            if guard.phase == "ended" and not traded:
                continue  # refused: once more, under another name
            if old is not None:
                self.counts["resized"] += 1
                book.retiring.append(old)
            self.counts[_COUNTED[role][0]] += 1
            book.guards[role] = guard
            self._book_fill(symbol, book, guard, traded, now_ns)
            if guard.phase == "ended":
                del book.guards[role]
            return

    def _retire(self, symbol: str, book: _Book, now_ns: int) -> None:
        still = []
        for guard in book.retiring:
            heir = book.guards.get(guard.role)
            if book.position and heir is not None and heir.phase != "live":
                still.append(guard)  # nobody knows yet whether the new one is there
                continue
            before = guard.failed_cancels
            self._book_fill(symbol, book, guard, guard.take_back(self.route, now_ns), now_ns)
            self.counts["cancels_failed"] += guard.failed_cancels - before
            if guard.phase != "ended":
                still.append(guard)
        book.retiring = still

    def _book_fill(
        self, symbol: str, book: _Book, guard: Guard, traded: float, now_ns: int
    ) -> None:
        if not traded:
            return
        held = book.position + traded
        book.position = 0.0 if abs(held) <= WHOLE * abs(traded) else held
        order = guard.order
        self._fills.append(
            GuardFill(
                symbol, guard.role, order.client_id, traded, guard.price_paid, order.price, now_ns
            )
        )

    def _stop_price(self, book: _Book) -> float:
        side = 1.0 if book.position > 0.0 else -1.0
        anchor = book.entry
        if self.policy.trailing and side * (book.best - book.entry) > 0.0:
            anchor = book.best
        price = anchor * (1.0 - side * self.policy.stop_loss_pct)
        stop = book.guards.get("stop")
        if self.policy.trailing and stop is not None and stop.order.price is not None:
            gained = side * (price - stop.order.price)
            if -WHOLE * price <= gained < self.policy.trail_step_pct * price:
                return stop.order.price
        return price

    def _new(self, symbol: str, role: Role, quantity: float, price: float | None) -> Guard:
        self._number += 1
        name = f"{self._prefix}-{symbol.replace('/', '')}-{role}-{self._number}"
        return Guard(role, RouteOrder(name, symbol, quantity, _KIND[role], price, reduce_only=True))


class DrawdownBreaker:
    """Trips in the bar in which the drawdown reaches its limit, and closes what is held.

    It stays tripped until somebody resets it.

    Example:
        >>> breaker = DrawdownBreaker(0.15)
        >>> [breaker.on_bar(bar, equity, 0) for bar, equity in enumerate((100.0, 86.0, 85.0, 99.0))]
        [False, False, True, True]
        >>> breaker.tripped_bar
        2
    """

    def __init__(self, limit: float = 0.15, keepers: Sequence[ProtectionKeeper] = ()) -> None:
        if not 0.0 < limit <= 1.0:
            raise ConfigError("a drawdown limit lies above 0 and not above 1", found=limit)
        self.limit = limit
        self.peak = 0.0
        self.tripped_bar: int | None = None
        self._keepers = tuple(keepers)

    @property
    def is_tripped(self) -> bool:
        """Return whether it has tripped."""
        return self.tripped_bar is not None

    def on_bar(self, bar: int, equity: float, now_ns: int) -> bool:
        """Take in the equity at a bar's close; return whether trading must stand still."""
        self.peak = max(self.peak, equity)
        if self.tripped_bar is None and equity <= self.peak * (1.0 - self.limit):
            self.tripped_bar = bar
        if self.tripped_bar is not None:
            for keeper in self._keepers:
                keeper.flatten(now_ns)
        return self.is_tripped

    def reset(self) -> None:
        """Start again from the next equity."""
        self.tripped_bar = None
        self.peak = 0.0
