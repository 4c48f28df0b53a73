"""The red team finds crowds that cost an agent more, and never beyond the bound of realism."""

import json

import numpy as np
import pytest

from agent_gym.agents.echo import GENOME_SIZE
from agent_gym.core import Ref, Seeds, make
from agent_gym.envs.reflexive import ReflexiveConfig, simulate
from agent_gym.evaluation.reflexive import RealismTarget, RedTeamConfig, growth, red_team
from agent_gym.evaluation.reflexive.crowds import echo_config, with_echoes
from agent_gym.evaluation.reflexive.red_team import DIMENSIONS, REACH, crowd_at

CROWD = Ref(use="echo", params={"size": 24, "evolve_every_bars": None})
MARKET = ReflexiveConfig(bars=200, warmup_bars=50, crowd=CROWD, features=())
BUDGET = {"market": MARKET, "generations": 3, "candidates": 5}
TINY = MARKET.model_copy(update={"bars": 60, "warmup_bars": 0})
SMALLEST = {"market": TINY, "generations": 1, "candidates": 4}


def momentum():
    return make("agent", Ref(use="rules/momentum", params={"allow_short": True, "lookback": 12}))


@pytest.fixture(scope="module")
def target():
    bars = simulate(MARKET.model_copy(update={"bars": 3_000}), Seeds(5)).settled
    return RealismTarget.of(bars, 300)


def test_the_worst_crowd_is_worse_and_keeps_to_the_bound(target):
    told = []
    config = RedTeamConfig(**BUDGET, largest_distance=6.0, seed=2)
    found = red_team(momentum, target, config, lambda *row: told.append(row))
    assert found.worst is not None
    assert found.worst.distance <= 6.0
    assert found.worst.growth < found.baseline.growth
    assert (found.tried, 0 < found.accepted <= 15) == (15, True)
    assert [number for number, _ in told] == [1, 2, 3]
    assert found.history == sorted(found.history, reverse=True)
    crowd = found.worst.market.crowd
    assert crowd is not None
    assert len(crowd.params["genome"]) == GENOME_SIZE
    json.dumps(found.as_dict())
    assert red_team(momentum, target, config).as_dict() == found.as_dict()
    seen = growth(momentum(), found.worst.market, Seeds(2).child("red-team", "seen", 0))
    assert seen == found.worst.growth


def test_where_nothing_is_real_enough_nothing_is_found(target):
    config = RedTeamConfig(**SMALLEST, largest_distance=1e-6)
    found = red_team(momentum, target, config)
    assert found.worst is None
    assert found.fresh_worst is None
    assert (found.tried, found.accepted) == (0, 0)
    assert found.baseline.distance > 1e-6
    assert found.as_dict()["worst"] is None


def test_without_a_budget_the_first_crowd_is_all_there_is(target):
    config = RedTeamConfig(**SMALLEST | {"generations": 0}, largest_distance=100.0)
    found = red_team(momentum, target, config)
    assert found.worst is found.baseline
    assert (found.tried, found.history) == (0, [])


def test_the_search_goes_around_the_crowd_that_it_is_given():
    genome = [0.1, 0.9] * (GENOME_SIZE // 2)
    start = with_echoes(MARKET, genome=genome, spread=0.3, capital_adv=0.5)
    middle = crowd_at(start, np.full(DIMENSIONS, 0.5))
    own, first = echo_config(middle), echo_config(start)
    assert own.genome == pytest.approx(genome)
    assert (own.spread, own.capital_adv) == (0.3, pytest.approx(0.5))
    assert own.mixture == pytest.approx(first.mixture, abs=0.01)
    assert middle.impact.strength == pytest.approx(start.impact.strength)
    assert (middle.pull, middle.sigma) == pytest.approx((start.pull, start.sigma))
    for corner in (np.zeros(DIMENSIONS), np.ones(DIMENSIONS)):
        far = echo_config(crowd_at(start, corner))
        assert max(abs(a - b) for a, b in zip(far.genome, genome, strict=True)) <= REACH + 1e-9
        assert 0.5 / 8 - 1e-9 <= far.capital_adv <= 4.0 + 1e-9


@pytest.mark.parametrize(
    "more",
    [
        {"seed": 1},
        {"generations": 2},
        {"candidates": 6},
        {"episodes": 2},
        {"largest_distance": 9.0},
        {"paths": 1},
    ],
)
def test_every_field_of_the_budget_acts(target, more):
    base = RedTeamConfig(**SMALLEST, largest_distance=2.0)
    one, two = (
        red_team(momentum, target, c).as_dict() for c in (base, base.model_copy(update=more))
    )
    for found in (one, two):
        del found["config"]
    assert one != two


def test_an_agent_that_fails_is_no_loss():
    class Broken:
        name = "broken"

        def reset(self, start):
            pass

        def act(self, obs):
            raise ValueError("no idea")

        def observe(self, step):
            pass

    with pytest.raises(ValueError, match="no idea"):
        growth(Broken(), MARKET, Seeds(1))
