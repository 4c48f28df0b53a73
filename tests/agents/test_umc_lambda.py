import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.agents.umc.efe import least, regret, regret_steps
from agent_gym.agents.umc.lam import (
    AdaptiveLambdaScheduler,
    LambdaConfig,
    LambdaMetrics,
    LambdaState,
    affordable_lambda,
    saved_state,
)
from agent_gym.core.errors import ConfigError, DataError

CONFIG = LambdaConfig()
SCHEDULER = AdaptiveLambdaScheduler(CONFIG)
FINE = LambdaMetrics(information=0.5, coherence=0.95)
POOR = LambdaMetrics(information=0.0, coherence=0.95)
ODD = LambdaMetrics(information=0.5, coherence=0.2)

informations = st.floats(-0.01, 0.2)
coherences = st.floats(0.0, 1.0)
metrics = st.builds(LambdaMetrics, informations, coherences)
states = st.builds(
    LambdaState,
    lam=st.floats(0.1, 0.46),
    information=st.floats(0.0, 0.1),
    curious=st.booleans(),
    doubtful=st.booleans(),
    decisions=st.integers(1, 1000),
)


def run(scheduler, told, state=None):
    path = [scheduler.initial() if state is None else state]
    for one in told:
        path.append(scheduler.step(path[-1], one))
    return path


def test_the_base_is_a_fixed_point_to_the_last_bit():
    path = run(SCHEDULER, [FINE] * 500)
    assert {state.lam for state in path} == {CONFIG.lambda_base}
    assert path[-1].share_at_bounds == 0.0


def test_lambda_comes_back_to_its_base_from_either_side():
    for lam in (0.1, 0.46):
        path = run(SCHEDULER, [FINE] * 400, LambdaState(lam, information=0.5, decisions=1))
        assert abs(path[-1].lam - 0.28) < 1e-6
        gaps = np.abs(np.log([state.lam for state in path]) - math.log(0.28))
        assert (np.diff(gaps) <= 1e-15).all()


def test_a_step_is_the_formula():
    state = LambdaState(0.2, information=0.5, decisions=3)
    for told, push in ((FINE, 0.0), (ODD, -1.0)):
        log = math.log(0.2) + 0.1 * push - 0.05 * (math.log(0.2) - math.log(0.28))
        assert SCHEDULER.step(state, told).lam == pytest.approx(math.exp(log), rel=1e-12)
    hungry = LambdaState(0.2, information=0.0, decisions=3)
    log = math.log(0.2) + 0.1 - 0.05 * (math.log(0.2) - math.log(0.28))
    assert SCHEDULER.step(hungry, POOR).lam == pytest.approx(math.exp(log), rel=1e-12)


@settings(max_examples=200)
@given(state=states, told=metrics, more=st.floats(0.0, 0.5))
def test_more_information_never_raises_lambda(state, told, more):
    richer = LambdaMetrics(told.information + more, told.coherence)
    assert SCHEDULER.step(state, richer).lam <= SCHEDULER.step(state, told).lam


@settings(max_examples=200)
@given(state=states, told=metrics, more=coherences)
def test_more_coherence_never_lowers_lambda(state, told, more):
    better = LambdaMetrics(told.information, min(1.0, told.coherence + more))
    assert SCHEDULER.step(state, better).lam >= SCHEDULER.step(state, told).lam


def test_both_directions_are_strict_somewhere():
    start = SCHEDULER.initial()
    assert SCHEDULER.step(start, POOR).lam > SCHEDULER.step(start, FINE).lam
    assert SCHEDULER.step(start, ODD).lam < SCHEDULER.step(start, FINE).lam


@settings(max_examples=50, deadline=None)
@given(told=st.lists(metrics, max_size=40))
def test_d9_the_same_metrics_give_the_same_states_however_often_one_asks(told):
    path = run(SCHEDULER, told)
    asked = [SCHEDULER.initial()]
    for one in told:
        for _ in range(3):
            SCHEDULER.step(asked[-1], one)  # asking changes nothing
        asked.append(SCHEDULER.step(asked[-1], one))
    assert path == asked
    assert all(CONFIG.lambda_min <= state.lam <= CONFIG.lambda_max for state in path)
    assert [state.decisions for state in path] == list(range(len(told) + 1))


