import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import Quote
from agent_gym.agents.desk.protection import (
    DrawdownBreaker,
    ProtectionKeeper,
    ProtectionPolicy,
)
from agent_gym.agents.desk.routes import RouteOrder
from agent_gym.core.errors import ConfigError
from tests.agents.desk_venue import BTC, Line, S, Venue

FAULTS = [None, "reached", "lost", "down", "busy", "refused"]


class Desk:
    """A venue, a position on it, and the keeper that guards it."""

    def __init__(self, faults=(), make=ProtectionKeeper, share=1.0, slow=False, **policy):
        self.venue = Venue(share=share, slow=slow)
        self.line = Line(self.venue)
        self.keeper = make(self.line, ProtectionPolicy(**policy))
        self.now_s = 0
        self.line.faults = list(faults)
        self.others = 0

    def fill(self, quantity, price=None):
        """Trade for the desk, past the line, and tell the keeper."""
        self.others += 1
        order = RouteOrder(f"own-{self.others}", BTC, quantity, "market")
        share, self.venue.share = self.venue.share, 1.0
        self.venue.submit(order)
        self.venue.share = share
        self.keeper.on_fill(BTC, quantity, price or self.venue.price, self.now_s * S)

    def bar(self, price=None, *, feed=True):
        self.now_s += 60
        self.venue.move(self.venue.price if price is None else price, self.now_s * S)
        mid = self.venue.price
        quotes = {BTC: Quote(float(self.now_s), mid - 0.01, mid + 0.01, 1e4, 0.01)}
        return self.keeper.on_bar(self.now_s * S, quotes if feed else None)

    def live(self, kind):
        return [p.order for p in self.venue.live() if p.order.kind == kind]

    def _rests(self, orders):
        placed = [self.venue.orders[order.client_id] for order in orders]
        return [round(p.order.quantity - p.filled, 9) for p in placed]

    def laws(self):
        """Return which laws of protection are broken now."""
        broken, held = [], self.venue.position()
        stops, targets = self.live("stop"), self.live("limit")
        if abs(self.keeper.positions.get(BTC, 0.0) - held) > 1e-9:
            broken.append("the keeper knows the position")
        if held and self._rests(stops) != [round(-held, 9)]:
            broken.append("one stop of the position's size")
        wants_target = held and self.keeper.policy.take_profit_pct is not None
        if wants_target and self._rests(targets) != [round(-held, 9)]:
            broken.append("one take-profit of the position's size")
        if not held and (stops or targets):
            broken.append("no guard without a position")
        return broken


def test_a_position_gets_one_stop_and_one_take_profit():
    desk = Desk()
    desk.fill(2.0)
    (stop,), (target,) = desk.live("stop"), desk.live("limit")
    assert (stop.quantity, stop.price, stop.reduce_only) == (-2.0, 98.0, True)
    assert (target.quantity, target.price, target.reduce_only) == (-2.0, 104.0, True)
    assert desk.laws() == []
    assert desk.keeper.status(BTC).is_protected


def test_a_short_position_is_guarded_from_above():
    desk = Desk()
    desk.fill(-2.0)
    (stop,), (target,) = desk.live("stop"), desk.live("limit")
    assert (stop.quantity, stop.price, target.price) == (2.0, 102.0, 96.0)


def test_guards_are_resized_after_a_partial_fill():
    desk = Desk()
    desk.fill(0.4)
    desk.fill(0.6)
    assert desk.laws() == []
    assert desk.keeper.counts["resized"] == 2
    desk.fill(-0.5)
    assert [o.quantity for o in desk.live("stop")] == [-0.5]


def test_the_new_stop_stands_before_the_old_one_goes():
    desk = Desk(take_profit_pct=None)
    desk.fill(1.0)
    desk.line.requests.clear()
    desk.fill(1.0)
    assert [verb for verb, _ in desk.line.requests] == ["submit", "cancel"]


def test_the_entry_is_the_mean_and_reducing_does_not_move_it():
    desk = Desk(take_profit_pct=None, stop_loss_pct=0.5)
    desk.fill(1.0, 100.0)
    desk.fill(1.0, 110.0)
    assert desk.keeper.status(BTC).entry == 105.0
    desk.fill(-1.0, 120.0)
    assert desk.keeper.status(BTC).entry == 105.0


