"""The three doors of every rule agree bit for bit, and none looks ahead."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_samples import FEATURES, RULES, BarWorld, start, step_by_step, walk

from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
from agent_gym.core.errors import AgentError
from agent_gym.core.types import ActionSpec, SeriesAgent
from agent_gym.rollouts.contracts import check_agent, check_world

LEVELS = ActionSpec(n=5, levels=(-1.0, -0.5, 0.0, 0.5, 1.0))

every_rule = pytest.mark.parametrize("name", list(RULES))

# A few values, so that ties, flat stretches and jumps are common; a scale for very odd units.
prices = st.builds(
    lambda parts, scale: np.repeat([p for p, _ in parts], [n for _, n in parts]) * scale,
    st.lists(
        st.tuples(
            st.sampled_from([1.0, 1.01, 1.1, 0.9, 3.0]) | st.floats(0.5, 2.0), st.integers(1, 9)
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([1.0, 1e-12, 1e12, 0.1]),
)


def as_bars(close):
    return {
        "open": close,
        "high": close * 1.001,
        "low": close * 0.999,
        "close": close,
        "volume": np.ones_like(close),
    }


@every_rule
@settings(max_examples=40, deadline=None)
@given(close=prices, seed=st.integers(0, 2**40))
def test_one_bar_at_a_time_is_the_whole_series(name, close, seed):
    bars, began = as_bars(close), start(seed)
    rule = RULES[name]()
    whole = rule.targets(began, bars)
    stepwise = np.array(step_by_step(rule, bars, began))
    assert whole.tobytes() == stepwise.tobytes()
    assert np.isfinite(whole).all()
    assert np.abs(whole).max() <= 1.0
    assert rule.targets(began, bars).tobytes() == whole.tobytes()


@every_rule
@settings(max_examples=15, deadline=None)
@given(closes=st.lists(prices, min_size=2, max_size=4))
def test_lanes_are_separate_series(name, closes):
    length = min(close.size for close in closes)
    bars = [as_bars(close[:length]) for close in closes]
    starts = [start(seed) for seed in range(len(bars))]
    rule = RULES[name]()
    lanes = rule.lanes(starts)
    moments = [
        lanes.act_lanes({need: np.array([b[need][i] for b in bars]) for need in rule.needs})
        for i in range(length)
    ]
    for lane, (began, b) in enumerate(zip(starts, bars, strict=True)):
        got = np.array([moment[lane] for moment in moments])
        assert got.tobytes() == rule.targets(began, b).tobytes()


@every_rule
def test_a_lane_begins_again_alone(name):
    rule, bars = RULES[name](), walk(40)
    lanes = rule.lanes([start(1), start(1)])
    feed = [{need: np.full(2, bars[need][i]) for need in rule.needs} for i in range(40)]
    for moment in feed[:17]:
        lanes.act_lanes(moment)
    lanes.reset_lane(1, start(1))
    got = np.array([lanes.act_lanes(moment) for moment in feed])
    assert got[:, 1].tobytes() == rule.targets(start(1), bars).tobytes()


@every_rule
@settings(max_examples=25, deadline=None)
@given(cut=st.integers(1, 59), poison=st.sampled_from([np.nan, np.inf, -1.0, 0.0, 1e300, 1e-300]))
def test_what_comes_later_changes_nothing(name, cut, poison):
    rule, bars = RULES[name](), walk(60, seed=3)
    clean = rule.targets(start(), bars)
    poisoned = {column: values.copy() for column, values in bars.items()}
    for values in poisoned.values():
        values[cut:] = poison
    assert rule.targets(start(), poisoned)[:cut].tobytes() == clean[:cut].tobytes()
    shorter = {column: values[:cut] for column, values in bars.items()}
    assert rule.targets(start(), shorter).tobytes() == clean[:cut].tobytes()


def test_the_poison_test_can_fail():
    # A planted fault: a rule that peeks one bar ahead must be caught by the comparison above.
    rule, bars = RULES["rules/momentum"](), walk(60, seed=3)
    peeking = {column: np.roll(values, -1) for column, values in bars.items()}
    clean = rule.targets(start(), peeking)
    spoiled = {column: values.copy() for column, values in bars.items()}
    for values in spoiled.values():
        values[30:] = 1e-300
    late = rule.targets(start(), {c: np.roll(v, -1) for c, v in spoiled.items()})
    assert late[:30].tobytes() != clean[:30].tobytes()


@every_rule
def test_discrete_actions_hold_the_nearest_level(name):
    rule, bars, began = RULES[name](), walk(60), start(0, LEVELS)
    actions = step_by_step(rule, bars, began)
    assert all(isinstance(action, int) for action in actions)
    held = np.array([LEVELS.levels[action] for action in actions])
    assert held.tobytes() == rule.targets(began, bars).tobytes()


@every_rule
def test_bounds_of_the_world_are_kept(name):
    spec = ActionSpec(low=0.0, high=0.25)
    rule, bars, began = RULES[name](), walk(80), start(0, spec)
    targets = rule.targets(began, bars)
    assert targets.min() >= 0.0
    assert targets.max() <= 0.25
    assert np.array(step_by_step(rule, bars, began)).tobytes() == targets.tobytes()


@every_rule
def test_a_second_reset_forgets_and_targets_do_not_disturb(name):
    rule, bars, began = RULES[name](), walk(60), start(5)
    first = step_by_step(rule, bars, began)
    rule.targets(start(6), walk(33, seed=9))
    assert step_by_step(rule, bars, began) == first


@every_rule
def test_the_contract_of_agents_is_kept(name):
    check_world(BarWorld)
    check_agent(RULES[name], BarWorld)


@every_rule
def test_names_needs_and_protocol(name):
    rule = RULES[name]()
    assert rule.name == name
    assert isinstance(rule, SeriesAgent)
    assert set(rule.needs) <= set(FEATURES)


@every_rule
def test_columns_may_be_read_only_strided_or_of_another_type(name):
    rule, bars = RULES[name](), walk(60)
    expected = rule.targets(start(), bars)
    odd = {column: np.repeat(values, 2)[::2] for column, values in bars.items()}
    for values in odd.values():
        values.setflags(write=False)
    assert rule.targets(start(), odd).tobytes() == expected.tobytes()
    whole = {column: np.ones(9, dtype=np.int32) for column in FEATURES}
    assert np.isfinite(rule.targets(start(), whole)).all()


def test_a_world_that_does_not_show_the_price_is_refused():
    with pytest.raises(AgentError, match="does not show"):
        RULES["rules/breakout"]().reset(start(features=("close", "high")))


def test_actions_that_are_no_positions_are_refused():
    spec = ActionSpec(n=3)
    with pytest.raises(AgentError, match="not target positions"):
        RULES["rules/flat"]().reset(start(0, spec))
    with pytest.raises(AgentError, match="not target positions"):
        RULES["rules/flat"]().targets(start(0, spec), walk(3))


def test_wrong_columns_are_refused():
    rule = RULES["rules/breakout"]()
    bars = walk(10)
    with pytest.raises(AgentError, match="missing"):
        rule.targets(start(), {"close": bars["close"], "high": bars["high"]})
    with pytest.raises(AgentError, match="equally long"):
        rule.targets(start(), bars | {"low": bars["low"][:5]})
    with pytest.raises(AgentError, match="equally long"):
        rule.targets(start(), bars | {"high": bars["high"].reshape(2, 5)})
    with pytest.raises(AgentError, match="one value a lane"):
        rule.lanes([start()]).act_lanes(bars)
    with pytest.raises(AgentError, match="at least one lane"):
        rule.lanes([])


def test_an_empty_series_has_no_targets():
    rule = RULES["rules/breakout"]()
    nothing = {need: np.empty(0) for need in rule.needs}
    assert rule.targets(start(), nothing).size == 0
    assert rule.targets(start(0, LEVELS), nothing).size == 0


def test_a_copy_would_share_the_state_and_is_refused():
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(RULES["rules/flat"]())


def test_two_rules_of_one_kind_keep_their_own_state():
    config, bars = SmaCrossConfig(fast=3, slow=7, allow_short=True), walk(80)
    one, other = sma_cross(config), sma_cross(config)
    other.reset(start())
    expected = step_by_step(one, bars, start())
    one.reset(start())
    step_by_step(other, walk(80, seed=8), start())
    assert step_by_step(one, bars, start()) == expected