def test_d9_states_cannot_be_changed():
    with pytest.raises(AttributeError):
        SCHEDULER.initial().lam = 0.3  # type: ignore[misc]


def test_information_is_averaged_over_its_span():
    path = run(SCHEDULER, [LambdaMetrics(0.1, 0.9), LambdaMetrics(0.0, 0.9)])
    assert path[1].information == 0.1
    assert path[2].information == pytest.approx(0.1 * (1 - 2 / 51))
    single = AdaptiveLambdaScheduler(LambdaConfig(memory_bars=1))
    assert run(single, [LambdaMetrics(0.1, 0.9), LambdaMetrics(0.0, 0.9)])[2].information == 0.0


def test_a_signal_lets_go_only_well_above_its_threshold():
    def doubts(scheduler):
        told = [LambdaMetrics(0.5, coherence) for coherence in (0.69, 0.71, 0.76, 0.78, 0.71)]
        return [state.doubtful for state in run(scheduler, told)[1:]]

    assert doubts(SCHEDULER) == [True, True, True, False, False]
    without = AdaptiveLambdaScheduler(LambdaConfig(hysteresis=0.0))
    assert doubts(without) == [True, False, False, False, False]


def test_hysteresis_holds_for_information_too():
    quick = AdaptiveLambdaScheduler(LambdaConfig(memory_bars=1))
    told = [LambdaMetrics(information, 0.9) for information in (0.009, 0.0105, 0.012, 0.0105)]
    assert [state.curious for state in run(quick, told)[1:]] == [True, True, False, False]


def test_d49_a_lambda_held_by_its_bounds_is_reported():
    up = run(SCHEDULER, [POOR] * 100)[-1]
    assert up.lam == CONFIG.lambda_max
    assert up.at_max > 90
    assert up.at_min == 0
    assert up.share_at_bounds == up.at_max / 100
    down = run(SCHEDULER, [ODD] * 100)[-1]
    assert down.lam == CONFIG.lambda_min
    assert down.share_at_bounds == down.at_min / 100 > 0.8
    assert SCHEDULER.initial().share_at_bounds is None
    fixed = AdaptiveLambdaScheduler(LambdaConfig.fixed(0.28))
    assert run(fixed, [POOR, ODD, FINE])[-1].share_at_bounds == 1.0


@pytest.mark.parametrize("value", [0.0, 0.28])
def test_a_fixed_lambda_never_moves(value):
    fixed = AdaptiveLambdaScheduler(LambdaConfig.fixed(value))
    assert {state.lam for state in run(fixed, [POOR, ODD, FINE] * 5)} == {value}


def test_states_are_saved_and_read_back():
    state = run(SCHEDULER, [POOR, ODD, FINE, POOR])[-1]
    read = saved_state(json.loads(json.dumps(state.as_dict())))
    assert read == state
    assert SCHEDULER.step(read, ODD) == SCHEDULER.step(state, ODD)


@pytest.mark.parametrize(
    "change", [{"lam": -1.0}, {"lam": math.nan}, {"decisions": -1}, {"speed": 1.0}]
)
def test_broken_saved_states_are_refused(change):
    with pytest.raises(ConfigError):
        saved_state({**SCHEDULER.initial().as_dict(), **change})


def test_broken_metrics_are_refused():
    for broken in ((math.nan, 0.5), (0.1, math.inf), (0.1, -0.1), (0.1, 1.1)):
        with pytest.raises(DataError):
            LambdaMetrics(*broken)
    with pytest.raises(DataError, match="never moves again"):
        SCHEDULER.step(LambdaState(0.0), FINE)


OTHER = {
    "lambda_base": 0.2,
    "lambda_min": 0.25,
    "lambda_max": 0.3,
    "info_threshold_low": 0.2,
    "coherence_threshold": 0.1,
    "adaptation_rate": 0.5,
    "return_rate": 0.5,
    "memory_bars": 2,
    "hysteresis": 0.0,
    "regret_budget_bp": 1.0,
}


