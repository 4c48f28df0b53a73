"""A crowd decides from what it saw, keeps within its memory, and can be put back to the bit."""

import json

import numpy as np
import pytest

from agent_gym.agents.echo import ORDER, EchoConfig, EchoPopulation, StrategyType
from agent_gym.agents.echo.layout import CAPITAL, FIRST_PARAMETER, POSITION
from agent_gym.core import AgentError, Ref, Seeds, StoreError, make
from tests.agents.echo_samples import lead, led, walk, waves

SMALL = {"size": 24, "window_bars": 60, "evolve_every_bars": 50, "candidates": 6}
HALVES = tuple([0.5] * 18)


def test_the_names_of_the_families_are_kept():
    assert [family.value for family in ORDER] == [
        "momentum",
        "mean_reversion",
        "breakout",
        "market_maker",
        "trend_vol_target",
        "value",
        "noise",
        "stop_cascade",
    ]


def test_the_registry_makes_a_crowd():
    crowd = make("crowd", Ref(use="echo", params={"size": 9, "weights": {"noise": 1.0}}))
    assert isinstance(crowd, EchoPopulation)
    assert crowd.size == 9


def test_demands_add_up_and_are_changes_of_positions():
    crowd = led(EchoConfig(**SMALL), walk(40, 1))
    echoes = crowd._memory.echoes
    for _ in range(20):
        before = crowd.positions
        net, gross = crowd.decide()
        moved = (crowd.positions - before) * echoes[:, CAPITAL]
        np.testing.assert_allclose(crowd.demands, moved, rtol=0.0, atol=1e-15)
        assert net == pytest.approx(crowd.demands.sum(), abs=1e-14)
        assert gross == pytest.approx(np.abs(crowd.demands).sum(), abs=1e-14)
        lead(crowd, np.zeros(2))
    assert gross > 0.0


def test_capital_follows_the_weights():
    crowd = EchoPopulation(
        EchoConfig(size=10, weights={"noise": 3.0, "value": 1.0}, capital_adv=2.0)
    )
    assert crowd.heads == {StrategyType.VALUE: 5, StrategyType.NOISE: 5}
    capital = crowd._memory.echoes[:, CAPITAL]
    assert capital[:5].sum() == pytest.approx(0.5)
    assert capital[5:].sum() == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("family", "sign"), [("momentum", 1), ("trend_vol_target", 1), ("breakout", 1), ("value", -1)]
)
def test_a_family_takes_its_side_in_a_rise(family, sign):
    rise = 0.001 * np.arange(300)
    for path, side in ((rise, sign), (-rise, -sign)):
        crowd = led(EchoConfig(size=8, weights={family: 1.0}, evolve_every_bars=None), path)
        assert (np.sign(crowd.positions) * side >= 0.0).all()
        assert np.abs(crowd.positions).sum() > 0.5


def test_makers_take_the_other_side_of_a_flow():
    weights = {"noise": 1.0, "market_maker": 1.0}
    crowd = led(EchoConfig(size=20, weights=weights, evolve_every_bars=None), np.zeros(50))
    makers = slice(0, 10)
    against = 0
    for _ in range(50):
        crowd.decide()
        flow, answer = crowd.demands[10:].sum(), crowd.demands[makers].sum()
        against += flow * answer < 0.0
        lead(crowd, np.zeros(2))
    assert against >= 45


def test_a_crowd_is_the_same_whatever_else_is_drawn():
    path = walk(260, 2)
    first = led(EchoConfig(**SMALL), path)
    Seeds(1).child("somebody", "else").rng().random(100)
    assert lead(first, path) == lead(led(EchoConfig(**SMALL), path), path)
    other = led(EchoConfig(**SMALL), path, seed=2)
    assert not np.array_equal(first.positions, other.positions)


def test_a_second_begin_forgets_everything():
    crowd, path = EchoPopulation(EchoConfig(**SMALL)), walk(160, 3)
    seen = []
    for _ in range(2):
        crowd.begin(float(path[0]), 0.005, Seeds(4))
        seen.append(lead(crowd, path))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("evolution", ["cma", "map_elites"])
