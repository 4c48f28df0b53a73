"""The exact tier: the walk wins where nothing can be known, a drift where there is one."""

import numpy as np
import pytest

from agent_gym.agents.umc.tiers.exact import DRIFT, WALK
from agent_gym.agents.umc.tiers.yardsticks import TurningDrift, shortfall, unit_series
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds

EXACT = Ref(use="umc/exact")
YEAR = 8_760


def walk(seed, bars=2 * YEAR):
    return unit_series(Seeds(seed).child("walk").rng().standard_normal(bars))


def fitted(series):
    """Learn from the first year, follow the second; return the last chances and all forecasts."""
    tier = make("tier", EXACT)
    tier.fit(series.rows(0, YEAR), Seeds(0))
    memory = tier.begin()
    told = tier.filter(series.rows(YEAR, 2 * YEAR), memory)
    return dict(zip(tier.heads, told.chance[-1], strict=True)), told


def test_the_walk_wins_on_a_walk():
    found = [fitted(walk(seed)) for seed in range(6)]
    assert all(max(chance, key=chance.get) == WALK for chance, _ in found)
    assert np.mean([chance[WALK] for chance, _ in found]) > 0.6
    assert max(np.sqrt((told.edge**2).mean()) for _, told in found) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_the_drift_wins_where_there_is_one(seed):
    chance, told = fitted(TurningDrift().draw(2 * YEAR, Seeds(seed)))
    assert max(chance, key=chance.get) == DRIFT
    assert np.sqrt((told.edge**2).mean()) > 0.03


def test_it_is_close_to_the_filter_that_knows_the_drift():
    gap = shortfall(EXACT, TurningDrift(drift=0.2), range(3))
    assert gap.lead > 0.005
    assert gap.mean < 0.2 * gap.lead
    blind = shortfall(
        Ref(use="umc/exact", params={"drifts": [], "memories": []}), TurningDrift(drift=0.2), [0]
    )
    assert blind.mean > 0.8 * blind.lead  # who has no such hypothesis has nothing of it


def test_noise_that_is_gaussian_costs_nothing():
    series = walk(5)
    _, told = fitted(series)
    plain = -0.5 * (np.log(2 * np.pi) + series.returns[YEAR:] ** 2)
    assert abs((plain - told.score).mean()) < 5e-4
