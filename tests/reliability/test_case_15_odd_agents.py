"""Cases 11, 15 and 20: extreme prices, actions that are none, agents that know nothing."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.core import Ref, Seeds
from agent_gym.core.types import Decision, Role
from agent_gym.envs import ContinuousTargets, DiscreteTargets, MarketConfig, MarketWorld
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.promotion import judge_promotion
from agent_gym.evaluation.promotion.evidence import Look, alpha_of
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.rollouts import MemorySink, run_episode
from tests.pipeline.registry_samples import evidence_of, gains_of
from tests.samples import bars_of, random_bars


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


GARBAGE = {
    "nan": float("nan"),
    "text": "buy",
    "none": None,
    "huge": 10**400,
    "array": np.zeros(3),
    "empty": np.zeros(0),
    "nested": nested(10_000),
    "object": object(),
    "complex": 1j,
    "bytes": b"\x00",
    "mapping": {"target": 1.0},
}


class Says:
    """Trades sensibly, and then says something else."""

    name = "says"

    def __init__(self, what):
        self._what, self._n = what, 0

    def reset(self, start):
        self._n, self._encode = 0, start.actions.encode

    def act(self, obs):
        self._n += 1
        return Decision(self._encode(1.0)) if self._n < 5 else Decision(self._what)

    def observe(self, step):
        """Nothing to learn."""


@pytest.mark.case(15)
@pytest.mark.parametrize("actions", [ContinuousTargets(), DiscreteTargets()], ids=["any", "some"])
@pytest.mark.parametrize("name", GARBAGE)
def test_an_action_that_is_none_ends_the_episode_and_moves_no_money(actions, name):
    config = MarketConfig(actions=actions, episode_bars=20, random_start=False, warmup_bars=0)
    world, sink = MarketWorld(config, random_bars(60, 1)), MemorySink()
    team = Independent({Role("trader"): Says(GARBAGE[name])})
    result = run_episode(world, team, "e", Seeds(1), (sink,))
    assert result.status == "error", result
    assert len(sink.steps) == 4
    assert np.isfinite(list(result.total_reward.values())).all()
    assert result.error["error"]
    healthy = run_episode(
        MarketWorld(config, random_bars(60, 1)),
        Independent({Role("trader"): Says(1 if actions.kind == "discrete" else 1.0)}),
        "e",
        Seeds(1),
        (),
    )
    assert healthy.status == "ok"


@pytest.mark.case(15)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 7.5, -3.0])
def test_a_target_beyond_the_bounds_is_the_bound(value):
    config = MarketConfig(
        actions=ContinuousTargets(), episode_bars=20, random_start=False, warmup_bars=0
    )
    ways = []
    for said in (value, float(np.sign(value))):
        sink = MemorySink()
        team = Independent({Role("trader"): Says(said)})
        result = run_episode(MarketWorld(config, random_bars(60, 1)), team, "e", Seeds(1), (sink,))
        assert result.status == "ok"
        ways.append([step.after.reward for step in sink.steps])
    assert ways[0] == ways[1]


PRICES = [1e-12, 1e-6, 1.0, 1e6, 1e12]


@pytest.mark.case(11)
@pytest.mark.parametrize("kind", ["spot", "perpetual"])
@pytest.mark.parametrize("price", PRICES)
def test_the_books_balance_at_any_price_and_through_a_crash(price, kind):
    """A crash of 95 per cent in one bar, a gap through every stop, and back again."""
    way = np.array([1.0, 1.02, 0.99, 0.05, 0.04, 0.06, 1.1, 0.3, 2.5, 2.4] * 5) * price
    opened = np.concatenate([way[:1], way[:-1]])
    bars = bars_of(opened, np.maximum(opened, way), np.minimum(opened, way), way, kind=kind)
    targets = np.array([1.0, 0.5, -1.0, 0.0, 1.0] * 10)
    rules = AccountRules(cash=10_000.0, allow_short=kind == "perpetual")
    costs = Costs(taker_bps=10, half_spread_bps=2)
    found = run_series(bars, targets, costs, rules)
    held = found.cash + found.position * bars.close
    assert np.isfinite(found.equity).all()
    np.testing.assert_allclose(held, found.equity, rtol=1e-9, atol=1e-6)
    if kind == "spot":
        assert (found.equity >= 0.0).all()
        assert (found.position >= 0.0).all()
        assert (found.cash >= -1e-6).all()


@pytest.mark.case(20)
@pytest.mark.parametrize("name", ["rules/flat", "rules/buy-hold", "rules/random"])
def test_who_knows_nothing_is_not_promoted(name):
    """On markets without a law the null, the constant and the random agent earn no verdict."""
    gains = []
    for seed in range(24):
        bars = random_bars(200, 1_000 + seed, kind="spot", sigma=0.01)
        made = [BacktestEngine().run(bars, Ref(use=one), seed) for one in (name, "rules/flat")]
        gains.append(float(np.log(made[0].equity[-1] / made[1].equity[-1])))
    look = Look(candidate="challenger", sealed_set="sealed", number=1, alpha=alpha_of(1))
    assert not judge_promotion(evidence_of(gains), look).promoted
    assert judge_promotion(evidence_of(gains_of(0.02)), look).promoted  # who knows something is
