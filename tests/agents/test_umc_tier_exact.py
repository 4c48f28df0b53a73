"""The exact tier: the walk wins where nothing can be known, a drift where there is one."""

import numpy as np
import pytest

from agent_gym.agents.umc.tiers.exact import BOUNDED, DRIFT, MEMORY, WALK
from agent_gym.agents.umc.tiers.exact_kernel import COLUMN, PRIOR
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


def jolted(spread, direction, seed, bars=6_000):
    """Return bars after whose large moves the next is spread wider, with a direction or without."""
    rng = Seeds(seed).rng()
    z = np.zeros(bars)
    for t in range(1, bars):
        width = np.sqrt(1.0 + (spread * z[t - 1]) ** 2)
        z[t] = direction * z[t - 1] + width * rng.standard_normal()
    return unit_series(z)


@pytest.mark.parametrize("seed", range(3))
def test_moves_that_follow_jolts_without_a_direction_are_no_memory(seed):
    told = {}
    for name, params in (("plain", {"jolts": []}), ("jolts", {})):
        tier = make("tier", Ref(use="umc/exact", params=params))
        tier.fit(jolted(0.6, 0.0, seed), Seeds(0))
        told[name] = tier.filter(jolted(0.6, 0.0, seed + 10), tier.begin()).chance[-1]
    memory = tier.heads.index(MEMORY)
    assert told["plain"][memory] > 0.9  # the trap: the spread is taken for a direction
    assert told["jolts"][memory] < 0.2


def test_a_direction_is_still_found_among_jolts():
    tier = make("tier", EXACT)
    tier.fit(jolted(0.4, 0.12, 1), Seeds(0))
    told = tier.filter(jolted(0.4, 0.12, 11), tier.begin())
    assert told.chance[-1][tier.heads.index(MEMORY)] > 0.8


def test_a_bounded_law_says_no_more_of_a_jump_than_of_its_bound():
    tier = make("tier", Ref(use="umc/exact", params={"drifts": [], "memory_bound": 1.0}))
    tier.fit(unit_series(np.clip(Seeds(2).rng().standard_normal(3_000), -0.9, 0.9)), Seeds(0))
    edges = []
    for last in (1.0, 6.0):
        memory = tier.begin()
        bounded = tier._table[:, COLUMN] == BOUNDED
        tier._state_of(memory)[1] = np.where(bounded, tier._table[:, PRIOR], 0.0)
        tier._state_of(memory)[0] = 1.0
        values = np.array([0.0, last])
        edges.append(tier.filter(unit_series(values), memory).edge[-1])
    assert edges[0] > 0.0
    assert edges[1] < 2.0 * edges[0]
