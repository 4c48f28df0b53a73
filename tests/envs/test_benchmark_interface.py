from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.envs.benchmark.calls import METHODS
from agent_gym.envs.benchmark.interface import SimulationA2AInterface
from agent_gym.envs.benchmark.session import NEXT_TICK, Session
from tests.envs.benchmark_samples import made, world

NAMES = (
    "getPredictions",
    "buyShares",
    "sellShares",
    "getPerpetuals",
    "openPosition",
    "closePosition",
    "getFeed",
    "createPost",
    "getChats",
    "joinGroup",
    "getBalance",
    "getPortfolio",
    "getPositions",
    "getDashboard",
)


def market(**rules):
    return SimulationA2AInterface(world(**rules))


def good(one, method, **params):
    reply = one.call(method, params)
    assert reply.ok, reply.error
    json.dumps(reply.result, allow_nan=False)
    return reply.result


def test_there_are_fourteen_methods():
    assert sorted(METHODS) == sorted(f"a2a.{name}" for name in NAMES)


def test_buying_and_selling_shares():
    one = market()
    bought = good(one, "a2a.buyShares", marketId="pm-1", outcome="YES", amount=500.0)
    assert bought["positionId"] == "pos-1"
    assert bought["shares"] * bought["avgPrice"] + bought["fee"] == pytest.approx(500.0, abs=1e-6)
    assert good(one, "a2a.getBalance")["balance"] == pytest.approx(9_500.0)
    held = good(one, "a2a.getPositions")["predictionPositions"]
    assert [row["size"] for row in held] == [pytest.approx(bought["shares"])]
    sold = good(one, "a2a.sellShares", marketId="pm-1", shares=bought["shares"] / 2)
    assert sold["proceeds"] == pytest.approx(250.0, rel=0.05)
    rest = good(one, "a2a.sellShares", marketId="pm-1")
    assert rest["shares"] == pytest.approx(bought["shares"] / 2)
    assert good(one, "a2a.getPositions")["predictionPositions"] == []
    assert not one.call("a2a.sellShares", {"marketId": "pm-1"}).ok


def test_opening_and_closing_a_perpetual_takes_a_tick_each():
    place = world()
    one = SimulationA2AInterface(place)
    ticker = place.snapshot.perpetuals[0].ticker
    order = {"ticker": ticker, "side": "SHORT", "size": 1_000.0, "leverage": 2.0}
    opened = good(one, "a2a.openPosition", **order)
    assert opened["entryPrice"] is None
    assert not one.call("a2a.openPosition", order).ok  # one is on its way
    price = place.floor.prices[-1]
    place.end_tick()
    (held,) = good(one, "a2a.getPositions")["perpPositions"]
    assert held["positionId"] == opened["positionId"]
    assert held["entryPrice"] == pytest.approx(price, rel=2e-3)
    assert held["entryPrice"] < price  # a seller pays the spread
    assert held["size"] * price == pytest.approx(2_000.0, rel=1e-6)
    assert not one.call("a2a.openPosition", order | {"side": "LONG"}).ok
    good(one, "a2a.closePosition", positionId=held["positionId"])
    place.end_tick()
    assert good(one, "a2a.getPositions")["perpPositions"] == []
    assert place.floor.book.closed[-1].closed_tick == 2


def test_an_order_beyond_the_margin_is_refused():
    one = market()
    size = {"ticker": "perp-1", "side": "LONG", "size": 5_000.0, "leverage": 1.0}
    assert "free margin" in one.call("a2a.openPosition", size).error
    assert "lend" in one.call("a2a.openPosition", size | {"size": 1.0, "leverage": 50}).error


def test_the_feed_shows_posts_up_to_now_and_ones_own():
    place = world()
    one = SimulationA2AInterface(place)
    assert good(one, "a2a.getFeed")["posts"] == []
    for _ in range(20):
        place.end_tick()
    good(one, "a2a.createPost", content="hello", marketId="pm-1")
    posts = good(one, "a2a.getFeed")["posts"]
    assert posts[-1]["content"] == "hello"
    assert 1 < len(posts) <= 20
    assert max(post["tick"] for post in posts) <= 20


