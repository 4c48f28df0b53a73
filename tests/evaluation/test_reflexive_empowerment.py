"""Orders show in a market that they move, and nowhere else."""

from __future__ import annotations

import numpy as np

from agent_gym.core import Ref, Seeds
from agent_gym.envs.reflexive import ReflexiveConfig
from agent_gym.evaluation.reflexive.empowerment import market_empowerment

CROWD = Ref(use="echo", params={"size": 20, "evolve_every_bars": None})


def test_f3_orders_show_where_they_move_the_price_and_not_in_a_replay() -> None:
    config = ReflexiveConfig(bars=1_500, crowd=CROWD)
    found = [market_empowerment(config, Seeds(seed)) for seed in range(4)]
    moved, replay = (
        np.array([getattr(each, name).nats for each in found]) for name in ("moved", "replay")
    )
    assert moved.mean() > 0.005
    assert moved.mean() > 3.0 * moved.std(ddof=1) / 2.0
    assert abs(replay.mean()) < 0.002


def test_a_market_that_is_hard_to_move_empowers_less() -> None:
    soft, hard = (
        ReflexiveConfig(bars=1_500, crowd=None, impact={"kind": "linear", "strength": strength})
        for strength in (0.1, 0.01)
    )
    assert market_empowerment(soft, Seeds(1)).moved.nats > 0.01
    assert market_empowerment(hard, Seeds(1)).moved.nats < 0.01
