"""The oracle on drawn paths: by hand, through the venue, as an agent, and on the nulls."""

import numpy as np
import pytest

from agent_gym.core import Ref, Seeds, make
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.types import ActionSpec, EpisodeStart, Nanos, SeriesAgent
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine, columns_for
from agent_gym.evaluation.oracle import (
    attainable,
    foresight,
    optimal_targets,
    regime_targets,
)
from agent_gym.evaluation.oracle.agent import oracle_filter  # noqa: F401  registers the agent
from agent_gym.evaluation.oracle.filters import kalman_gain
from agent_gym.evaluation.oracle.plan import plan_of
from agent_gym.evaluation.oracle.solution import SHORT_AGAIN
from agent_gym.exchange import Costs, run_series
from agent_gym.exchange.costs import AccountRules
from agent_gym.markets.known import KNOWN, NULLS, draw
from agent_gym.rollouts import check_agent

COST = 5.0
SHORTS = AccountRules(allow_short=True)


def market(name, **params):
    return Ref(use=name, params=params)


def start_of(**actions):
    return EpisodeStart("trader", ("close",), ActionSpec(**actions), Seeds(0), Nanos(1))


def agent_for(ref, cost=COST):
    params = {"market": ref.model_dump(), "cost_bp": cost}
    return make("agent", Ref(use="oracle/filter", params=params))


def by_hand(bars, targets, cost=COST):
    """Return the net gain of each bar in bp: position times return, less the cost of the trade."""
    returns = bars.close[1:] / bars.close[:-1] - 1.0
    traded = np.abs(np.diff(targets, prepend=0.0))[:-1]
    return 1e4 * (targets[:-1] * returns) - cost * traded


def by_venue(bars, targets, cost=COST):
    """Return the gain of each bar in bp of equity, through the real venue."""
    equity = run_series(bars, targets, Costs.fees_only(cost), SHORTS).equity
    return 1e4 * (equity[1:] / equity[:-1] - 1.0)


def growth(bars, targets, cost=COST):
    equity = run_series(bars, targets, Costs.fees_only(cost), SHORTS).equity
    return 1e4 * np.log(equity[-1] / equity[0]) / (len(bars) - 1)


def error_of(parts):
    """Return the standard error of the mean over independent series."""
    means = np.array([part.mean() for part in parts])
    return means.std(ddof=1) / np.sqrt(means.size)


