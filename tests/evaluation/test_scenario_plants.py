from __future__ import annotations

from functools import cache

import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.scenarios import PLANTS, Subject, default_suite, fixed_seeds, play_seed
from agent_gym.evaluation.scenarios.plants_market import MARKET_PLANTS
from agent_gym.evaluation.scenarios.scenario import Episode
from agent_gym.evaluation.scenarios.suite import Suite

N_SEEDS = 2
DESK = {"signal_throughput", "execution_fallback", "protection_health"}
PLANTED = sorted(set(PLANTS) - set(MARKET_PLANTS))


@cache
def suite() -> Suite:
    return default_suite()


@cache
def episodes(scenario: str, plant: str | None) -> tuple[Episode, ...]:
    config = suite().scenario(scenario)
    seeds = fixed_seeds("plants", config)[:N_SEEDS]
    return tuple(play_seed(config, Subject(plant=plant), seed) for seed in seeds)


def losses(scenario: str, metric: str, plant: str) -> list[float]:
    """Return how much worse each seed is with the fault, in the metric's unit."""
    found = next(m for m in suite().scenario(scenario).metrics() if m.name == metric)
    pairs = zip(episodes(scenario, None), episodes(scenario, plant), strict=True)
    values = [(healthy.metrics[metric], ill.metrics[metric]) for healthy, ill in pairs]
    return [
        found.sign * (healthy - ill)
        for healthy, ill in values
        if healthy is not None and ill is not None
    ]


def scenarios_of(kind: str) -> list[str]:
    return [scenario.name for scenario in suite().scenarios if scenario.type == kind]


def test_there_are_enough_faults_and_each_blames_a_gating_figure() -> None:
    assert len(PLANTED) >= 22
    assert {PLANTS[name].room for name in PLANTED} == {"desk", "venue"}
    gating = {
        f"{scenario.type}/{metric.name}"
        for scenario in suite().scenarios
        for metric in scenario.metrics()
        if metric.gates
    }
    for name, plant in PLANTS.items():
        assert plant.name == name
        assert plant.blamed
        assert set(plant.blamed) <= gating, name


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_moves_every_figure_it_is_blamed_on(name: str) -> None:
    for blamed in PLANTS[name].blamed:
        kind, _, metric = blamed.partition("/")
        moved = []
        for scenario in scenarios_of(kind):
            loss = losses(scenario, metric, name)
            moved.append(sum(loss) > 0.0 and all(each >= 0.0 for each in loss))
            if moved[-1]:
                break
        assert any(moved), blamed


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_leaves_a_trace_wherever_it_is_blamed(name: str) -> None:
    for kind in {blamed.partition("/")[0] for blamed in PLANTS[name].blamed}:
        changed = (
            {e.trajectory_hash for e in episodes(scenario, None)}
            != {e.trajectory_hash for e in episodes(scenario, name)}
            for scenario in scenarios_of(kind)
        )
        assert any(changed), kind


def test_every_gating_figure_of_the_desk_scenarios_can_move() -> None:
    still = {
        (kind, metric.name)
        for kind in DESK
        for metric in suite().scenario(scenarios_of(kind)[0]).metrics()
        if metric.gates
    }
    for name in PLANTED:
        for kind in {blamed.partition("/")[0] for blamed in PLANTS[name].blamed}:
            scenario = scenarios_of(kind)[0]
            pairs = zip(episodes(scenario, None), episodes(scenario, name), strict=True)
            still -= {
                (kind, metric)
                for healthy, ill in pairs
                for metric, value in healthy.metrics.items()
                if value != ill.metrics[metric]
            }
    # What no planted fault moves in the first scenario of a type is moved in test_scenario_desk.
    assert still <= {
        ("signal_throughput", "deadline_miss_rate"),
        ("signal_throughput", "signals_processed_per_hour"),
        ("signal_throughput", "wait_p95_ms"),
        ("execution_fallback", "unfinished_orders"),
        ("execution_fallback", "orphan_orders"),
        ("execution_fallback", "market_failed"),
        ("protection_health", "orphan_guards"),
    }


def test_a_fault_of_the_market_leaves_a_desk_alone() -> None:
    name = sorted(MARKET_PLANTS)[0]
    scenario = scenarios_of("execution_fallback")[0]
    assert [e.trajectory_hash for e in episodes(scenario, name)] == [
        e.trajectory_hash for e in episodes(scenario, None)
    ]


def test_an_unknown_fault_is_an_error_with_the_nearest_name() -> None:
    config = suite().scenario(scenarios_of("execution_fallback")[0])
    with pytest.raises(ConfigError, match="Did you mean 'fee_doubled'"):
        play_seed(config, Subject(plant="fee_double"), 1)
