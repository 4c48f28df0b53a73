from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.features import ACCOUNT_FEATURES, MARKET_FEATURES
from agent_gym.envs.benchmark.interface import SimulationA2AInterface
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.exchange.costs import Costs
from agent_gym.rollouts.contracts import check_world
from tests.envs.benchmark_samples import made, world

LAST = 40


def hold(one: BenchmarkWorld, *targets: float) -> float:
    return one.advance(np.array(targets)).reward


def test_it_keeps_the_contract_of_a_world():
    check_world(lambda: world(0))


def test_the_registry_makes_it_from_a_file(tmp_path):
    path = made().save(tmp_path)
    one = make("world", Ref(use="benchmark", params={"snapshot": str(path)}))
    assert isinstance(one, BenchmarkWorld)
    assert one.snapshot.id == made().snapshot.id


def test_features_and_actions_are_as_announced():
    one = world()
    start = one.start(TRADER, Seeds(0))
    names = [f"{m}/{f}" for m in ("pm-1", "pm-2", "perp-1") for f in MARKET_FEATURES]
    assert start.feature_names == (*names, *(f"account/{f}" for f in ACCOUNT_FEATURES))
    assert (start.actions.n, start.actions.low, start.actions.high) == (None, -1.0, 1.0)
    with pytest.raises(AgentError):
        one.start("bank", Seeds(0))


def test_doing_nothing_earns_exactly_nothing():
    one = world()
    assert sum(hold(one, 0, 0, 0) for _ in range(LAST)) == 0.0
    with pytest.raises(VenueError, match="over"):
        hold(one, 0, 0, 0)


@given(st.integers(0, 2**31))
@settings(max_examples=10)
def test_rewards_add_up_to_the_change_of_equity(seed):
    one, rng = world(), Seeds(seed).rng()
    total = sum(one.advance(rng.uniform(-1.5, 1.5, 3)).reward for _ in range(LAST))
    assert total == pytest.approx(one.floor.equity() / 10_000.0 - 1.0, abs=1e-9)
    assert all(market.imbalance() == 0.0 for market in one.floor.questions)


def test_moving_the_price_oneself_earns_nothing():
    """A purchase lifts the price; marked there, it would pay at once. It costs the fee instead."""
    one = world()
    floor, before = one.floor, one.floor.equity()
    trade = floor.buy_shares(0, "yes", 1_000.0)
    assert trade.price_after > trade.price_before
    assert floor.equity() < before - trade.fee
    floor.sell_shares(0, "yes")
    lost = before - floor.equity()
    assert lost == pytest.approx(2 * trade.fee, rel=0.1)


def test_a_bet_pays_by_its_price():
    """The original paid plus or minus the stake, whatever the price."""
    paid = {}
    for seed in range(6):
        one = world(seed)
        spec, floor = made(seed).snapshot.predictions[0], one.floor
        side = "yes" if made(seed).truth.outcomes[spec.id] else "no"
        trade = floor.buy_shares(0, side, 500.0)
        while floor.tick < spec.resolve_tick:
            one.end_tick()
        gain = floor.held[0].cash - (floor.purse - trade.cost - trade.fee)
        assert gain == pytest.approx(trade.shares)
        assert floor.book.closed[0].flow == pytest.approx(trade.shares - trade.cost - trade.fee)
        paid[round(trade.average_price, 2)] = gain
    assert len(set(paid.values())) > 1


def test_selling_pays_the_price_of_the_moment_not_one_half():
    one = world()
    trade = one.floor.buy_shares(0, "yes", 500.0)
    for _ in range(5):
        one.end_tick()
    sold = one.floor.sell_shares(0, "yes")
    assert -sold.cost / trade.shares == pytest.approx(
        0.5 * (sold.price_before + sold.price_after), rel=0.01
    )


def test_money_has_an_end():
    floor = world().floor
    with pytest.raises(VenueError, match="spends only what it has"):
        floor.buy_shares(0, "yes", floor.purse * 1.2)
    assert floor.invalid == 1


def test_targets_are_shares_of_the_budget():
    one = world()
    hold(one, 1.0, -0.5, 1.0)
    floor = one.floor
    assert floor.held[0].yes == pytest.approx(floor.budget)
    assert floor.held[1].no == pytest.approx(0.5 * floor.budget)
    start = made().snapshot.perpetuals[0].initial_price
    assert floor.desk.position(0) == pytest.approx(3.0 * floor.budget / start, rel=1e-6)
    hold(one, -1.0, 0.0, 0.0)
    assert (floor.held[0].yes, floor.held[1].no) == (0.0, 0.0)
    assert floor.held[0].no == pytest.approx(floor.budget)
    assert floor.desk.position(0) == 0.0