SETTINGS = {
    "known/m1": {},
    "known/m2": {},
    "known/m2-hidden": {"sigma_pct": 0.1},
    "known/m3": {"autocorrelation": 0.3},
    "known/m4": {},
    "known/b1": {},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_paths_earn_what_the_optimum_says_by_hand_and_in_the_venue(name):
    ref = market(name, n_bars=25_000, **SETTINGS[name])
    hand, venue = [], []
    for seed in range(12):
        path = draw(ref, Seeds(seed))
        targets = optimal_targets(ref, path, COST)
        hand.append(by_hand(path.bars, targets))
        venue.append(by_venue(path.bars, targets))
    said = attainable(ref, COST).attainable_bp_per_bar
    found = np.mean([part.mean() for part in hand])
    traded = np.mean([part.mean() for part in venue])
    assert abs(found - said) < 3.5 * error_of(hand)
    assert abs(traded - said) < 3.5 * error_of(venue) + 0.05 * said
    # On the same path the venue differs only by what a short drifts within a day.
    assert abs(traded - found) < 0.06 * said + 0.02
    assert found > 3.0 * error_of(hand)


def test_the_figures_of_the_policy_are_those_of_a_long_path():
    ref = market("known/m4", n_bars=300_000)
    path = draw(ref, Seeds(5))
    targets = np.round(optimal_targets(ref, path, COST))
    found = attainable(ref, COST)
    assert np.abs(np.diff(targets)).mean() == pytest.approx(found.turnover_per_bar, rel=0.03)
    net = by_hand(path.bars, targets)
    assert net.mean() / net.std() * np.sqrt(8760) == pytest.approx(found.sharpe, abs=0.6)


def test_who_is_told_earns_more_and_as_much_as_said():
    ref = market("known/m1", n_bars=100_000)
    path = draw(ref, Seeds(2))
    told = by_hand(path.bars, regime_targets(ref, path, COST))
    best = by_hand(path.bars, optimal_targets(ref, path, COST))
    assert told.mean() == pytest.approx(5.95, abs=0.6)
    assert told.mean() > best.mean() + 2.0
    said = attainable(ref, COST).oracle_sharpe
    assert told.mean() / told.std() * np.sqrt(8760) == pytest.approx(said, abs=0.9)
    with pytest.raises(ConfigError, match="nothing is hidden"):
        regime_targets(market("known/n1"), path, COST)


@pytest.mark.parametrize("name", ["known/m2-hidden", "known/m3", "known/b1"])
def test_being_told_pays_in_every_market_that_hides_something(name):
    ref = market(name, n_bars=60_000)
    path = draw(ref, Seeds(3))
    told = by_hand(path.bars, regime_targets(ref, path, 2.0), 2.0).mean()
    assert told > by_hand(path.bars, optimal_targets(ref, path, 2.0), 2.0).mean()


def test_b1_is_left_when_it_breaks():
    ref = market("known/b1", n_bars=2_000)
    path = draw(ref, Seeds(1))
    targets = optimal_targets(ref, path, COST)
    assert targets[:999].any()
    assert not targets[999:].any()
    filtered = agent_for(ref).targets(start_of(), {"close": path.bars.close})
    assert filtered[999:].any()  # nobody tells the agent


def test_the_filter_earns_on_twenty_seeds_of_m1_what_can_be_earned():
    ref = market("known/m1")
    sma = make(
        "agent", Ref(use="rules/sma-cross", params=dict(fast=24, slow=120, allow_short=True))
    )
    hold = make("agent", Ref(use="rules/buy-hold"))
    earned = {name: [] for name in ("best", "filter", "sma", "hold")}
    for seed in range(20):
        path = draw(ref, Seeds(seed))
        bars, shown = path.bars, {"close": path.bars.close}
        earned["best"].append(growth(bars, optimal_targets(ref, path, COST)))
        earned["filter"].append(growth(bars, agent_for(ref).targets(start_of(), shown)))
        earned["sma"].append(growth(bars, sma.targets(start_of(), shown)))
        earned["hold"].append(growth(bars, hold.targets(start_of(), shown)))
    best = np.mean(earned["best"])
    assert np.mean(earned["filter"]) >= 0.95 * best
    assert 0.65 < np.mean(earned["sma"]) / best < 0.95
    assert abs(np.mean(earned["hold"])) < 0.25 * best


@pytest.mark.parametrize("name", NULLS)
def test_the_filter_of_m1_earns_nothing_gross_on_a_null(name):
    ref, agent = market(name, n_bars=17_520), agent_for(market("known/m1"))
    gross, net = [], []
    for seed in range(20):
        bars = draw(ref, Seeds(seed)).bars
        targets = agent.targets(start_of(), {"close": bars.close})
        gross.append(by_venue(bars, targets, 0.0))
        net.append(by_venue(bars, targets))
    assert abs(np.mean([part.mean() for part in gross])) < 3.0 * error_of(gross)
    assert np.mean([part.mean() for part in net]) < np.mean([part.mean() for part in gross])
    # A filter that looks one bar ahead is found by the same measure.
    bars = draw(ref, Seeds(0)).bars
    ahead = agent.targets(start_of(), {"close": np.append(bars.close[1:], bars.close[-1])})
    assert by_venue(bars, ahead, 0.0).mean() > 3.0 * error_of(gross)


@pytest.mark.parametrize("name", KNOWN)
def test_the_agent_decides_as_the_optimum_and_by_the_past_alone(name):
    ref = market(name, n_bars=1_500)
    path, agent = draw(ref, Seeds(7)), agent_for(ref)
    assert isinstance(agent, SeriesAgent)
    columns = columns_for(path.bars, agent.needs)
    whole = agent.targets(start_of(), columns)
    if name != "known/b1":
        np.testing.assert_array_equal(whole, optimal_targets(ref, path, COST))
    cut = {column: values[:700] for column, values in columns.items()}
    np.testing.assert_array_equal(agent.targets(start_of(), cut), whole[:700])
    if name not in ("known/m5", *NULLS):
        assert np.abs(whole).max() == 1.0


@pytest.mark.parametrize(
    "name", ["known/m1", "known/m2", "known/m2-hidden", "known/m3", "known/n4"]
)
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_the_agent_keeps_the_contract(name, kind):
    ref = market(name, n_bars=400)

    def world():
        config = MarketConfig(
            market=ref,
            actions={"kind": kind},
            episode_bars=200,
            random_start=False,
            warmup_bars=0,
            account=SHORTS,
        )
        return MarketWorld(config)

    check_agent(lambda: agent_for(ref), world)


def test_step_by_step_and_whole_series_agree_in_a_backtest():
    ref = market("known/m1", n_bars=3_000)
    bars = draw(ref, Seeds(4)).bars
    fee = {"taker_bps": 5, "slippage_bps": 0, "half_spread_bps": 0, "impact": 0}
    engine = BacktestEngine(BacktestConfig(**fee, participation=None, allow_short=True))
    quick = engine.run(bars, Ref(use="oracle/filter"))
    cautious = BacktestConfig(**fee, participation=None, allow_short=True, max_drawdown=0.999)
    slow = BacktestEngine(cautious).run(bars, Ref(use="oracle/filter"))
    assert quick.target.min() == -1.0
    assert (quick.target == SHORT_AGAIN).any()
    np.testing.assert_allclose(slow.target, quick.target, atol=1e-9)


def test_where_shorts_are_forbidden_it_reckons_with_that():
    ref = market("known/m1", n_bars=4_000)
    close = draw(ref, Seeds(1)).bars.close
    long_only = agent_for(ref).targets(start_of(low=0.0), {"close": close})
    both = agent_for(ref).targets(start_of(), {"close": close})
    assert set(np.unique(long_only)) == {0.0, 1.0}
    assert set(np.unique(both)) <= {-1.0, SHORT_AGAIN, 0.0, 1.0}
    levels = agent_for(ref).targets(start_of(n=3, levels=(-0.5, 0.0, 0.5)), {"close": close})
    assert set(np.unique(levels)) <= {-0.5, 0.0, 0.5}


def test_what_the_agent_cannot_work_with_is_refused():
    agent = agent_for(market("known/m2"))
    assert agent.needs == ("signal_mispricing",)
    with pytest.raises(AgentError, match="does not show"):
        agent.reset(start_of())
    with pytest.raises(AgentError, match="column"):
        agent.targets(start_of(), {"close": np.ones(3)})
    with pytest.raises(AgentError, match="not target positions"):
        agent_for(market("known/m1")).reset(start_of(n=3))
    with pytest.raises(ConfigError):
        make("agent", Ref(use="oracle/filter", params={"market": "m9"}))
    short = make("agent", Ref(use="oracle/filter", params={"market": "m2", "cost_bp": 2}))
    assert short.needs == agent.needs


def test_the_belief_is_that_of_bayes():
    ref = market("known/m1", n_bars=40)
    path = draw(ref, Seeds(6))
    plan = plan_of(ref)
    beliefs, _ = plan.filter.states(path.bars.close.copy(), plan.filter.begin())
    returns = path.bars.close[1:] / path.bars.close[:-1] - 1.0
    chances = np.array([0.5, 0.5])  # down, up
    turn = np.array([[0.995, 0.005], [0.005, 0.995]])
    for t, change in enumerate(returns, start=1):
        likely = np.exp(-0.5 * ((change - np.array([-6e-4, 6e-4])) / 0.006) ** 2)
        chances = chances @ turn * likely
        chances /= chances.sum()
        assert beliefs[t] == pytest.approx(chances[1], abs=1e-12)


def test_beliefs_are_calibrated():
    ref = market("known/m1", n_bars=200_000)
    path = draw(ref, Seeds(8))
    plan = plan_of(ref)
    beliefs, _ = plan.filter.states(path.bars.close.copy(), plan.filter.begin())
    for low in (0.1, 0.3, 0.5, 0.7, 0.9):
        at = np.abs(beliefs - low) < 0.05
        assert path.truth["regime"][at].mean() == pytest.approx(low, abs=0.06)


def test_the_steady_estimate_is_as_good_as_said():
    ref = market("known/m2-hidden", n_bars=300_000)
    path, plan = draw(ref, Seeds(9)), plan_of(ref)
    turned, _ = plan.filter.states(path.bars.close.copy(), plan.filter.begin())
    gain, surprise = kalman_gain(0.98, 0.002, 0.005)
    variance = 1.0  # the steady gain is where the recursion ends
    for _ in range(5_000):
        spread = 0.02**2 * variance + 0.002**2 + 0.005**2
        step = (-0.02 * 0.98 * variance + 0.002**2) / spread
        variance = 0.98**2 * variance + 0.002**2 - step**2 * spread
    assert (gain, surprise) == pytest.approx((step, spread), rel=1e-9)
    missed = path.bars.close[1:] / path.bars.close[:-1] - 1.0 - 0.02 * turned[:-1]
    assert missed[1000:].std() == pytest.approx(np.sqrt(surprise), rel=0.01)
    error = (path.truth["mispricing"] + turned)[1000:]
    for other in (0.8 * gain, 1.2 * gain):
        worse = plan.filter.__class__("close", plan.filter.run, (0.98, other), plan.filter.start)
        guess, _ = worse.states(path.bars.close.copy(), worse.begin())
        assert (path.truth["mispricing"] + guess)[1000:].std() > error.std()


def all_paths(close, cost, short):
    """Return the largest growth by trying every series of positions."""
    best = -np.inf
    moves = close[1:] / close[:-1] - 1.0
    sides = (-1, 0, 1) if short else (0, 1)
    for wish in np.array(np.meshgrid(*[sides] * moves.size)).T.reshape(-1, moves.size):
        traded = np.abs(np.diff(wish, prepend=0))
        best = max(best, np.log((1.0 - cost * traded) * (1.0 + wish * moves)).sum())
    return best


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("cost_bp", [0.0, 30.0, 300.0])
def test_foresight_is_the_best_of_all_paths(cost_bp, short):
    for seed in range(4):
        rng = Seeds(seed).child("foresight").rng()
        close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, 0.02, 8)))
        found = foresight(close, cost_bp, allow_short=short)
        assert found.growth == pytest.approx(all_paths(close, cost_bp * 1e-4, short), abs=1e-12)


def test_foresight_is_above_every_skill_and_near_what_the_venue_gives():
    ref = market("known/m1", n_bars=5_000)
    path = draw(ref, Seeds(1))
    found = foresight(path.bars.close, COST)
    assert found.bp_per_bar > 5 * growth(path.bars, regime_targets(ref, path, COST))
    assert growth(path.bars, found.targets) == pytest.approx(found.bp_per_bar, rel=0.05)
    nothing = foresight(np.full(10, 5.0), COST)
    assert nothing.growth == 0.0
    assert not nothing.targets.any()
    for wrong in (np.array([1.0]), np.array([1.0, -1.0]), np.array([1.0, np.nan])):
        with pytest.raises(DataError):
            foresight(wrong, COST)
