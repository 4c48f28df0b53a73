from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark import baselines
from agent_gym.evaluation.benchmark.filter import know
from agent_gym.evaluation.benchmark.optimum import BayesOptimum
from agent_gym.evaluation.benchmark.runner import OPTIMUM, BenchmarkRunner, RunnerConfig
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.rollouts.contracts import check_agent
from agent_gym.rollouts.play import play
from tests.envs.benchmark_samples import made, world

PLAYERS = "tests.evaluation.benchmark_players"
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshots")
    return [made(seed).save(folder) for seed in SEEDS]


def named(*names: str) -> dict[str, Ref]:
    return {name: Ref(use=name) for name in names}


def without_timing(rows):
    return [{key: value for key, value in row.items() if key != "timing"} for row in rows]


def test_rows_do_not_depend_on_the_number_of_workers(paths):
    agents = named("benchmark/random", "benchmark/sentiment")
    one = BenchmarkRunner(RunnerConfig(workers=1, details=True)).run(paths, agents)
    two = BenchmarkRunner(RunnerConfig(workers=2, details=True)).run(paths, agents)
    assert without_timing(one.rows) == without_timing(two.rows)
    assert [row["player"] for row in one.rows] == [
        *["benchmark/random"] * 2,
        *["benchmark/sentiment"] * 2,
        *[OPTIMUM] * 2,
    ]
    assert all(row["status"] == "ok" and row["problems"] == [] for row in one.rows)
    assert one.rows[0]["scenario_id"] == f"benchmark-{made(0).snapshot.id}"
    assert len(one.rows[0]["pnlHistory"]) == 41
    lines = {line["player"]: line for line in one.summary()}
    assert lines[OPTIMUM]["share_of_optimum"] == pytest.approx(1.0)


def test_bad_players_cost_only_their_own_episodes(paths):
    agents = named(
        "test/raises", "test/hangs", "test/dies", "test/garbage", "test/bot", "benchmark/flat"
    )
    config = RunnerConfig(
        workers=2, timeout_s=10.0, imports=(PLAYERS,), optimum=False, max_calls=300
    )
    report = BenchmarkRunner(config).run(paths[:1], agents)
    rows = {row["player"]: row for row in report.rows}
    assert {name: row["status"] for name, row in rows.items()} == {
        "test/raises": "error",
        "test/hangs": "timeout",
        "test/dies": "crashed",
        "test/garbage": "ok",
        "test/bot": "ok",
        "benchmark/flat": "ok",
    }
    assert rows["test/raises"]["error"]["what"] == "no idea"
    assert rows["test/garbage"]["metrics"]["invalidCalls"] == 40
    assert rows["test/garbage"]["return"] == rows["benchmark/flat"]["return"] == 0.0
    assert rows["test/bot"]["metrics"]["predictionMetrics"]["totalPositions"] == 1
    assert rows["test/bot"]["metrics"]["invalidCalls"] > 1_000
    lines = {line["player"]: line for line in report.summary()}
    assert lines["test/hangs"]["failed"] == 1
    assert lines["test/hangs"]["mean_return"] is None


def test_steps_are_limited_and_teams_can_play(paths):
    team = Ref(use="independent", params={"agents": {"trader": {"use": "benchmark/long"}}})
    config = RunnerConfig(max_steps=7, optimum=False)
    report = BenchmarkRunner(config).run(paths[:1], {}, teams={"pair": team})
    assert [(row["status"], row["steps"]) for row in report.rows] == [("ok", 7)]


def test_a_forged_truth_is_a_failed_row(tmp_path):
    path = made(0).save(tmp_path)
    path.with_name(path.name.replace(".snapshot.", ".truth.")).write_bytes(b"forged")
    report = BenchmarkRunner(RunnerConfig(optimum=False)).run([path], named("benchmark/flat"))
    assert [row["status"] for row in report.rows] == ["error"]


def test_names_are_unique(paths):
    with pytest.raises(ConfigError, match="one name"):
        BenchmarkRunner().run(paths, named(OPTIMUM))


@pytest.mark.parametrize(
    "build",
    [
        lambda: baselines.sentiment(baselines.ThresholdConfig()),
        lambda: baselines.random(baselines.RandomConfig()),
        lambda: baselines.momentum(baselines.ThresholdConfig()),
        lambda: baselines.headline(baselines.ThresholdConfig()),
        lambda: baselines.contrarian(baselines.ThresholdConfig()),
        lambda: BayesOptimum(made(0).snapshot),
    ],
)
def test_players_keep_the_contract_of_an_agent(build):
    check_agent(build, lambda: world(0))


def test_the_optimum_knows_only_what_has_been_posted():
    """With another future behind a tick, what is known up to it stays the same."""
    snapshot, cut = made(0).snapshot, 20
    posts = tuple(
        post if post.tick <= cut else replace(post, band=-post.band, sentiment=-post.sentiment)
        for post in snapshot.posts
    )
    close = snapshot.columns.close.copy()
    close[cut + 1 :] *= 2
    other = replace(snapshot, posts=posts, columns=replace(snapshot.columns, close=close))
    mine, its = know(snapshot), know(other)
    for name in ("beliefs", "to_come", "doubts"):
        np.testing.assert_array_equal(getattr(mine, name)[: cut + 1], getattr(its, name)[: cut + 1])
    assert not np.array_equal(mine.beliefs, its.beliefs)


def test_beliefs_are_calibrated():
    """Of questions that Bayes' rule gives a chance of about q, a share of about q comes true."""
    chances, outcomes = [], []
    for seed in range(120):
        one = made(seed)
        beliefs = know(one.snapshot).beliefs[20]
        for m, market in enumerate(one.snapshot.predictions):
            chances.append(beliefs[m])
            outcomes.append(one.truth.outcomes[market.id])
    q, y = np.array(chances), np.array(outcomes, dtype=float)
    sure = np.abs(q - 0.5) > 0.2
    z = (y - q).sum() / np.sqrt((q * (1 - q)).sum())
    side = np.where(q > 0.5, 1.0, -1.0)
    z_sure = (side * (y - q))[sure].sum() / np.sqrt((q * (1 - q))[sure].sum())
    assert abs(z) < 4.0
    assert abs(z_sure) < 4.0
    assert sure.sum() > 40


@pytest.mark.parametrize("scenario", ["bull", "bear", "scandal", "pump-and-dump"])
def test_there_is_something_to_learn(scenario):
    earned = {"optimum": [], "sentiment": [], "random": []}
    maker = BenchmarkDataGenerator(SnapshotConfig(scenario=scenario))
    for seed in range(6):
        snapshot = maker.generate(seed).snapshot
        players = {
            "optimum": BayesOptimum(snapshot),
            "sentiment": baselines.sentiment(baselines.ThresholdConfig()),
            "random": baselines.random(baselines.RandomConfig()),
        }
        for name, player in players.items():
            place = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path()), snapshot)
            result = play(place, Independent({TRADER: player}), "learn", Seeds(seed))
            earned[name].append(result.total_reward[TRADER])
    means = {name: np.mean(values) for name, values in earned.items()}
    assert means["random"] < 0.0 < means["sentiment"] < means["optimum"]
