"""One session: a floor, a clock, the accounts and everybody who listens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent_gym.apps.sandbox.access import Access
from agent_gym.apps.sandbox.clock import SimulatedClock
from agent_gym.apps.sandbox.errors import ExchangeError
from agent_gym.apps.sandbox.events import (
    MarketEvents,
    account_position,
    execution_report,
    list_status,
)
from agent_gym.apps.sandbox.feed import Feed
from agent_gym.apps.sandbox.keys import AccountKey
from agent_gym.apps.sandbox.limits import Limits
from agent_gym.apps.sandbox.market import MS_NS, MarketData
from agent_gym.apps.sandbox.symbols import SymbolBook
from agent_gym.apps.sandbox.trading import Trading
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.types import Nanos
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Change
from agent_gym.markets.periods import format_period

MOST_STEPS = 100_000
log = logging.getLogger(__name__)


class Witness(Protocol):
    """Sees a session go by."""

    def before_bar(self) -> None: ...
    def after_bar(self, changes: Sequence[Change]) -> None: ...
    def saw(self, changes: Sequence[Change]) -> None: ...
    def close(self) -> dict[str, Any]: ...  # may take its time, in another thread


class Session:
    """A simulated exchange between its first bar and its last.

    Args:
        floor: Where it is traded.
        keys: Who may trade.
        speed: Simulated seconds a second; None moves by ``step`` alone.
        wall: The machine's clock.
        weight: How much a client may ask in a simulated minute.
    """

    def __init__(
        self,
        floor: SpotFloor,
        keys: Sequence[AccountKey],
        speed: float | None,
        wall: Clock | None = None,
        weight: int | None = None,
    ) -> None:
        wall = wall or SystemClock()
        self.floor, self.keys = floor, tuple(keys)
        self.speed, self._wall = speed, wall
        self.begins_now = self.together = self.polled = self.plays_out = False
        self.refused: Counter[str] = Counter()
        self._told: set[tuple[str, ...]] = set()
        self._ended_pairs: set[int] = set()
        self._wanted = {key.name: floor.venue.t for key in self.keys}
        self.clock = SimulatedClock(floor.opened_ns, None, wall)
        self.symbols = SymbolBook(floor.venue)
        self.market = MarketData(floor, self.symbols, self.now_ns)
        self.access = Access(keys, self.clock, wall)
        self.limits = Limits(self.now_ns) if weight is None else Limits(self.now_ns, weight)
        self.feed = Feed(MarketEvents(self.market))
        self.trading = Trading(self.market, self._tell)
        self.witness: Witness | None = None
        self.on_written: Callable[[], None] = lambda: None
        self.over = False
        self.result: dict[str, Any] | None = None

    def now_ns(self) -> Nanos:
        """Return the simulated time; it stays in the present bar until the next has come."""
        floor = self.floor
        end_ns = floor.opened_ns if floor.finished else floor.opened_ns + floor.venue.period_ns - 1
        return Nanos(min(max(self.clock.now_ns(), floor.opened_ns), end_ns))

    def start(self) -> None:
        """Let the clock run: from the first open on, or with the wall clock if bars begin now."""
        opened_ns = self.floor.opened_ns
        now_ns = self._wall.now_ns() if self.begins_now and self.speed is not None else opened_ns
        self.clock.set(max(opened_ns, now_ns), self.speed)

    def wait_s(self) -> float | None:
        """Return the real seconds until the present bar is over; None if it waits for a step."""
        if self.over:
            return None
        return self.clock.wait_s(self.floor.opened_ns + self.floor.venue.period_ns)

    def catch_up(self, most: int = MOST_STEPS) -> int:
        """Let the bars pass whose time has come."""
        passed = 0
        while not self.over and passed < most and self.wait_s() == 0.0:
            self._pass()
            passed += 1
        return passed

    def step(self, bars: int, account: str | None = None) -> int:
        """Let bars pass, as many as there are; only a clock that stands can be stepped.

        Where accounts go together, bars pass as soon as every account has asked for them.
        """
        if self.speed is not None:
            raise ExchangeError(-1013, "The clock runs by itself; start with --speed step.")
        if not 1 <= bars <= MOST_STEPS:
            raise ExchangeError(-1130, "Data sent for parameter 'bars' is not valid.")
        until = self.floor.venue.t + bars
        if self.together and account is not None:
            self._wanted[account] = until  # who has left is back
            until = min(self._wanted.values())
        passed = 0
        while not self.over and self.floor.venue.t < until:
            self._pass()
            passed += 1
        return passed

    def asked(self, *question: str) -> None:
        """Let a bar pass if this was asked in it before, on a clock that goes by questions."""
        if not self.polled or self.over:
            return
        if question in self._told:
            self._pass()
        self._told.add(question)

    def waits(self, account: str) -> bool:
        """Say whether bars that an account has asked for have not passed yet."""
        return not self.over and self._wanted.get(account, 0) > self.floor.venue.t

    def leave(self, account: str) -> int:
        """Let an account ask for nothing any more, so that the others need not wait for it."""
        self._wanted.pop(account, None)
        passed = 0
        while self._wanted and not self.over and min(self._wanted.values()) > self.floor.venue.t:
            self._pass()
            passed += 1
        return passed

    def finish(self) -> None:
        """End the session: what was told at the present open is settled, then nothing trades.

        One that plays out goes on to its last bar, so that all such sessions are of one length.
        """
        if self.over:
            return
        if not self.floor.finished:
            self._apply()
        while self.plays_out and not self.floor.finished:
            self._apply()
        self.floor.close()
        self.over = True

    def write_results(self) -> dict[str, Any]:
        """Write what the session came to, once, and return where it is."""
        self.finish()
        if self.result is None:
            self.result = {} if self.witness is None else self.witness.close()
        return self.result

    def state(self) -> dict[str, Any]:
        """Return where the session stands."""
        floor = self.floor
        return {
            "time": self.market.now_ms,
            "bar": floor.venue.t,
            "bars": len(floor.venue),
            "interval": format_period(floor.venue.period_ns),
            "bar_closes": (floor.opened_ns + floor.venue.period_ns) // MS_NS,
            "speed": self.speed,
            "finished": self.over,
        }

    def _pass(self) -> None:
        self._apply()
        if self.floor.finished:
            self.finish()

    def _apply(self) -> None:
        self._told.clear()
        if self.feed.listeners:
            self.feed.events.remember()
        if self.witness is not None:
            self.witness.before_bar()
        changes = self.floor.advance()
        if self.speed is None:
            self.clock.set(self.floor.opened_ns, None)
        if self.witness is not None:
            self.witness.after_bar(changes)
        self.feed.market_moved()
        self._send(changes)

    def _tell(self, changes: list[Change]) -> None:
        if self.witness is not None:
            self.witness.saw(changes)
        self._send(changes)

    def _send(self, changes: Sequence[Change]) -> None:
        touched: dict[str, None] = {}
        for change in changes:
            account = change.ticket.account
            touched[account] = None
            symbol = self.symbols.named(change.ticket.wish.symbol)
            request = self.trading.requests[change.ticket.id]
            self.feed.tell(account, execution_report(symbol, change, request, self.market.now_ms))
            self._send_pair(change)
        for account in touched:
            owned = {
                asset: (one.free, one.locked) for asset, one in self.floor.balances(account).items()
            }
            self.feed.tell(account, account_position(owned, self.market.now_ms))

    def _send_pair(self, change: Change) -> None:
        """Tell of a pair of orders when the second of them is there, and when both are done."""
        if change.ticket.list_id is None:
            return
        pair = self.floor.pairs[change.ticket.list_id]
        begins = change.what == "new" and change.ticket is pair.tickets[-1]
        ends = not change.status.live and not pair.live
        if begins or (ends and pair.id not in self._ended_pairs):
            if ends:
                self._ended_pairs.add(pair.id)
            symbol = self.symbols.named(pair.symbol)
            told = list_status(symbol, pair, self.market.now_ms, live=begins)
            self.feed.tell(pair.account, told)
