"""The reflexive market as a world: one venue keeps the money, and orders show what they cost."""

import copy

import numpy as np
import pytest

from agent_gym.core import AgentError, ConfigError, Ref, Seeds, VenueError, make
from agent_gym.core.types import SoloWorld
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.envs.reflexive import (
    FILL_COLUMNS,
    ClusteredNews,
    DriftSignal,
    LinearImpact,
    ReflexiveConfig,
    ReflexiveWorld,
    SquareRootImpact,
    simulate,
)
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.series import run_series
from agent_gym.exchange.tape import Tape
from agent_gym.markets.features import compute_features
from agent_gym.rollouts import check_agent, check_world
from tests.envs.reflexive_samples import FREE, STILL, column, echoes, played, small
from tests.samples import random_bars

TARGETS = {"kind": "continuous", "low": -2.0, "high": 2.0}
TRADING = {"actions": TARGETS, "account": AccountRules(max_leverage=2.0)}
DICE = Seeds(9).rng()
WILD = [float(x) for x in np.repeat(DICE.uniform(-1.5, 1.5, 12), 5)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"actions": TARGETS, "impact": SquareRootImpact(), "features": ()},
        {"crowd": echoes(evolve_every_bars=30), "signal": DriftSignal(), "period": "15m"},
        {"costs": Costs(impact=1.0, participation=0.1, latency_bars=2), **TRADING},
    ],
)
def test_the_reflexive_world_keeps_the_contract(fields):
    check_world(lambda: ReflexiveWorld(small(**fields)))


def test_rules_play_in_it():
    check_agent(lambda: make("agent", Ref(use="rules/momentum")), lambda: ReflexiveWorld(small()))
    assert isinstance(ReflexiveWorld(small()), SoloWorld)


@pytest.mark.parametrize("costs", [Costs(impact=0.0, participation=None), Costs(latency_bars=1)])
def test_the_one_venue_keeps_the_money(costs):
    """The finished bars, played whole through the series door, give the same money to the bit."""
    world = ReflexiveWorld(small(costs=costs, **TRADING))
    _, outcomes = played(world, WILD)
    bars, begin = world.bars(), world.config.warmup_bars
    targets = np.zeros(len(bars))
    targets[begin:-1] = WILD
    whole = run_series(bars, targets, costs, world.config.account)
    account = world.ledger()
    assert account["eq"] == whole.equity[-1]
    for name, field in (("fees", "fees"), ("slippage", "slip"), ("realised", "real")):
        assert account[field] == whole.totals[name]
    np.testing.assert_allclose(
        np.cumsum([o.reward for o in outcomes]),
        np.log(whole.equity[begin + 1 :] / world.config.account.cash),
        atol=1e-12,
    )
    laid_out = Tape.of(bars, costs).rows
    assert laid_out.tobytes() == world.lanes.tape.rows.tobytes()
    assert account["trades"] == len(whole.fills) > 5


def test_money_is_conserved():
    world = ReflexiveWorld(small(**TRADING))
    world.reset(Seeds(3))
    opening = world.config.account.cash
    for action in WILD:
        world.advance(action)
        a, close = world.ledger(), world.bars().close[-1]
        assert a["eq"] == pytest.approx(a["cash"] + a["pos"] * close, abs=1e-9)
        unrealised = a["pos"] * (close - a["avg"])
        gains = a["real"] + unrealised - a["fees"] - a["fund"] + a["ins"]
        assert a["eq"] - opening == pytest.approx(gains, abs=1e-8)
    assert a["fees"] > 0.0


def test_own_orders_move_the_bars_by_what_was_filled():
    world = ReflexiveWorld(small(**TRADING))
    _, outcomes = played(world, WILD)
    again = simulate(world.config, Seeds(1), world.flow)
    assert again.bars.fingerprint == world.bars().fingerprint
    idle = ReflexiveWorld(small(**TRADING))
    played(idle, [0.0] * len(WILD))
    assert not np.array_equal(idle.bars().close, world.bars().close)
    begin = world.config.warmup_bars + 1
    assert not idle.flow.any()
    np.testing.assert_array_equal(idle.bars().close[:begin], world.bars().close[:begin])
    np.testing.assert_array_equal(
        np.sign(world.flow[begin:]) != 0.0, column(world, outcomes, "fill_known") == 1.0
    )