def test_chats_open_to_members():
    place = world()
    one = SimulationA2AInterface(place)
    for _ in range(25):
        place.end_tick()
    assert all(chat["messages"] == [] for chat in good(one, "a2a.getChats")["chats"])
    good(one, "a2a.joinGroup", groupId="group-1")
    chats = {chat["id"]: chat for chat in good(one, "a2a.getChats")["chats"]}
    assert len(chats["group-1"]["messages"]) == min(20, chats["group-1"]["messageCount"])
    assert chats["group-2"]["messages"] == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("a2a.nothing", {}),
        ("a2a.buyShares", {}),
        ("a2a.buyShares", {"marketId": "pm-9", "outcome": "YES", "amount": 1}),
        ("a2a.buyShares", {"marketId": "pm-1", "outcome": "MAYBE", "amount": 1}),
        ("a2a.buyShares", {"marketId": "pm-1", "outcome": "YES", "amount": -1}),
        ("a2a.buyShares", {"marketId": "pm-1", "outcome": "YES", "amount": float("nan")}),
        ("a2a.buyShares", {"marketId": "pm-1", "outcome": "YES", "amount": 1e9}),
        ("a2a.sellShares", {"marketId": "pm-1"}),
        ("a2a.openPosition", {"ticker": "NONE", "side": "LONG", "size": 1}),
        ("a2a.closePosition", {"positionId": "pos-1"}),
        ("a2a.joinGroup", {"groupId": "g"}),
        ("a2a.createPost", {"content": ""}),
        ("a2a.createPost", {"content": "x", "marketId": "pm-9"}),
        ("a2a.getFeed", {"extra": 1}),
        ("a2a.getFeed", [1]),
    ],
)
def test_invalid_calls_are_counted_never_fatal(method, params):
    one = market()
    reply = one.call(method, params)
    assert not reply.ok
    assert reply.error
    assert one.invalid == 1
    assert [record.success for record in one.records] == [False]
    assert good(one, "a2a.getBalance")["balance"] == 10_000.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from([*METHODS, "x"]), json_values), max_size=8))
@settings(max_examples=25)
def test_garbage_never_raises(calls):
    one = market()
    for method, params in calls:
        one.call(method, params)
        one.handle({"method": method, "params": params, "id": 1})
        one.handle(params)
    assert all(m.imbalance() == 0.0 for m in one._floor.questions)


def test_calls_in_a_tick_and_in_an_episode_are_limited():
    place = world(calls_per_tick=3)
    one = SimulationA2AInterface(place, max_calls=5)
    answers = [one.call("a2a.getBalance").ok for _ in range(4)]
    assert answers == [True, True, True, False]
    place.end_tick()
    assert [one.call("a2a.getBalance").ok for _ in range(3)] == [True, False, False]


def test_no_reply_tells_an_outcome_before_its_tick():
    place = world()
    one = SimulationA2AInterface(place)
    spec = place.snapshot.predictions[0]
    while place.floor.tick < spec.resolve_tick:
        rows = {row["id"]: row for row in good(one, "a2a.getPredictions")["predictions"]}
        assert (rows[spec.id]["resolved"], rows[spec.id]["outcome"]) == (False, None)
        place.end_tick()
    rows = {row["id"]: row for row in good(one, "a2a.getPredictions")["predictions"]}
    assert rows[spec.id]["outcome"] == ("YES" if made().truth.outcomes[spec.id] else "NO")


def test_records_hold_no_correctness():
    one = market()
    good(one, "a2a.buyShares", marketId="pm-1", outcome="YES", amount=10.0)
    (record,) = one.records
    assert not [name for name in record.__slots__ if "correct" in name.lower()]


def test_a_session_plays_to_the_end():
    session = Session(world())
    ticks = 0
    while not session.finished:
        reply = session.handle({"jsonrpc": "2.0", "id": ticks, "method": NEXT_TICK})
        ticks += 1
        assert reply["result"]["tick"] == ticks
    assert ticks == 40
    assert session.call(NEXT_TICK).error == "the episode is over"
    over = session.call("a2a.buyShares", {"marketId": "pm-1", "outcome": "YES", "amount": 1.0})
    assert not over.ok
    assert good(session.market, "a2a.getDashboard")["totalPnl"] == 0.0
