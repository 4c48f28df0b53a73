"""What is known to spoil such a loop, one test for each: markets, scores and records.

The rooms test these things in depth; here each is seen from outside. What comes after recording is
in test_loop_defects_learning.py, the list is at the end of docs/improvement.md.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.core.clock import ManualClock, SystemClock
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Role
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.interface import SimulationA2AInterface
from agent_gym.envs.benchmark.records import ActionRecord
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark import baselines
from agent_gym.evaluation.benchmark.correctness import optimality
from agent_gym.evaluation.benchmark.metrics import EpisodeAccount, score
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.pipeline.automation.readiness import ReadinessPolicy, readiness
from agent_gym.pipeline.automation.stock import CHECKS, stock_of
from agent_gym.pipeline.harness.options import HarnessOptions
from agent_gym.rollouts.database import (
    JudgmentRecord,
    TrajectoryContext,
    TrajectoryFilter,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.play import play, run_episode
from tests.envs.benchmark_samples import SMALL, made, world
from tests.pipeline.automation_samples import OneSnapshot, record

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "improvement.md"
OTHER_SIDE = {"YES": "NO", "NO": "YES", "LONG": "SHORT", "SHORT": "LONG"}
ENOUGH = ReadinessPolicy(min_trajectories=6, min_groups=2, min_group_size=3, spacing_hours=0.0)


def asked(market, method, **params):
    reply = market.call(f"a2a.{method}", params)
    assert reply.ok, reply.error
    return reply.result


def earned(player, snapshot, seed=0):
    place = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path()), snapshot)
    return play(place, Independent({TRADER: player}), "e", Seeds(seed)).total_reward[TRADER]


@pytest.fixture
def store(tmp_path):
    with TrajectoryStore.open(folder=tmp_path) as opened:
        yield opened


def test_01_everything_comes_from_the_seed_and_zero_is_a_seed(tmp_path, monkeypatch):
    def bytes_of(seed, folder, now_ns):
        for name in ("now_ns", "monotonic_s"):
            plain = getattr(ManualClock(now_ns), name)
            monkeypatch.setattr(SystemClock, name, lambda _self, plain=plain: plain())
        monkeypatch.setattr("time.time", lambda: now_ns / 1e9)
        monkeypatch.setattr("time.time_ns", lambda: now_ns)
        one = BenchmarkDataGenerator(SnapshotConfig(**SMALL)).generate(seed)
        path = one.save(tmp_path / folder)
        player = baselines.random(baselines.RandomConfig())
        files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        return files, earned(player, load_snapshot(path), seed)

    first = bytes_of(0, "first", 1_000_000_000)
    assert bytes_of(0, "again", 2_000_000_000_000) == first
    files, returns = zip(*(bytes_of(seed, str(seed), 5) for seed in range(3)), strict=True)
    assert len({name for each in files for name in each}) == 6
    assert len(set(returns)) == 3
    assert HarnessOptions().seed == 0


def test_02_there_is_something_to_learn_and_no_side_wins_by_itself():
    snapshots = [made(seed).snapshot for seed in range(12)]
    players = {
        "reads": lambda: baselines.sentiment(baselines.ThresholdConfig()),
        "against": lambda: baselines.contrarian(baselines.ThresholdConfig()),
        "dice": lambda: baselines.random(baselines.RandomConfig()),
    }
    mean = {
        name: np.mean([earned(player(), one) for one in snapshots])
        for name, player in players.items()
    }
    assert mean["reads"] > 0.0 > mean["dice"]
    assert mean["reads"] > mean["against"]
    rises = [
        (closes[-1] > closes[0]).mean()
        for closes in (made(seed, "quiet").snapshot.closes for seed in range(24))
    ]
    assert 0.2 < np.mean(rises) < 0.8


def test_03_what_a_trade_pays_depends_on_its_price():
    gains = {}
    for seed in range(4):
        place = world(seed)
        market = SimulationA2AInterface(place)
        spec = place.snapshot.predictions[0]
        side = "YES" if made(seed).truth.outcomes[spec.id] else "NO"
        bought = asked(market, "buyShares", marketId=spec.id, outcome=side, amount=500.0)
        assert bought["fee"] > 0.0
        assert asked(market, "getBalance")["balance"] == pytest.approx(9_500.0)
        while place.floor.tick < spec.resolve_tick:
            place.end_tick()
        gain = asked(market, "getBalance")["balance"] - 10_000.0
        assert gain == pytest.approx(bought["shares"] - 500.0)  # a share that is right pays 1
        gains[round(bought["avgPrice"], 6)] = round(gain, 6)
    assert len(set(gains.values())) == len(gains) > 1  # one stake; every price has its gain
    assert not market.call(
        "a2a.buyShares", {"marketId": "pm-2", "outcome": "YES", "amount": 1e6}
    ).ok
    lent = {"ticker": "perp-1", "side": "LONG", "size": 9_999.0, "leverage": 1.0}
    assert not market.call("a2a.openPosition", lent).ok
    early = SimulationA2AInterface(world())
    bought = asked(early, "buyShares", marketId="pm-1", outcome="YES", amount=500.0)
    sold = asked(early, "sellShares", marketId="pm-1")
    assert sold["proceeds"] == pytest.approx(500.0 - 2 * bought["fee"], rel=0.01)


def test_04_the_wrong_side_is_not_optimal():
    truth = made(2).truth
    best = [
        ActionRecord(k, one.tick, one.type, one.target, one.side)
        for k, one in enumerate(truth.optimal_actions)
    ]
    assert len(best) > 3
    assert optimality(truth, best) == 100.0
    known = {(one.tick, one.target, one.side) for one in truth.optimal_actions}
    wrong = [replace(one, side=OTHER_SIDE[one.side]) for one in best]
    wrong = [one for one in wrong if not near(known, one)]
    assert wrong
    assert optimality(truth, wrong) == 0.0


def near(known, one):
    return any((one.tick + d, one.market, one.side) in known for d in range(-2, 3))


def test_05_positions_of_one_moment_are_kept_apart(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1.0)
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    market = SimulationA2AInterface(world())
    bought = [
        asked(market, "buyShares", marketId=name, outcome=side, amount=10.0)["positionId"]
        for name in ("pm-1", "pm-2")
        for side in ("YES", "NO")
    ]
    assert len(set(bought)) == 4
    held = asked(market, "getPositions")["predictionPositions"]
    assert sorted(one["positionId"] for one in held) == sorted(bought)


def test_06_drawdown_runs_over_time():
    """Somebody who never closed a losing position was half under water all the same."""
    figures = score(EpisodeAccount(world().floor, (100.0, 50.0, 110.0)), made().truth)
    assert figures["perpMetrics"]["totalTrades"] == 0
    assert figures["totalPnl"] == 10.0
    assert figures["maxDrawdown"] == figures["perpMetrics"]["maxDrawdown"] == 0.5


class Silent:
    """Never comes to its first decision."""

    name = "silent"

    def reset(self, start):
        raise RuntimeError("not today")


def test_07_what_is_recorded_has_steps_and_what_has_none_counts_for_nothing(store):
    record(store, groups=2, size=3)
    rows = store.page(limit=100).rows
    assert {row.n_steps for row in rows} == {16}
    assert all(len(store.steps(row.trajectory_id)) == 16 for row in rows)
    good = stock_of(store, ENOUGH)
    assert (good.unused, good.quality) == (6, 1.0)
    with TrajectoryRecorder(store) as recorder:
        for k in range(6):
            recorder.begin(TrajectoryContext(agent_version="v", snapshot_id="snapshot-0", seed=k))
            team = Independent({Role("trader"): Silent()})
            run_episode(OneSnapshot(0), team, f"{k}", Seeds(k), [recorder])
    found = stock_of(store, ENOUGH)
    assert store.count() == 12
    assert (found.unused, found.full_groups) == (6, 2)  # no more to learn from than before
    assert found.quality == 0.5  # an empty row passes none of the checks
    assert len(CHECKS) == 5
    assert "less than 95%" in readiness(found, ENOUGH, 0).reason


def test_08_a_judged_trajectory_is_still_unused(store):
    record(store, groups=2, size=3)
    before = stock_of(store, ENOUGH)
    assert readiness(before, ENOUGH, 0).ready
    ids = [row.trajectory_id for row in store.page(limit=100).rows]
    store.judgments.add(
        [
            JudgmentRecord(
                trajectory_id=name,
                group_id="g",
                judge_model="m",
                judge_version="1",
                overall_score=0.5,
            )
            for name in ids
        ]
    )
    assert store.count(TrajectoryFilter(judged=True)) == 6
    assert stock_of(store, ENOUGH) == before


def test_13_a_snapshot_begins_at_its_beginning_and_shows_no_future(tmp_path):
    for scenario in SCENARIOS:
        snapshot = made(3, scenario).snapshot
        starts = [one.initial_price for one in snapshot.perpetuals]
        np.testing.assert_allclose(snapshot.closes[0], starts, rtol=1e-9)
        cut, close = 10, snapshot.columns.close.copy()
        close[cut + 1 :] *= 2
        posts = tuple(
            post if post.tick <= cut else replace(post, sentiment=-post.sentiment)
            for post in snapshot.posts
        )
        other = replace(snapshot, posts=posts, columns=replace(snapshot.columns, close=close))
        rows = [seen(one, cut + 5) for one in (snapshot, other)]
        np.testing.assert_array_equal(rows[0][: cut + 1], rows[1][: cut + 1])
        assert not np.array_equal(rows[0], rows[1])
    path = made(3).save(tmp_path)
    assert path.stat().st_size < 40 * 500  # no tick repeats the state


def seen(snapshot, ticks):
    place = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path()), snapshot)
    first = place.reset(Seeds(0))[TRADER].features
    return [first, *(place.advance(np.ones(3)).observation.features for _ in range(ticks))]


def test_every_test_that_the_page_names_is_there():
    lines = re.findall(r"^\| (\d+) \| .+ \| `(test_\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, 16))
    assert all(name.startswith(f"test_{int(number):02d}_") for number, name in lines)
    here = {
        node.name
        for path in HERE.glob("test_loop_defects*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    numbered = {name for name in here if re.match(r"test_\d\d_", name)}
    assert {name for _, name in lines} == numbered