@pytest.mark.parametrize("target", [0.5, -0.5])
def test_an_order_pays_half_of_its_impact_and_is_told_so(target):
    impact = LinearImpact(strength=1.0)
    world = ReflexiveWorld(small(**STILL, costs=FREE, impact=impact, actions=TARGETS))
    _, (outcome,) = played(world, [target])
    quantity = float(world.ledger()["pos"])
    moved = np.sign(target) * quantity / world.config.daily_units
    assert np.sign(quantity) == np.sign(target)
    slippage = column(world, [outcome], "fill_slippage_bp")[0]
    paid = 1e4 * np.expm1(0.5 * moved * np.sign(target)) * np.sign(target)
    assert slippage == pytest.approx(paid, rel=1e-6)
    assert slippage > 10.0
    volume = column(world, [outcome], "volume")[0]
    share = column(world, [outcome], "fill_participation")[0]
    assert share == pytest.approx(abs(quantity) / volume, rel=1e-12)
    equity = float(world.ledger()["eq"])
    size = column(world, [outcome], "equity_per_volume")[0]
    close = column(world, [outcome], "close")[0]
    assert size == pytest.approx(equity / (close * world.config.usual_volume), rel=1e-12)
    assert column(world, [world.advance(target)], "fill_known")[0] == 0.0


def test_slippage_holds_the_venues_own_costs():
    costs = Costs.free().model_copy(update={"half_spread_bps": 3.0, "slippage_bps": 4.0})
    calm = {**STILL, "impact": LinearImpact(strength=0.0), "costs": costs, "actions": TARGETS}
    world = ReflexiveWorld(small(**calm))
    _, outcomes = played(world, [0.5, -0.5])
    np.testing.assert_allclose(column(world, outcomes, "fill_slippage_bp"), 7.0, rtol=1e-6)


def test_the_columns_of_a_market_world_are_shown_and_the_fills_beside_them():
    start = ReflexiveWorld(small()).start("trader", Seeds(0))
    market = MarketWorld(MarketConfig(), random_bars(900, 1)).start("trader", Seeds(0))
    assert start.feature_names == (*market.feature_names, *FILL_COLUMNS)
    assert not set(FILL_COLUMNS) & set(market.feature_names)
    assert start.period_ns == 3_600 * 10**9


def test_features_are_those_of_the_finished_bars_and_the_signal_is_known():
    world = ReflexiveWorld(small(signal=DriftSignal(), actions=TARGETS))
    _, outcomes = played(world, [0.5] * 60)
    table = compute_features(world.bars())
    names, rows = table.observations(np.float64)
    for name in names:
        shown = column(world, outcomes, name)
        np.testing.assert_array_equal(shown, rows[21:, names.index(name)], err_msg=name)
    assert column(world, outcomes, "signal_drift").std() > 0.1
    assert (column(world, outcomes, "signal_drift_known") == 1.0).all()


def test_the_signal_tells_of_the_next_news():
    config = ReflexiveConfig(bars=4_000, crowd=None, signal=DriftSignal(strength=0.3, memory=0.5))
    made = simulate(config, Seeds(1))
    news = np.diff(made.worth)
    assert np.corrcoef(made.signal[:-1], news)[0, 1] == pytest.approx(0.287, abs=0.04)
    assert np.corrcoef(made.signal[1:], np.diff(made.worth))[0, 1] < 0.2


def test_a_liquidation_moves_the_next_bar():
    rules = AccountRules(max_leverage=20.0, liquidation_fee_bps=0.0)
    actions = {"kind": "continuous", "low": -20.0, "high": 20.0}
    fields = {**STILL, "sigma": 0.02, "account": rules, "actions": actions, "costs": FREE}
    world = ReflexiveWorld(small(**fields, impact=LinearImpact(strength=0.001)))
    moved = 0
    for seed in range(6):
        world.reset(Seeds(seed))
        held, outcome = 0.0, None
        while not world.ledger()["flags"] & 2 and len(world.bars()) < 60:
            held = float(world.ledger()["pos"])
            outcome = world.advance(15.0)
        if held != 0.0 and world.ledger()["flags"] & 2 and not outcome.terminated:
            t = len(world.bars())
            assert world.ledger()["pos"] == 0.0
            assert world.flow[t - 1] == 0.0
            world.advance(15.0)
            assert world.flow[t] == -held
            moved += 1
    assert moved > 0


