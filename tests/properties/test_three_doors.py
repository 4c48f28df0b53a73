"""One kernel, three doors: series, vector environment and world agree bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.team import Independent
from agent_gym.core import Ref, Seeds, make, names
from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.types import EpisodeStart, Role
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketVectorEnv, MarketWorld
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from agent_gym.rollouts import play
from tests.samples import random_bars

RULES = [name for name in names("agent") if name.startswith("rules/")]
COSTS = st.builds(
    Costs,
    maker_bps=st.floats(0, 20),
    taker_bps=st.floats(0, 50),
    half_spread_bps=st.floats(0, 10),
    slippage_bps=st.floats(0, 10),
    impact=st.sampled_from([0.0, 0.5, 2.0]),
    participation=st.sampled_from([None, 1e-5, 0.1]),
    latency_bars=st.integers(0, 3),
)
RULEBOOK = st.builds(
    AccountRules,
    cash=st.sampled_from([1.0, 10_000.0, 1e8]),
    max_leverage=st.sampled_from([1.0, 3.0]),
    allow_short=st.booleans(),
)
FUNDING = st.sampled_from([-5e-3, 1e-4, 2e-2])
SHORT = {"allow_short": True}
PARAMS = {
    "rules/breakout": SHORT | {"entry_bars": 6, "exit_bars": 3},
    "rules/mean-reversion": SHORT | {"window": 6, "entry_z": 1.0},
    "rules/momentum": SHORT | {"lookback": 5},
    "rules/random": SHORT | {"hold_bars": 3},
    "rules/rsi": SHORT | {"period": 4},
    "rules/sma-cross": SHORT | {"fast": 3, "slow": 8},
    "rules/vol-target": {"warmup_bars": 5, "half_life_bars": 6.0},
}


class Equity:
    """A sink that notes the account's equity after each step."""

    def __init__(self, world: MarketWorld) -> None:
        self._world = world
        self.values: list[float] = []

    def write(self, step: object) -> None:
        self.values.append(float(self._world.lanes.state["eq"][0]))

    def close(self) -> None: ...


def agent_of(name):
    return make("agent", Ref(use=name, params=PARAMS.get(name, {})))


def config_of(costs, rules):
    return MarketConfig(
        actions=ContinuousTargets(),
        episode_bars=None,
        random_start=False,
        warmup_bars=0,
        features=(),
        costs=costs,
        account=rules,
    )


def through_world(bars, agent, config, seeds):
    world = MarketWorld(config, bars)
    sink = Equity(world)
    result = play(world, Independent({Role("trader"): agent}), "e", seeds, [sink])
    return np.array([config.account.cash, *sink.values]), result