def test_a_target_that_stays_does_not_trade_again():
    one = world()
    hold(one, 1.0, 1.0, 1.0)
    done = len(one.floor.actions)
    for _ in range(5):
        hold(one, 1.0, 1.0, 1.0)
    assert len(one.floor.actions) == done == 3


@pytest.mark.parametrize(
    "action",
    [None, "buy", 0.5, np.zeros(2), np.array([np.nan, 0, 0]), [[1, 2, 3]], {}, [1, "x", 2]],
)
def test_invalid_actions_are_counted_and_change_nothing(action):
    one = world()
    hold(one, 1.0, 0.0, 1.0)
    held = one.floor.held_share(0)
    outcome = one.advance(action)
    assert outcome.info == {"invalid": 1}
    assert one.floor.held_share(0) == held
    assert one.advance(np.array([1.0, 0.0, 1.0])).info is None


def test_funding_is_paid():
    costly = world(1, "quiet", costs=Costs.free())
    hold(costly, 0, 0, 1.0)
    while not costly.floor.finished:
        hold(costly, 0, 0, 1.0)
    assert costly.floor.desk.account.funding != 0.0


def test_a_crash_liquidates_who_is_in_too_deep():
    one = world(0, "bear", leverage=5.0)
    hold(one, 0, 0, 1.0)
    while not one.floor.finished:
        hold(one, 0, 0, 1.0)
    book = one.floor.book
    assert [where.liquidated for where in book.closed] == [True]
    assert one.floor.desk.account.equity < 0.4 * one.floor.purse


def test_positions_are_numbered_by_a_counter():
    """In the original two actions in one millisecond had one id and overwrote each other."""
    floor = world().floor
    for m, side in ((0, "yes"), (0, "no"), (1, "yes"), (1, "no")):
        floor.buy_shares(m, side, 10.0)
    ids = [where.id for where in floor.book.open.values()]
    assert ids == ["pos-1", "pos-2", "pos-3", "pos-4"]


def test_the_future_of_the_recording_does_not_show():
    """Two snapshots that differ after a tick show the same until then."""
    one, other = world(), world()
    cut = 20
    other.floor._flows[cut + 1 :] = [[9_000, -9_000]] * (LAST - cut)
    rows = []
    for each in (one, other):
        rng = Seeds(5).rng()
        rows.append([each.advance(rng.uniform(-1, 1, 3)).observation.features for _ in range(cut)])
    np.testing.assert_array_equal(rows[0], rows[1])


def test_text_is_made_only_if_asked_for():
    assert world().reset(Seeds(0))[TRADER].text is None
    one = world(text=True)
    seen = [one.reset(Seeds(0))[TRADER].text]
    seen += [one.advance(np.array([1.0, 0, 0])).observation.text for _ in range(LAST)]
    assert "Tick 0 of 40" in seen[0]
    assert "you hold +1.00" in seen[1]
    assert any("right" in text and "News of this tick:\n" in text for text in seen)
    assert "Resolved:" in seen[-1]


def test_text_says_nothing_of_an_answer_before_it_is_known():
    one = world(text=True)
    first = min(spec.resolve_tick for spec in one.snapshot.predictions)
    while one.floor.tick < first - 1:
        assert "Resolved" not in one.advance(np.zeros(3)).observation.text


def test_every_rule_of_play_changes_something(tmp_path):
    path = made(0, "bear").save(tmp_path)
    others = {
        "cash": 5_000.0,
        "text": True,
        "leverage": 2.0,
        "max_leverage": 3.0,
        "maintenance_margin": 0.15,
        "prediction_fee_bps": 400.0,
        "costs": {"taker_bps": 80.0, "participation": None},
        "calls_per_tick": 1,
    }
    assert {"snapshot", *others} == set(BenchmarkWorldConfig.model_fields)

    def played(**rules: object) -> tuple[object, ...]:
        one = BenchmarkWorld(BenchmarkWorldConfig(snapshot=path, **rules))
        first = one.reset(Seeds(0))[TRADER]
        market = SimulationA2AInterface(one)
        answers = [market.call("a2a.getBalance").ok for _ in range(2)]
        rows = [one.advance(np.array([1.0, -1.0, 1.0])) for _ in range(LAST)]
        seen = [(row.reward, row.observation.features.tolist()) for row in rows]
        return first.text, first.features.tolist(), seen, answers

    base = played()
    for name, value in others.items():
        assert played(**{name: value}) != base, name


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"leverage": 4.0, "max_leverage": 3.0}, "max_leverage"),
        ({"maintenance_margin": 0.3}, "maintenance_margin"),
        ({"costs": {"latency_bars": 2}}, "latency"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules, words):
    with pytest.raises(ValueError, match=words):
        world(**rules)