def test_an_illegal_action_changes_nothing():
    world, fresh = ReflexiveWorld(small()), ReflexiveWorld(small())
    world.reset(Seeds(1)), fresh.reset(Seeds(1))
    for action in (3, -1, 0.5, float("nan"), "buy", None):
        with pytest.raises(AgentError, match="not legal"):
            world.advance(action)
    assert world.advance(2).observation.features.tobytes() == (
        fresh.advance(2).observation.features.tobytes()
    )


def test_an_episode_ends_and_another_role_is_refused():
    world = ReflexiveWorld(small(bars=3))
    world.reset(Seeds(1))
    with pytest.raises(AgentError, match="no such role"):
        world.step({"maker": 1})
    assert [world.advance(1).truncated for _ in range(3)] == [False, False, True]
    with pytest.raises(VenueError, match="over"):
        world.advance(1)
    world.reset(Seeds(1))
    assert not world.step({"trader": 1})["trader"].truncated


def test_features_are_checked():
    with pytest.raises(ConfigError, match="more than once"):
        ReflexiveWorld(small(features=("return_z", "return_z")))
    with pytest.raises(ConfigError, match="no feature is named"):
        ReflexiveWorld(small(features=("return_zz",)))


OTHER = {
    "bars": 61,
    "warmup_bars": 21,
    "period": "15m",
    "first_price": 5_000.0,
    "daily_volume": 1e6,
    "sigma": 0.01,
    "clustering": ClusteredNews(),
    "pull": 0.3,
    "volume_spread": 0.1,
    "impact": SquareRootImpact(),
    "crowd": None,
    "signal": DriftSignal(),
    "actions": {"kind": "discrete", "levels": (-0.5, 0.0, 0.5)},
    "features": ("return_z",),
    "reward": "pnl",
    "costs": Costs(),
    "account": AccountRules(cash=5_000.0),
}
NESTED = [
    (LinearImpact(), {"strength": 0.2}),
    (SquareRootImpact(), {"strength": 1.0}),
    (SquareRootImpact(), {"transient": 0.9}),
    (SquareRootImpact(), {"half_life_bars": 2.0}),
]


def seen(config):
    world = ReflexiveWorld(config)
    first, outcomes = played(world, [2, 2, 0, 1] * 15)
    rows = [o.observation.features.tobytes() for o in outcomes]
    return (first.features.tobytes(), rows, [o.reward for o in outcomes], outcomes[-1].truncated)


@pytest.mark.parametrize("field", sorted(OTHER))
def test_every_field_acts(field):
    assert set(OTHER) == set(ReflexiveConfig.model_fields)
    assert seen(small()) != seen(small(**{field: OTHER[field]}))


@pytest.mark.parametrize(("impact", "more"), NESTED)
def test_every_number_of_an_impact_acts(impact, more):
    assert seen(small(impact=impact)) != seen(small(impact=impact.model_copy(update=more)))


@pytest.mark.parametrize(
    ("field", "part", "more"),
    [
        ("signal", DriftSignal(), {"strength": 0.5}),
        ("signal", DriftSignal(), {"memory": 0.1}),
        ("clustering", ClusteredNews(), {"spread": 0.1}),
        ("clustering", ClusteredNews(), {"memory": 0.1}),
    ],
)
def test_every_number_of_the_news_acts(field, part, more):
    changed = copy.deepcopy(part).model_copy(update=more)
    assert seen(small(**{field: part})) != seen(small(**{field: changed}))


def test_a_bar_longer_than_a_day_is_refused():
    with pytest.raises(ValueError, match="a day at most"):
        ReflexiveConfig(period="2d")
