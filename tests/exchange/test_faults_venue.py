"""A venue behind a bad line: what was sent twice trades once, and no money is lost on the way."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from venue_samples import SYMBOL, limit, market
from wild_orders import WISHES, Books, market_sets

from agent_gym.core import ConfigError, Seeds, VenueError
from agent_gym.core.clock import HOUR_NS
from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.faults import (
    ClientOrder,
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    FaultPlan,
    PartialRule,
    RateLimitRule,
    RejectRule,
    TimeoutRule,
    VenueDisconnected,
    VenueGateway,
    VenueRateLimited,
    VenueRejected,
    VenueTimeout,
    open_line,
)
from agent_gym.exchange.orders import Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from tests.samples import flat_bars

ATTEMPTS = 40


def target(qty):
    return Order(SYMBOL, OrderKind.TARGET, qty)


def line(*rules, seed=3, bars=None, costs=None):
    venue = Venue([bars or flat_bars(20)], costs or Costs.free())
    return venue, open_line(venue, FaultPlan(rules=rules, bar_ns=HOUR_NS), Seeds(seed))


def test_a_clear_line_is_the_venue_itself():
    venue, gateway = line()
    ack = gateway.submit(ClientOrder("x", market(2.0)), venue.now)
    assert (ack.client_id, ack.quantity, ack.ts) == ("x", 2.0, venue.now)
    assert [trade.qty for trade in venue.advance()] == [2.0]
    assert gateway.positions(venue.now).quantities == {SYMBOL: 2.0}
    assert gateway.cancel("x", venue.now).quantity == 0.0
    gateway.submit(ClientOrder("y", limit(-2.0, 200.0)), venue.now)
    assert gateway.cancel("y", venue.now).quantity == -2.0
    venue.advance()
    assert venue.order(2).status is OrderStatus.CANCELLED


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_timed_out_order_that_is_sent_again_trades_once(share):
    venue, gateway = line(TimeoutRule(at=("submit:x:0",), reached_share=share))
    order = ClientOrder("x", market(2.0))
    with pytest.raises(VenueTimeout):
        gateway.submit(order, venue.now)
    assert gateway.submit(order, venue.now).quantity == 2.0
    assert [trade.qty for trade in venue.advance()] == [2.0]
    # A week later the same id is still the same order.
    for _ in range(7):
        assert gateway.submit(order, venue.now).quantity == 2.0
        assert venue.advance() == []


def test_a_new_id_is_a_new_order_and_an_id_belongs_to_one():
    venue, gateway = line(TimeoutRule(at=("submit:x:0",), reached_share=1.0))
    with pytest.raises(VenueTimeout):
        gateway.submit(ClientOrder("x", market(2.0)), venue.now)
    gateway.submit(ClientOrder("x again", market(2.0)), venue.now)
    assert [trade.qty for trade in venue.advance()] == [2.0, 2.0]
    direct = VenueGateway(venue)
    direct.submit(ClientOrder("y", market(1.0)), venue.now)
    with pytest.raises(VenueRejected, match="one order"):
        direct.submit(ClientOrder("y", market(3.0)), venue.now)
    assert [trade.qty for trade in venue.advance()] == [1.0]


def test_a_client_that_comes_back_on_a_new_line_finds_its_orders():
    venue = Venue([flat_bars(20)], Costs.free())
    inner = VenueGateway(venue)
    order = ClientOrder("x", market(2.0))
    first = inner.submit(order, venue.now)
    venue.advance()
    assert inner.submit(replace(order, share=0.5), venue.now) == replace(first, ts=venue.now)
    assert venue.advance() == []
    assert inner.placed("x").status is OrderStatus.FILLED
    with pytest.raises(VenueRejected, match="no such order"):
        inner.placed("z")


def test_a_partial_acceptance_is_cut_to_lots_and_goes_a_part_of_the_way():
    rule = PartialRule(rate=1.0, smallest=0.6, largest=0.6)
    bars = flat_bars(20, kind="perpetual")
    bars = replace(bars, instrument=bars.instrument.model_copy(update={"lot": 0.5}))
    venue, gateway = line(rule, bars=bars)
    assert gateway.submit(ClientOrder("a", market(4.0)), venue.now).quantity == 2.0  # not 2.4
    venue.advance()
    ack = gateway.submit(ClientOrder("b", target(12.0)), venue.now)
    assert ack.quantity == pytest.approx(0.6)
    assert [trade.qty for trade in venue.advance()] == [6.0]  # from 2 a part of the way to 12
    assert gateway.submit(ClientOrder("c", target(0.0)), venue.now).quantity < 1.0
    assert [trade.qty for trade in venue.advance()] == [-4.5]  # never further than was asked
    with pytest.raises(VenueRejected, match="less than a lot"):
        gateway.submit(ClientOrder("d", market(0.5)), venue.now)
    assert venue.advance() == []


def test_what_the_venue_refuses_is_refused_and_what_never_left_is_not_there():
    venue, gateway = line(
        RejectRule(at=("submit:r:0",), reasons=("no",)),
        DisconnectRule(windows=((int(1.8e18), int(1.9e18)),)),
        RateLimitRule(max_requests=3, window_ns=HOUR_NS),
    )
    with pytest.raises(VenueRejected, match="no"):
        gateway.submit(ClientOrder("r", market(1.0)), venue.now)
    with pytest.raises(VenueError, match="quantity is 0"):
        gateway.submit(ClientOrder("q", market(0.0)), venue.now)
    gateway.positions(venue.now)
    with pytest.raises(VenueRateLimited):
        gateway.submit(ClientOrder("l", market(1.0)), venue.now)
    with pytest.raises(VenueDisconnected):
        gateway.submit(ClientOrder("d", market(1.0)), int(1.85e18))
    assert venue.advance() == []
    assert venue.open_orders() == []


def test_times_and_plans_that_do_not_fit_the_venue_are_refused():
    venue, gateway = line()
    with pytest.raises(VenueError, match="older than the venue"):
        gateway.submit(ClientOrder("x", market(1.0)), venue.now - 1)
    with pytest.raises(ConfigError, match="other bars"):
        open_line(venue, FaultPlan(), Seeds(0))
    with pytest.raises(ConfigError, match="account"):
        VenueGateway(venue, "nobody")


RATES = st.floats(0.0, 0.5)
PLANS = st.builds(
    lambda out, limited, lost, share, refused, part, late, twice: FaultPlan(
        bar_ns=HOUR_NS,
        rules=(
            DisconnectRule(rate=out, bars=2),
            RateLimitRule(rate=limited, max_requests=6, window_ns=HOUR_NS),
            TimeoutRule(rate=lost, reached_share=share),
            RejectRule(rate=refused, on=("submit", "cancel")),
            PartialRule(rate=part),
            DelayedAckRule(rate=late),
            DuplicateAckRule(rate=twice),
        ),
    ),
    out=st.floats(0.0, 0.2),
    limited=RATES,
    lost=RATES,
    share=st.floats(0.0, 1.0),
    refused=RATES,
    part=RATES,
    late=RATES,
    twice=RATES,
)
DAYS = st.lists(
    st.tuples(st.lists(WISHES, max_size=3), st.lists(st.integers(0, 20), max_size=2)), max_size=15
)


class Client:
    """Sends each order under its own id and, while no answer comes, sends it again."""

    def __init__(self, gateway, fresh_ids=False):
        self.gateway, self.fresh_ids = gateway, fresh_ids
        self.sent = {}
        self.pending = []
        self.acks = {}

    def trade(self, ts):
        waiting, self.pending = self.pending, []
        for order in waiting:
            if not self._answered(order, ts):
                self.pending.append(order)

    def _answered(self, order, ts):
        for attempt in range(3):
            name = f"{order.client_id}/{attempt}" if self.fresh_ids else order.client_id
            try:
                self.acks[order.client_id] = self.gateway.submit(replace(order, client_id=name), ts)
            except VenueTimeout:
                continue
            except (VenueDisconnected, VenueRateLimited):
                return False
            except VenueError:
                return True  # refused: it is not sent again
            return True
        return False

    def take_back(self, client_id, ts):
        try:
            self.gateway.cancel(client_id, ts)
        except VenueError:
            return


def run_client(markets, plan, days, seed, costs):
    """Play the days and return client, inner gateway and every trade, with the books checked."""
    rules = AccountRules(max_leverage=3.0)
    venue = Venue(markets, costs, rules, accounts=("a", "b"))
    gateway = open_line(venue, plan, Seeds(seed), "a")
    client, books, trades = Client(gateway), Books(markets, rules), []
    queue = list(days)
    while not venue.finished:
        wishes, cancels = queue.pop(0) if queue else ([], [])
        for wish in wishes:
            order = ClientOrder(f"o{len(client.sent)}", wish.order(markets, venue.t))
            client.sent[order.client_id] = order
            client.pending.append(order)
        client.trade(venue.now)
        for k in cancels:
            client.take_back(f"o{k}", venue.now)
        made = venue.advance()
        books.pay_funding(venue.t)
        for trade in made:
            books.take(trade)
        books.check(venue)
        trades += made
    return client, gateway, trades


@settings(deadline=None)
@given(
    markets=market_sets(n=24),
    plan=PLANS,
    days=DAYS,
    seed=st.integers(0, 1000),
    latency=st.integers(0, 2),
)
def test_no_plan_of_faults_loses_money_or_fills_an_order_twice(markets, plan, days, seed, latency):
    costs = Costs(participation=1e-4, latency_bars=latency)
    client, gateway, trades = run_client(markets, plan, days, seed, costs)
    inner = gateway._inner
    numbers = {}
    for client_id in client.sent:
        if client_id in inner._taken:
            numbers[inner.placed(client_id).id] = client_id
    assert len(numbers) == len(inner._taken)  # one order an id
    filled = defaultdict(float)
    for trade in trades:
        if not trade.forced:
            filled[numbers[trade.order]] += abs(trade.qty)
    for client_id, units in filled.items():
        order = client.sent[client_id].order
        assert units == pytest.approx(inner.placed(client_id).filled)
        if order.kind is not OrderKind.TARGET:
            assert units <= abs(order.qty) * (1 + 1e-9)
        if client_id in client.acks:
            taken = client.acks[client_id].quantity
            assert taken == inner._taken[client_id].quantity
            if order.kind is not OrderKind.TARGET:
                assert units <= abs(taken) * (1 + 1e-9)


@settings(deadline=None, max_examples=40)
@given(
    markets=market_sets(n=24),
    lost=st.floats(0.0, 0.6),
    share=st.floats(0.0, 1.0),
    days=DAYS,
    seed=st.integers(0, 1000),
)
def test_lost_answers_and_retries_at_the_same_close_change_no_trade(
    markets, lost, share, days, seed
):
    def noisy(*rules):
        plan = FaultPlan(rules=rules, bar_ns=HOUR_NS)
        venue = Venue(markets, Costs(), accounts=("a",))
        gateway = open_line(venue, plan, Seeds(seed), "a")
        log, count = [], 0
        queue = list(days)
        while not venue.finished:
            wishes, _ = queue.pop(0) if queue else ([], [])
            for wish in wishes:
                order = ClientOrder(f"o{count}", wish.order(markets, venue.t))
                count += 1
                for _ in range(ATTEMPTS):
                    try:
                        gateway.submit(order, venue.now)
                    except VenueTimeout:
                        continue
                    except VenueError:
                        break
                    break
                else:
                    pytest.fail("no answer in so many attempts")
            log.append(venue.advance())
        return log, venue.account("a")

    clear = noisy()
    assert clear == noisy(
        TimeoutRule(rate=lost, reached_share=share),
        DelayedAckRule(rate=0.3),
        DuplicateAckRule(rate=0.3),
    )
    assert clear == noisy(DelayedAckRule(rate=1.0))


@given(seed=st.integers(0, 30))
def test_the_same_seed_gives_the_same_trades(seed):
    plan = FaultPlan.from_rates({"timeout": 0.4, "reject": 0.2, "partial": 0.3}, bar_ns=HOUR_NS)

    def run(root):
        venue = Venue([flat_bars(30, volume=50.0)], Costs())
        client = Client(open_line(venue, plan, Seeds(root)))
        log = []
        for k in range(25):
            client.pending.append(ClientOrder(f"o{k}", market((-1.0) ** k * (1 + k % 3))))
            client.trade(venue.now)
            log += venue.advance()
        return log

    assert run(seed) == run(seed)
    assert run(seed) != run(seed + 1000)


def test_a_client_that_takes_a_new_id_for_a_retry_trades_twice():
    def traded(fresh_ids):
        venue, gateway = line(TimeoutRule(rate=0.5, reached_share=1.0))
        client = Client(gateway, fresh_ids)
        client.pending = [ClientOrder(f"o{k}", market(1.0)) for k in range(12)]
        units = 0.0
        for _ in range(5):
            client.trade(venue.now)
            units += sum(trade.qty for trade in venue.advance())
        return units

    assert traded(fresh_ids=False) == 12.0
    assert traded(fresh_ids=True) > 12.0
