from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.evaluation.benchmark.correctness import correctness, optimality, price_change
from agent_gym.evaluation.benchmark.episode import WatchedWorld
from agent_gym.evaluation.benchmark.metrics import list_positions, max_drawdown, score, validate
from agent_gym.markets.snapshot.sealed import OptimalAction
from tests.envs.benchmark_samples import made, world

FLIPPED = {"YES": "NO", "NO": "YES", "LONG": "SHORT", "SHORT": "LONG"}


def played(seed: int, act, scenario: str = "bull"):
    watched = WatchedWorld(world(seed, scenario))
    watched.reset(Seeds(0))
    rng = Seeds(seed).child("test").rng()
    while True:
        if watched.advance(act(watched.world, rng)).terminated:
            return watched.account()


def dice(_world, rng):
    return rng.integers(-1, 2, 3).astype(np.float64)


def hindsight(sign: float):
    """Return a player who takes the side of every optimal action, or the other one, in time."""

    def act(one, _rng):
        targets = np.array(one._targets)
        for best in made(2).truth.optimal_actions:
            if best.tick == one.floor.tick:
                m = one.snapshot.market_ids.index(best.target)
                targets[m] = sign * (1.0 if best.side in ("YES", "LONG") else -1.0)
        return targets

    return act


def test_the_wrong_side_everywhere_is_not_optimal():
    """The original looked at time and market alone: the wrong side scored 100."""
    truth = made(2).truth
    right = optimality(truth, played(2, hindsight(1.0)).floor.actions)
    wrong = optimality(truth, played(2, hindsight(-1.0)).floor.actions)
    assert right > 60.0
    assert wrong < 25.0


def test_optimality_counts_within_two_ticks():
    account = played(2, hindsight(1.0))
    first = next(one for one in account.floor.actions if one.type == "open_perp")
    for late, expected in ((0, 100.0), (2, 100.0), (3, 0.0), (-2, 100.0), (-3, 0.0)):
        best = OptimalAction(first.tick + late, "open_perp", first.market, first.side, 0.1, "")
        truth = made(2).truth
        changed = type(truth)(truth.seed, truth.outcomes, truth.posts, (best,), ())
        near = [
            one
            for one in account.floor.actions
            if one.number == first.number and one.side == best.side
        ]
        assert optimality(changed, near) == expected


def test_drawdown_runs_over_time_not_over_positions():
    """One position that falls and recovers has no losing trade, yet it was under water."""
    assert max_drawdown([100.0, 50.0, 110.0]) == 0.5
    assert max_drawdown([100.0, 110.0, 120.0]) == 0.0
    account = played(1, lambda one, rng: np.array([0.0, 0.0, 1.0]))
    metrics = score(account, made(1).truth)
    path = np.array(account.equity)
    assert metrics["maxDrawdown"] == pytest.approx(
        max(1 - path[t] / path[: t + 1].max() for t in range(len(path)))
    )


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=30))
def test_drawdown_is_a_share(path):
    assert 0.0 <= max_drawdown(path) < 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scenario", ["bull", "bear"])
def test_figures_are_reckoned_again_and_agree(seed, scenario):
    account = played(seed, dice, scenario)
    truth = made(seed, scenario).truth
    metrics = score(account, truth)
    assert validate(metrics, account, truth) == []
    pnl = sum(one["pnl"] for one in list_positions(account.floor))
    purse = account.floor.desk.account
    assert pnl - purse.funding + purse.insurance == pytest.approx(metrics["totalPnl"], abs=1e-6)


@pytest.mark.parametrize(
    ("group", "name"),
    [("predictionMetrics", "accuracy"), ("perpMetrics", "winRate"), ("perpMetrics", "maxDrawdown")],
)
def test_a_figure_that_was_changed_is_found(group, name):
    account, truth = played(0, dice), made(0).truth
    metrics = score(account, truth)
    metrics[group][name] += 0.02
    assert any(name in problem for problem in validate(metrics, account, truth))
    metrics = score(account, truth)
    metrics["totalPnl"] += 500.0
    assert any("equity" in problem for problem in validate(metrics, account, truth))


def test_a_player_without_positions_has_no_accuracy():
    account = played(0, lambda one, rng: np.zeros(3))
    metrics = score(account, made(0).truth)
    assert metrics["predictionMetrics"]["accuracy"] is None
    assert metrics["perpMetrics"]["winRate"] is None
    assert metrics["totalPnl"] == 0.0
    assert validate(metrics, account, made(0).truth) == []


def test_correctness_comes_from_the_truth():
    snapshot, truth = made(2).snapshot, made(2).truth
    account = played(2, hindsight(1.0))
    rows = correctness(snapshot, truth, account.floor.actions)
    bets = [row for row in rows if row["type"] == "buy_prediction"]
    rides = [row for row in rows if row["type"] == "open_perp"]
    assert bets
    assert rides
    assert all(row["predictionCorrect"] for row in bets)
    assert all(row["actualOutcome"] == truth.outcomes[row["market"]] for row in bets)
    for row in rides:
        assert row["priceChange"] == price_change(snapshot, row["market"], row["tick"])
        up = row["expectedDirection"] == "up"
        assert row["perpCorrect"] == ((row["priceChange"] > 0) == up)
    assert all(-1.0 <= row["sentimentAtTrade"] <= 1.0 for row in rows)
    assert all(0.0 <= row["sentimentAccuracy"] <= 1.0 for row in rows)


def test_a_watched_world_cuts_and_counts():
    watched = WatchedWorld(world(), max_steps=5)
    watched.reset(Seeds(0))
    outcomes = [watched.step({TRADER: np.zeros(3)})[TRADER] for _ in range(5)]
    assert [one.truncated for one in outcomes] == [False] * 4 + [True]
    assert len(watched.equity) == 6
