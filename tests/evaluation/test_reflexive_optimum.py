"""The best participation is the largest without impact, and a smaller one with it."""

import json
import math

import numpy as np
import pytest

from agent_gym.core import ConfigError, Ref, Seeds
from agent_gym.envs.reflexive import DriftSignal, LinearImpact, ReflexiveConfig, ReflexiveWorld
from agent_gym.evaluation.reflexive import FixedParticipation, best_participation, growth
from agent_gym.exchange.costs import Costs
from agent_gym.rollouts import check_agent

T_7 = 2.365  # 95 % of Student's t with 7 degrees of freedom


def market(strength, **fields):
    return ReflexiveConfig(
        **{
            "bars": 200,
            "warmup_bars": 20,
            "crowd": Ref(use="echo", params={"size": 24, "evolve_every_bars": None}),
            "signal": DriftSignal(strength=0.2, memory=0.9),
            "impact": LinearImpact(strength=strength),
            "costs": Costs.free(),
            "features": ("signal_drift",),
            **fields,
        }
    )


def low_bound(gains):
    return gains.mean() - T_7 * gains.std(ddof=1) / math.sqrt(gains.size)


def test_impact_makes_the_best_participation_smaller():
    grid = (0.1, 1.0)
    free, dear = (best_participation(market(s), Seeds(3), paths=8, grid=grid) for s in (0.0, 1.0))
    assert free.best == 1.0
    assert dear.best == 0.1
    assert low_bound(free.growth[1] - free.growth[0]) > 0.0
    assert low_bound(dear.growth[0] - dear.growth[1]) > 0.0


def test_an_optimum_can_be_told_and_played_again():
    found = best_participation(market(0.05), Seeds(3), paths=2, grid=(0.1, 0.5), size=0.8)
    shown = json.loads(json.dumps(found.as_dict()))
    assert shown["best"] in (0.1, 0.5)
    assert shown["seeds"] == {"root": 3, "path": [], "count": 2}
    again = growth(FixedParticipation(0.5, size=0.8), found.market, Seeds(3).child(1))
    assert again == found.growth[1, 1]
    row = [0.1, 0.5].index(found.best)
    assert found.best_growth.mean() == found.growth.mean(axis=1).max()
    assert found.best_growth.tolist() == shown["rows"][row]["growth"]


def test_the_rule_keeps_to_its_participation():
    world = ReflexiveWorld(
        market(0.05, actions={"kind": "continuous", "low": -1.0, "high": 1.0}, crowd=None)
    )
    agent = FixedParticipation(0.05)
    agent.reset(world.start(world.roles[0], Seeds(1)))
    (seen,) = world.reset(Seeds(1)).values()
    for _ in range(150):
        seen = world.advance(agent.act(seen).action).observation
    shares = np.abs(world.flow) / world.config.usual_volume
    assert 0.04 < shares.max() < 0.055
    assert (shares > 0.0).sum() > 20


def test_the_rule_is_an_agent():
    fields = {"actions": {"kind": "continuous", "low": -1.0, "high": 1.0}, "bars": 60}
    check_agent(lambda: FixedParticipation(0.1), lambda: ReflexiveWorld(market(0.05, **fields)))


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ConfigError, match="without a signal"):
        best_participation(market(0.05, signal=None), Seeds(1))
    with pytest.raises(ConfigError, match="participation"):
        FixedParticipation(0.0)
