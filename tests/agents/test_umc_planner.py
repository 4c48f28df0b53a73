"""The planner against dynamic programming that knows the law, and the choice it leads to."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.agents.umc.choice import (
    Outlook,
    begin_choice,
    choose_levels,
    sized,
    worth_of,
)
from agent_gym.agents.umc.planner import Plan, edge_chain, improved_worth, plan_positions
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

LEVELS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
DRIFT, SIGMA, STAY = 6e-4, 6e-3, 0.995


def beliefs(bars: int, seed: int = 0) -> FloatArray:
    """Return the exact belief in the rising state of a hidden drift, bar by bar."""
    rng = Seeds(seed).rng()
    turns = rng.random(bars) > STAY
    side = np.where(np.cumsum(turns) % 2 == 0, 1.0, -1.0)
    returns = DRIFT * side + SIGMA * rng.standard_normal(bars)
    believed, ahead = np.empty(bars), 0.5
    for t, value in enumerate(returns):
        odds = np.exp(2.0 * DRIFT * value / SIGMA**2) * ahead / (1.0 - ahead)
        after = odds / (1.0 + odds)
        ahead = STAY * after + (1.0 - STAY) * (1.0 - after)
        believed[t] = ahead
    return believed


def plan(cost: float, levels: FloatArray = LEVELS, aversion: float = 0.0) -> Plan:
    edges = (2.0 * beliefs(40_000) - 1.0) * DRIFT / SIGMA
    return plan_positions(edges, np.full(edges.size, SIGMA), levels, cost, aversion)


def band(found: Plan, cost: float, held: float) -> float:
    """Return the lowest belief at which the plan is long, from a position."""
    grid = np.linspace(0.0, 1.0, 2_001)
    rows = grid.size
    edge = (2.0 * grid - 1.0) * DRIFT / SIGMA
    outlook = Outlook(edge, np.full(rows, SIGMA), np.full(rows, np.inf))
    worth = worth_of(found, outlook, cost)
    place = int(np.flatnonzero(found.levels == held)[0])
    gain = worth - cost / SIGMA * np.abs(found.levels - found.levels[place])
    long = found.levels[np.argmax(gain, axis=1)] > 0.0
    return float(grid[np.argmax(long)])


def test_the_band_is_that_of_the_optimum_with_costs() -> None:
    found = plan(5e-4, np.array([-1.0, 0.0, 1.0]))
    assert band(found, 5e-4, 0.0) == pytest.approx(0.588, abs=0.03)
    assert band(found, 5e-4, 1.0) == pytest.approx(0.415, abs=0.03)


def test_without_costs_there_is_no_band() -> None:
    found = plan(0.0, np.array([-1.0, 0.0, 1.0]))
    assert band(found, 0.0, 0.0) == pytest.approx(0.5, abs=0.01)
    assert band(found, 0.0, 1.0) == pytest.approx(0.5, abs=0.01)


def test_a_dearer_trade_makes_the_band_wider() -> None:
    narrow, wide = (
        band(plan(cost), cost, 0.0) - band(plan(cost), cost, 1.0) for cost in (2e-4, 2e-3)
    )
    assert wide > narrow > 0.0


def test_prudence_makes_positions_smaller() -> None:
    sure = Outlook(np.full(1, 0.02), np.full(1, SIGMA), np.full(1, np.inf))
    bold, careful = (
        np.argmax(worth_of(plan(0.0, aversion=aversion), sure, 0.0)[0]) for aversion in (0.0, 8.0)
    )
    assert LEVELS[bold] == 1.0 > LEVELS[careful] >= 0.0


def test_no_edge_no_position() -> None:
    found = plan_positions(np.zeros(500), np.full(500, SIGMA), LEVELS, 5e-4, 1.0)
    outlook = Outlook(np.zeros(3), np.full(3, SIGMA), np.full(3, np.inf))
    places, energies = choose_levels(found, outlook, 5e-4, begin_choice(LEVELS))
    assert LEVELS[places.astype(int)].tolist() == [0.0, 0.0, 0.0]
    assert np.argmin(energies[0]) == 2


def test_a_cap_holds_positions_down_and_lets_go() -> None:
    found = plan(5e-4)
    edge = np.full(4, 0.1)
    outlook = Outlook(edge, np.full(4, SIGMA), np.array([np.inf, 0.6, 0.2, np.inf]))
    places, energies = choose_levels(found, outlook, 5e-4, begin_choice(LEVELS))
    assert LEVELS[places.astype(int)].tolist() == [1.0, 0.5, 0.0, 1.0]
    assert np.isinf(energies[1, [0, -1]]).all()


def test_pieces_are_the_whole() -> None:
    found = plan(5e-4)
    edge = (2.0 * beliefs(300, 7) - 1.0) * DRIFT / SIGMA
    sigma = SIGMA * np.exp(0.3 * Seeds(1).rng().standard_normal(300))
    whole, free = choose_levels(
        found, Outlook(edge, sigma, np.full(300, np.inf)), 5e-4, begin_choice(LEVELS)
    )
    memory, parts = begin_choice(LEVELS), []
    for t in range(300):
        one = Outlook(edge[t : t + 1], sigma[t : t + 1], np.full(1, np.inf))
        parts.append(choose_levels(found, one, 5e-4, memory))
    assert np.concatenate([part[0] for part in parts]).tobytes() == whole.tobytes()
    assert np.concatenate([part[1] for part in parts]).tobytes() == free.tobytes()


def test_worth_between_tables_lies_between_them() -> None:
    edge = (2.0 * beliefs(8_000, 3) - 1.0) * DRIFT / SIGMA
    sigma = SIGMA * np.exp(0.4 * Seeds(2).rng().standard_normal(edge.size))
    found = plan_positions(edge, sigma, LEVELS, 5e-4, 1.0)
    assert found.worth.shape[0] == 5
    assert (np.diff(found.log_costs) < 0.0).all()
    for table in range(5):
        exactly = 5e-4 / np.exp(found.log_costs[table])
        one = Outlook(np.zeros(1), np.full(1, exactly), np.full(1, np.inf))
        middle = found.worth[table, found.worth.shape[1] // 2]
        assert worth_of(found, one, 5e-4)[0] == pytest.approx(middle, abs=1e-9)
    far = Outlook(np.zeros(2), np.array([1e-5, 10.0]), np.full(2, np.inf))
    assert np.isfinite(worth_of(found, far, 5e-4)).all()


def test_a_chain_is_one_of_chances_and_the_same_upside_down() -> None:
    chain = edge_chain((2.0 * beliefs(5_000) - 1.0) * 0.1, 0.1)
    assert np.allclose(chain.sum(axis=1), 1.0)
    assert chain.min() >= 0.0
    assert np.allclose(chain, chain[::-1, ::-1], atol=0.05)


@pytest.mark.parametrize("keeps", [0.0, 0.9])
def test_what_follows_a_far_edge_keeps_as_much_of_it_as_edges_keep(keeps: float) -> None:
    rng = Seeds(4).rng()
    edges = np.zeros(20_000)
    for t in range(1, edges.size):
        edges[t] = keeps * edges[t - 1] + 0.01 * rng.standard_normal()
    reach = float(np.abs(edges).max())
    chain, grid = edge_chain(edges, reach), np.linspace(-reach, reach, 81)
    assert np.abs(chain @ grid - keeps * grid).max() < 0.05 * reach


def test_a_short_is_brought_back_to_size_and_a_long_left_alone() -> None:
    held = sized(np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0]), 0, 2)
    assert held[:2].tolist() == [1.0, 1.0]
    assert np.round(held, 6).tolist() == [1.0, 1.0, -1.0, -1.0, -1.0, -1.0]
    assert held[2] != -1.0
    assert held[4] == -1.0
    assert sized(np.full(3, -1.0), 2, 2).tolist() == sized(np.full(5, -1.0), 0, 2)[2:].tolist()


def test_policies_that_improve_come_to_what_sweeps_come_to() -> None:
    edges = (2.0 * beliefs(8_000, 5) - 1.0) * DRIFT / SIGMA
    found = plan_positions(edges, np.full(edges.size, SIGMA), LEVELS, 5e-4, 1.0)
    grid = np.linspace(-found.reach, found.reach, found.worth.shape[1])
    chain = edge_chain(edges, found.reach)
    paid = grid[:, None] * LEVELS - 0.5 * SIGMA * LEVELS**2
    costs = 5e-4 / SIGMA * np.abs(LEVELS[:, None] - LEVELS)
    other = improved_worth(chain, paid, costs, np.zeros_like(paid))
    swept = found.worth[0]
    for held in range(LEVELS.size):
        one, two = (np.argmax(worth - costs[held], axis=1) for worth in (swept, other))
        assert (one != two).mean() < 0.03
    apart = (other - other[:, [2]]) - (swept - swept[:, [2]])
    assert np.abs(apart).max() < 0.01 * np.abs(swept - swept[:, [2]]).max()


def test_small_edges_beside_large_costs_are_planned_too() -> None:
    rng = Seeds(3).rng()
    edge = np.zeros(30_000)
    for t in range(1, edge.size):
        edge[t] = 0.9995 * edge[t - 1] + 3e-4 * rng.standard_normal()
    found = plan_positions(edge, np.full(edge.size, 6e-4), LEVELS, 1.2e-3, 1.0)
    assert np.isfinite(found.worth).all()
    outlook = Outlook(edge[:5_000], np.full(5_000, 6e-4), np.full(5_000, np.inf))
    places, _ = choose_levels(found, outlook, 1.2e-3, begin_choice(LEVELS))
    assert np.abs(np.diff(LEVELS[places.astype(int)])).sum() < 40.0