@pytest.mark.parametrize("field", OTHER)
def test_d45_every_field_acts(field):
    told = [FINE, POOR, POOR, ODD, LambdaMetrics(0.0102, 0.71), *[POOR] * 9, *[ODD] * 9, FINE]
    told += [LambdaMetrics(0.0, 0.99)] * 150 + [LambdaMetrics(0.0105, 0.99)] * 100
    told += [LambdaMetrics(0.1, 0.9)] * 10

    def told_by(config):
        path = run(AdaptiveLambdaScheduler(config), told)
        return [state.lam for state in path], config.budget_nats(100.0)

    assert set(OTHER) == set(LambdaConfig.model_fields)
    assert told_by(CONFIG.model_copy(update={field: OTHER[field]})) != told_by(CONFIG)


@pytest.mark.parametrize(
    "fields",
    [
        {"lambda_min": 0.3},
        {"lambda_max": 0.2},
        {"lambda_base": 0.0, "lambda_min": 0.0},
        {"coherence_threshold": 0.95},
        {"coherence_threshold": 0.8, "hysteresis": 0.25},  # a coherence of 1 would not let go
        {"info_threshold": 0.1},
    ],
)
def test_configs_that_cannot_work_are_refused(fields):
    with pytest.raises(ValidationError):
        LambdaConfig(**fields)


def test_a_budget_is_told_in_nats():
    assert LambdaConfig(regret_budget_bp=0.2).budget_nats(1 / 0.006) == pytest.approx(2e-5 / 0.006)
    assert CONFIG.budget_nats(1e9) == 0.0  # curiosity is free of charge unless somebody pays


costs = st.floats(-50.0, 50.0)
taught = st.floats(0.0, 5.0)
choices = st.lists(st.tuples(costs, taught), min_size=1, max_size=12)


@settings(max_examples=400, deadline=None)
@given(choice=choices, budget=st.floats(0.0, 20.0), high=st.floats(0.1, 100.0))
def test_regret_is_never_above_the_budget(choice, budget, high):
    cost, information = np.array(choice).T
    lam = affordable_lambda(cost, information, budget, lowest=0.0, highest=high)
    assert 0.0 <= lam <= high
    assert regret(cost, information, lam) <= budget


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=10),
    budget=st.integers(0, 8),
)
def test_no_larger_lambda_would_have_been_affordable(pairs, budget):
    """Whole numbers over 8 are exact, and have many ties."""
    cost, information = np.array(pairs).T / 8.0
    lam = affordable_lambda(cost, information, budget / 8.0, lowest=0.0, highest=4.0)
    for larger in np.linspace(lam + 1e-6, 4.0, 50) if lam < 4.0 else []:
        assert regret(cost, information, float(larger)) > budget / 8.0


@settings(max_examples=200, deadline=None)
@given(choice=choices, lam=st.floats(0.0, 10.0))
def test_the_steps_of_regret_are_those_of_the_choices(choice, lam):
    cost, information = np.array(choice).T
    steps = regret_steps(cost, information)
    assert (np.diff(steps.start) >= 0).all()
    assert (np.diff(steps.regret) >= 0).all()
    at = int(np.searchsorted(steps.start, lam, side="right")) - 1
    energy = cost - lam * information
    assert energy[steps.action[at]] <= energy.min() + 1e-9


def test_too_dear_curiosity_is_no_curiosity():
    cost, information = np.array([0.0, 0.02]), np.array([0.0, 1.0])
    assert affordable_lambda(cost, information, 0.01, lowest=0.1) == 0.0
    assert affordable_lambda(cost, information, 0.02, lowest=0.1) == 0.46
    assert least(cost, information, 0.46) == 1
    with pytest.raises(DataError, match="finite"):
        affordable_lambda(np.array([np.nan]), np.zeros(1), 0.0)
    with pytest.raises(DataError, match="one cost"):
        affordable_lambda(np.zeros(2), np.zeros(1), 0.0)
    with pytest.raises(DataError, match="budget"):
        affordable_lambda(np.zeros(1), np.zeros(1), -1.0)