def test_a_stop_that_fires_closes_the_position_and_takes_the_target_back():
    desk = Desk()
    desk.fill(1.0)
    (fill,) = desk.bar(97.0)
    assert (fill.role, fill.quantity, fill.price, fill.guard_price) == ("stop", -1.0, 97.0, 98.0)
    assert desk.venue.position() == 0.0
    assert desk.venue.live() == []
    assert desk.bar() == ()
    assert desk.keeper.positions == {}


def test_a_take_profit_that_fills_in_parts_shrinks_the_stop():
    desk = Desk(share=0.5)
    desk.fill(1.0)
    desk.bar(104.0)
    assert desk.venue.position() == 0.5
    assert desk.laws() == []


def test_a_lost_stop_is_replaced():
    desk = Desk()
    desk.fill(1.0)
    for placed in desk.venue.live():
        placed.status = "cancelled"
    desk.bar()
    assert desk.laws() == []
    assert (desk.keeper.counts["auto_fix_sl"], desk.keeper.counts["auto_fix_tp"]) == (1, 1)
    assert (desk.keeper.counts["sl_created"], desk.keeper.counts["tp_created"]) == (2, 2)
    for name in [p.order.client_id for p in desk.venue.live()]:
        del desk.venue.orders[name]  # the venue forgot them
    desk.bar()
    assert desk.laws() == []
    assert desk.keeper.counts["auto_fix_sl"] == 2


def test_a_stop_whose_sending_timed_out_is_never_there_twice():
    for fault in ("reached", "lost"):
        desk = Desk([fault], take_profit_pct=None)
        desk.fill(1.0)
        desk.bar()
        assert [o.quantity for o in desk.live("stop")] == [-1.0]
        assert desk.venue.double_sent == []


def test_while_the_new_stop_is_in_doubt_the_old_one_stays():
    desk = Desk(take_profit_pct=None, max_retries=0)
    desk.fill(1.0)
    desk.line.faults = ["lost"]
    desk.fill(1.0)
    assert [o.quantity for o in desk.live("stop")] == [-1.0]
    desk.bar()
    assert desk.laws() == []


def test_a_cancel_that_fails_is_tried_again():
    desk = Desk(take_profit_pct=None)
    desk.fill(1.0)
    desk.line.faults = [None, "lost"]
    desk.fill(1.0)
    assert len(desk.live("stop")) == 2
    assert desk.keeper.status(BTC).retiring == 1
    desk.bar()
    assert desk.laws() == []
    assert desk.keeper.counts["cancels_failed"] == 1


def test_without_a_line_the_stop_comes_as_soon_as_there_is_one():
    desk = Desk(["down"] * 3, take_profit_pct=None)
    desk.fill(1.0)
    assert not desk.keeper.status(BTC).is_protected
    while not desk.keeper.status(BTC).is_protected:
        desk.bar()
    assert desk.now_s <= 180
    assert desk.laws() == []


def test_a_price_that_passed_a_missing_stop_is_followed_at_the_market():
    desk = Desk(["refused"] * 3, take_profit_pct=None)
    desk.fill(1.0)
    desk.line.faults = ["refused"] * 3
    desk.bar(97.5)
    assert desk.keeper.counts["late_exits"] == 1
    desk.bar()
    assert desk.venue.position() == 0.0
    assert desk.laws() == []


def test_a_trailing_stop_follows_the_best_price_and_never_back():
    desk = Desk(trailing=True, take_profit_pct=None)
    desk.fill(1.0)
    stops = []
    for price in (101.0, 105.0, 104.0, 105.01, 110.0, 108.5):
        desk.bar(price)
        stops.append(desk.keeper.status(BTC).stop_price)
        assert desk.laws() == []
    expected = [98.98, 102.9, 102.9, 102.9, 107.8, 107.8]
    assert stops == pytest.approx(expected)


def test_a_fixed_stop_does_not_move():
    desk = Desk(take_profit_pct=None)
    desk.fill(1.0)
    desk.bar(150.0)
    assert desk.keeper.status(BTC).stop_price == 98.0