def test_a_crowd_goes_on_to_the_bit_from_what_was_kept(evolution):
    config, path = EchoConfig(**SMALL, evolution=evolution), walk(400, 5)
    whole = led(config, path[:130])
    arrays, values = whole.kept()
    values = json.loads(json.dumps(values))
    again = EchoPopulation(config)
    again.put_back(arrays, values)
    assert lead(whole, path[129:]) == lead(again, path[129:])
    assert whole.generations == again.generations == 7
    assert list(whole.history) == list(again.history)
    for name, array in whole.kept()[0].items():
        assert array.tobytes() == again.kept()[0][name].tobytes(), name


def test_the_state_of_another_crowd_is_refused():
    arrays, values = led(EchoConfig(**SMALL), walk(60, 1)).kept()
    with pytest.raises(StoreError, match="not one of this crowd"):
        EchoPopulation(EchoConfig(**{**SMALL, "size": 32})).put_back(arrays, values)


def test_d36_memory_is_that_of_the_window_however_long_the_run():
    crowd = led(EchoConfig(**SMALL), walk(100, 6))
    short, rows = crowd.memory_bytes, {k: v.shape for k, v in crowd.kept()[0].items()}
    lead(crowd, walk(1_500, 7))
    assert crowd.memory_bytes == short
    assert {k: v.shape for k, v in crowd.kept()[0].items()} == rows
    wider = EchoPopulation(EchoConfig(**{**SMALL, "window_bars": 6_000}))
    assert wider.memory_bytes > 3 * short


def test_a_broken_bar_is_refused():
    crowd = EchoPopulation(EchoConfig(**SMALL))
    for bar in ((float("nan"), 1.0, 0.0, 0.0, 0.5), (2.0, 1.0, 0.0, 0.0, 0.5)):
        crowd.decide()
        with pytest.raises(AgentError, match="not a range"):
            crowd.settle(*bar)


def test_growth_is_that_of_the_position_after_costs():
    weights = {"stop_cascade": 1.0}
    config = EchoConfig(size=1, weights=weights, evolve_every_bars=None, cost_bps=7.0)
    crowd = EchoPopulation(config)
    crowd.begin(0.0, 0.005, Seeds(1))
    crowd.decide()
    crowd.settle(0.001, 0.001, 0.0, 0.0, 0.0)
    held = crowd._memory.echoes[0, POSITION]
    assert abs(held) == crowd._memory.echoes[0, FIRST_PARAMETER]
    expected = np.log1p(held * np.expm1(0.001) - 7e-4 * abs(held))
    assert crowd.fitness[0] == pytest.approx(expected, rel=1e-12)


OTHER = {
    "size": 32,
    "weights": {"noise": 1.0, "value": 1.0},
    "seed": 1,
    "capital_adv": 2.0,
    "cost_bps": 50.0,
    "window_bars": 40,
    "evolve_every_bars": 40,
    "evolution": "map_elites",
    "candidates": 7,
    "elite": 0.7,
    "crowding": 5.0,
    "genome": HALVES,
    "spread": 0.3,
}


@pytest.mark.parametrize("field", sorted(OTHER))
def test_every_field_acts(field):
    assert set(OTHER) == set(EchoConfig.model_fields)
    base = {**SMALL, "genome": HALVES, "spread": 0.2} if field == "spread" else SMALL
    path = waves(230, 1, bars=40)
    one, two = (led(EchoConfig(**{**base, **more}), path) for more in ({}, {field: OTHER[field]}))
    same = one.kept()[0].keys() == two.kept()[0].keys() and all(
        np.array_equal(a, two.kept()[0][name]) for name, a in one.kept()[0].items()
    )
    assert not same


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": {"noise": -1.0}},
        {"weights": {"noise": 0.0}},
        {"size": 3},
        {"genome": (0.5,)},
        {"spread": 0.2},
        {"evolve_every_bars": 0},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EchoConfig(**wrong)