def start_of(config, seeds, bars):
    world = MarketWorld(config, bars)
    return world.start(Role("trader"), seeds.child("e").child("agent", "trader"))


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    costs=COSTS,
    rules=RULEBOOK,
    kind=st.sampled_from(["spot", "perpetual"]),
    price=st.sampled_from([1e-9, 100.0, 1e9]),
    funding=FUNDING,
)
def test_every_rule_gives_the_same_equity_through_all_doors(
    name, seed, costs, rules, kind, price, funding
):
    bars = random_bars(120, seed, kind=kind, start_price=price, funding=funding, sigma=0.02)
    config, seeds = config_of(costs, rules), Seeds(seed)
    start: EpisodeStart = start_of(config, seeds, bars)
    agent = agent_of(name)
    columns = {need: getattr(bars, need) for need in agent.needs}
    targets = agent.targets(start, columns)
    whole = run_series(bars, targets, costs, rules)

    stepped, result = through_world(bars, agent, config, seeds)
    n = len(stepped)
    assert stepped.tobytes() == whole.equity[:n].tobytes()
    assert n == len(bars) or whole.equity[n - 1] <= rules.ruin * rules.cash
    assert result.total_reward[Role("trader")] == pytest.approx(
        np.log(max(stepped[-1], rules.ruin * rules.cash) / rules.cash), abs=1e-9
    )

    lanes = MarketVectorEnv(3, bars, config=config, copy=False)
    lanes.reset(seed=0)
    rule = agent_of(name).lanes([lanes.start(start.seeds)] * 3)
    for t in range(n - 1):
        lanes.step(rule.act_lanes(lanes.columns(rule.needs)))
        assert lanes.lanes.state["eq"].tolist() == [whole.equity[t + 1]] * 3
        assert lanes.lanes.state["pos"].tolist() == [whole.position[t + 1]] * 3
    if n == len(bars):
        assert lanes.lanes.state["fund"].tolist() == [whole.totals["funding"]] * 3
    held = np.flatnonzero(whole.position[:-1]) + 1
    owes = kind == "perpetual" and bars.extra["funding"][held].any()
    assert (whole.totals["funding"] != 0.0) == owes


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    costs=COSTS,
    rules=RULEBOOK,
    kind=st.sampled_from(["spot", "perpetual"]),
    funding=FUNDING,
)
def test_target_orders_at_the_venue_equal_the_whole_series(seed, costs, rules, kind, funding):
    bars = random_bars(80, seed, kind=kind, funding=funding, sigma=0.02)
    units = np.repeat(Seeds(seed).child("units").rng().uniform(-40, 60, 20), 4)
    whole = run_series(bars, units, costs, rules, sizing="units")
    venue = Venue([bars], costs, rules)
    last, equity, positions = 0.0, [rules.cash], [0.0]
    while not venue.finished:
        if units[venue.t] != last:
            last = units[venue.t]
            venue.submit(Order("BTC/USDT", OrderKind.TARGET, last))
        venue.advance()
        view = venue.account()
        equity.append(view.equity)
        positions.append(view.positions["BTC/USDT"])
    assert np.array(equity).tobytes() == whole.equity.tobytes()
    assert positions == whole.position.tolist()
    assert venue.account().funding == whole.totals["funding"]


def test_a_planted_difference_is_caught():
    bars = random_bars(120, 1, funding=1e-4)
    config, seeds = config_of(Costs(), AccountRules()), Seeds(1)
    agent = agent_of("rules/sma-cross")
    targets = agent.targets(start_of(config, seeds, bars), {"close": bars.close})
    stepped, _ = through_world(bars, agent, config, seeds)
    other = run_series(bars, targets, Costs(taker_bps=10.0000001), AccountRules())
    assert stepped.tobytes() != other.equity.tobytes()
    dearer = random_bars(120, 1, funding=1.0000001e-4)
    other = run_series(dearer, targets, Costs(), AccountRules())
    assert stepped.tobytes() != other.equity.tobytes()


def test_minutes_and_hours_give_vol_target_other_targets_in_every_door():
    hours = random_bars(120, 4, funding=1e-4)
    minutes = replace(hours, period_ns=MINUTE_NS, ts=hours.ts[0] + MINUTE_NS * np.arange(120))
    config, seeds = config_of(Costs(), AccountRules()), Seeds(4)
    ends = {}
    for bars in (hours, minutes):
        agent = agent_of("rules/vol-target")
        start = start_of(config, seeds, bars)
        assert start.period_ns == bars.period_ns
        whole = run_series(bars, agent.targets(start, {"close": bars.close}))
        stepped, _ = through_world(bars, agent, config, seeds)
        assert stepped.tobytes() == whole.equity.tobytes()
        env = MarketVectorEnv(2, bars, config=config)
        env.reset(seed=0)
        rule = agent_of("rules/vol-target").lanes([env.start(start.seeds)] * 2)
        for _ in range(119):
            env.step(rule.act_lanes(env.columns(rule.needs)))
        assert env.lanes.state["eq"].tolist() == [whole.equity[-1]] * 2
        ends[bars.period_ns] = whole.equity[-1]
    assert ends[hours.period_ns] != ends[MINUTE_NS]