def test_no_feed_is_no_reason_to_lose_a_stop():
    desk = Desk()
    desk.fill(1.0)
    desk.bar(feed=False)
    assert desk.laws() == []


def test_a_fill_has_a_price():
    with pytest.raises(ConfigError):
        Desk().keeper.on_fill(BTC, 1.0, 0.0, 0)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.0, 0.5, 1.0, -0.5, -1.0]),
            st.floats(90, 110),
            st.lists(st.sampled_from(FAULTS), max_size=4),
        ),
        max_size=10,
    ),
    st.booleans(),
    st.booleans(),
)
def test_whatever_happens_some_calm_bars_later_all_is_in_order(steps, trailing, slow):
    desk = Desk(trailing=trailing, slow=slow)
    for quantity, price, faults in steps:
        desk.line.faults = list(faults)
        if quantity:
            desk.fill(quantity)
        desk.bar(price)
        assert desk.venue.double_sent == []
    desk.line.faults = []
    for _ in range(4):
        desk.bar()
    assert desk.laws() == []


class NotResized(ProtectionKeeper):
    """Planted: a stop that is there is good enough."""

    def _guard(self, symbol, book, wanted, now_ns):
        if wanted[0] not in book.guards:
            super()._guard(symbol, book, wanted, now_ns)


class NotReplaced(ProtectionKeeper):
    """Planted: nobody looks after the guards."""

    def _watch(self, symbol, book, now_ns):
        pass


class NotTakenBack(ProtectionKeeper):
    """Planted: what is no longer wanted is forgotten."""

    def _retire(self, symbol, book, now_ns):
        book.retiring = []


@pytest.mark.parametrize("plant", [NotResized, NotReplaced, NotTakenBack])
def test_planted_faults_are_seen(plant):
    desk = Desk(make=plant)
    desk.fill(0.4)
    desk.fill(0.6)
    for placed in desk.venue.live()[:1]:
        placed.status = "cancelled"
    desk.bar()
    assert desk.laws()


# the drawdown breaker


class OneBarLate(DrawdownBreaker):
    """Planted: it looks at the equity of the bar before."""

    last = 0.0

    def on_bar(self, bar, equity, now_ns):
        seen, self.last = self.last or equity, equity
        return super().on_bar(bar, seen, now_ns)


def tripped(make, equities, limit=0.15):
    breaker = make(limit)
    for bar, equity in enumerate(equities):
        breaker.on_bar(bar, equity, bar * 60 * S)
    return breaker.tripped_bar


def test_it_trips_in_the_bar_that_reaches_the_limit():
    assert tripped(DrawdownBreaker, [100, 120, 102.01, 102.0, 101.0]) == 3
    assert tripped(DrawdownBreaker, [100, 120, 102.01]) is None
    assert tripped(OneBarLate, [100, 120, 102.01, 102.0, 101.0]) == 4


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_it_trips_first_where_the_drawdown_first_reaches_the_limit(equities, limit):
    peak, first = 0.0, None
    for bar, equity in enumerate(equities):
        peak = max(peak, equity)
        if first is None and equity <= peak * (1.0 - limit):
            first = bar
    assert tripped(DrawdownBreaker, equities, limit) == first


def test_it_flattens_until_all_is_flat_and_stays_tripped():
    desk = Desk(take_profit_pct=None, stop_loss_pct=0.5)
    breaker = DrawdownBreaker(0.15, [desk.keeper])
    desk.fill(1.0)
    assert not breaker.on_bar(0, 100.0, 0)
    desk.line.faults = ["down", "down", "down"]
    assert breaker.on_bar(1, 84.0, desk.now_s * S)
    for bar in range(2, 6):
        desk.bar()
        assert breaker.on_bar(bar, 100.0, desk.now_s * S)
    desk.bar()
    assert desk.venue.position() == 0.0
    assert desk.venue.live() == []
    assert breaker.tripped_bar == 1
    breaker.reset()
    assert not breaker.on_bar(9, 84.0, 0)


def test_a_limit_is_a_share():
    for limit in (0.0, 1.5, -0.1):
        with pytest.raises(ConfigError):
            DrawdownBreaker(limit)
